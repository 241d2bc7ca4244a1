"""The setting above which another person must approve a campaign."""

from typing import Final

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.campaigns.approval import ApprovalRule, load_rule, save_rule
from regulars.campaigns.pages.common import PATH
from regulars.web.form import FormState
from regulars.web.render import redirect, render, render_form
from regulars.web.visit import Visit

RECIPIENTS_MAX: Final = 100_000_000


async def show_approval(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        rule = await load_rule(tx, visit.organization_id)
    recipients = "" if rule.recipients_max is None else str(rule.recipients_max)
    return render(visit, "campaigns/approval.html", form=FormState({"recipients": recipients}))


async def save_approval(visit: Visit) -> Response:
    form = FormState(visit.form)
    recipients = None
    if form.value("recipients").strip():
        recipients = form.whole("recipients", minimum=0, maximum=RECIPIENTS_MAX)
    if form.is_refused:
        return render_form(visit, "campaigns/approval.html", form)
    async with visit.database.transaction() as tx:
        before = await load_rule(tx, visit.organization_id)
        await save_rule(tx, visit.organization_id, ApprovalRule(recipients))
        await record(
            tx,
            visit.organization_id,
            actor_of(visit),
            "campaign.approval",
            "",
            before={"recipients_max": before.recipients_max},
            after={"recipients_max": recipients},
        )
    return redirect(visit, visit.url(PATH), done="Saved.")
