"""The page on which a user confirms a draft campaign: it shows recipients and cost, and has the button that sends."""

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.campaigns import manage
from regulars.campaigns.approval import why_approval_needed
from regulars.campaigns.definition import SendNow
from regulars.campaigns.exact_cost import request_exact_cost
from regulars.campaigns.model import CampaignState
from regulars.campaigns.pages.common import campaign_url, find_campaign, read_confirmed, render_campaign
from regulars.campaigns.pages.review import load_review
from regulars.columns.client import Analysis
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import CAMPAIGN
from regulars.web.errors import Conflict
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit


class Confirmation:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        review = await load_review(visit, self._analysis)
        row, definition, most = review.campaign.row, review.campaign.definition, review.most
        if row.state != CampaignState.DRAFT:
            return redirect(visit, campaign_url(visit, row))
        why = None
        if most is not None:
            async with visit.database.reading() as tx:
                why = await why_approval_needed(tx, visit.organization_id, row, definition, most, by=visit.user.email)
        etag = etag_of(row.revision)
        return render_campaign(
            visit, "campaigns/send.html", row, shown_etag=etag, why_approval=why, **review.values(visit)
        )

    async def send(self, visit: Visit) -> Response:
        """Send or schedule the campaign. A second user who presses the button learns that it is scheduled already."""
        form = FormState(visit.form)
        recipients, cost = read_confirmed(form)
        async with visit.database.transaction() as tx:
            campaign = await find_campaign(tx, visit)
            is_now = isinstance(campaign.definition.schedule, SendNow)
            try:
                row = await manage.schedule(
                    tx,
                    visit.organization_id,
                    campaign.row.id,
                    confirmed_recipients=recipients,
                    confirmed_cost=cost,
                    by=visit.user.email,
                    is_now=is_now,
                    etag=form.value("was"),
                )
            except EtagMismatch:
                changer = next(reversed(campaign.row.changed_by), "Another user")
                raise Conflict(
                    f"{changer} changed this campaign after you had opened the"
                    " confirmation. Nothing was sent. Check the campaign again."
                ) from None
            act = "campaign.send" if is_now else "campaign.schedule"
            after = {"name": row.name, "state": row.state, "recipients": recipients}
            await record_act(tx, visit, act, CAMPAIGN.encode(row.id), after=after)
        done = "The campaign starts now." if is_now else "Campaign scheduled."
        return redirect(visit, campaign_url(visit, row), done=done)

    async def count_exactly(self, visit: Visit) -> Response:
        """Request the exact cost: the worker renders the texts of all recipients, and the page shows the progress."""
        async with visit.database.transaction() as tx:
            campaign = await find_campaign(tx, visit)
            await request_exact_cost(tx, visit.organization_id, campaign.row.id)
        return redirect(visit, campaign_url(visit, campaign.row, "send"))
