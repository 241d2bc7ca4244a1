"""The page on which another person approves a campaign: it shows recipients and cost, and the most that the approval
covers."""

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.campaigns.approval import approve, etag_part, why_not_approver
from regulars.campaigns.confirmed_numbers import RecipientsAndCost, read_cost
from regulars.campaigns.pages.common import (
    campaign_url,
    describe_most,
    find_campaign,
    read_confirmed,
    render_campaign,
)
from regulars.campaigns.pages.review import load_review
from regulars.columns.client import Analysis
from regulars.kit.etag import etag_of
from regulars.kit.ids import CAMPAIGN
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit


class ApprovePage:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        # The etag is of the time before the count: a change during the count voids the page.
        async with visit.database.reading() as tx:
            campaign = await find_campaign(tx, visit)
            row, definition = campaign.row, campaign.definition
            part = await etag_part(tx, visit.organization_id, row, definition)
            refusal = await why_not_approver(tx, visit.organization_id, row, definition, by=visit.user.email)
        if not row.can_be_approved:
            return redirect(visit, campaign_url(visit, row))
        review = await load_review(visit, self._analysis)
        return render_campaign(
            visit, "campaigns/approve.html", row, shown_etag=etag_of(part), refusal=refusal, **review.values(visit)
        )

    async def approve(self, visit: Visit) -> Response:
        form = FormState(visit.form)
        recipients, cost = read_confirmed(form)
        async with visit.database.transaction() as tx:
            before = (await find_campaign(tx, visit)).row
            row = await approve(
                tx,
                visit.organization_id,
                before.id,
                by=visit.user.email,
                recipients=recipients,
                cost=cost,
                etag=form.value("was"),
            )
            after = {"name": row.name, "revision": row.revision, "recipients": row.approved_recipients}
            await record_act(tx, visit, "campaign.approve", CAMPAIGN.encode(row.id), after=after)
        most = RecipientsAndCost(row.approved_recipients or 0, read_cost(row.approved_cost))
        return redirect(
            visit, campaign_url(visit, row), done=f"Campaign approved: {describe_most(visit.format, most)}."
        )
