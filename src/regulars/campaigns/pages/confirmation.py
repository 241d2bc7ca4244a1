"""The page on which a user confirms a draft campaign: it shows recipients and cost, and has the button that sends."""

from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.campaigns import manage
from regulars.campaigns.approval import load_rule, why_approval_needed
from regulars.campaigns.confirmed_numbers import write_cost
from regulars.campaigns.definition import SendNow
from regulars.campaigns.exact_cost import find_exact_cost, request_exact_cost
from regulars.campaigns.model import CampaignState
from regulars.campaigns.pages.common import campaign_url, find_campaign, page_errors, read_confirmed, render_campaign
from regulars.campaigns.pages.figures import Figures, describe_estimate, load_figures
from regulars.campaigns.pages.progress import (
    REASON_LABELS,
    describe_audience,
    describe_freeze,
    describe_path,
    describe_schedule,
)
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import CAMPAIGN
from regulars.segments.analysis.client import Analysis
from regulars.web.errors import Conflict
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit

# The page waits this long for the estimate, because without it there is nothing to confirm.
ESTIMATE_WAIT_S: Final = 8.0


class Confirmation:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            campaign = await find_campaign(tx, visit)
            audience = await describe_audience(tx, visit, campaign.definition)
            rule = await load_rule(tx, visit.organization_id)
            exact = await find_exact_cost(tx, visit.organization_id, campaign.row.id)
        row, definition = campaign.row, campaign.definition
        if row.state != CampaignState.DRAFT:
            return redirect(visit, campaign_url(visit, row))
        figures = Figures(unavailable_reason="It has faults.")
        if not campaign.faults:
            figures = await load_figures(visit, self._analysis, definition, seconds=ESTIMATE_WAIT_S)
        estimate, why_approval = figures.estimate, None
        # The exact size if it was counted; else the estimated size.
        size = None if estimate is None else estimate.size if exact is None or exact.size is None else exact.size
        if size is not None:
            why_approval = why_approval_needed(rule, recipients=size.recipients, cost=size.cost.amounts)
        is_approved = row.approved_revision == row.revision and row.approved_by != visit.user.email
        return render_campaign(
            visit,
            "campaigns/send.html",
            row,
            shown_etag=etag_of(row.revision),
            definition=definition,
            audience=audience,
            schedule=describe_schedule(visit.format, definition),
            freeze=None if estimate is None else describe_freeze(visit.format, definition, estimate.first_texts_at),
            is_now=isinstance(definition.schedule, SendNow),
            faults=[(describe_path(fault.place), fault.message) for fault in campaign.faults],
            figures=figures,
            shown=None if estimate is None else describe_estimate(visit.format, estimate),
            reasons=REASON_LABELS,
            exact=exact,
            size=size,
            exact_cost="" if size is None else visit.format.amounts(size.cost.amounts),
            cost=None if size is None else write_cost(size.cost.amounts),
            why_approval=None if is_approved else why_approval,
        )

    async def send(self, visit: Visit) -> Response:
        """Send or schedule the campaign. A second user who presses the button learns that it is scheduled already."""
        form = FormState(visit.form)
        recipients, cost = read_confirmed(form)
        async with visit.database.transaction() as tx:
            campaign = await find_campaign(tx, visit)
            is_now = isinstance(campaign.definition.schedule, SendNow)
            try:
                with page_errors():
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
                raise Conflict(
                    f"{campaign.row.updated_by or 'The command line'} changed this campaign after you had opened the"
                    " confirmation. Nothing was sent. Check the campaign again."
                ) from None
            act = "campaign.send" if is_now else "campaign.schedule"
            after = {"name": row.name, "state": row.state, "recipients": recipients}
            await record(tx, visit.organization_id, actor_of(visit), act, CAMPAIGN.encode(row.id), after=after)
        done = "The campaign starts now." if is_now else "Campaign scheduled."
        return redirect(visit, campaign_url(visit, row), done=done)

    async def count_exactly(self, visit: Visit) -> Response:
        """Request the exact cost: the worker renders the texts of all recipients, and the page shows the progress."""
        async with visit.database.transaction() as tx:
            campaign = await find_campaign(tx, visit)
            with page_errors():
                await request_exact_cost(tx, visit.organization_id, campaign.row.id)
        return redirect(visit, campaign_url(visit, campaign.row, "send"))
