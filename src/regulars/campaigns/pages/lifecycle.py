"""Pause, resume, cancel, approve, duplicate and archive a campaign."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.campaigns import manage
from regulars.campaigns.model import CampaignRow, Outcome, add_up
from regulars.campaigns.pages.common import campaign_url, find_campaign, page_errors
from regulars.campaigns.totals import list_totals
from regulars.kit.ids import CAMPAIGN
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit


async def pause(visit: Visit) -> Response:
    """Without a question: it stops at once, and nothing is lost."""
    return await _change(visit, manage.pause, "campaign.pause", "Paused. No text leaves until you resume it.")


async def confirm_resume(visit: Visit) -> Response:
    return await _confirm(visit, "campaigns/resume.html")


async def resume(visit: Visit) -> Response:
    form = FormState(visit.form)
    confirmed = None
    if form.value("recipients"):
        confirmed = form.whole("recipients", minimum=0, maximum=100_000_000)
    if form.is_refused:
        return await _confirm(visit, "campaigns/resume.html", form)

    async def work(*arguments: object, by: str | None) -> CampaignRow:
        return await manage.resume(*arguments, by=by, confirmed_recipients=confirmed)  # type: ignore[arg-type]  # those of `_change`

    return await _change(visit, work, "campaign.resume", "Resumed.")


async def confirm_cancel(visit: Visit) -> Response:
    return await _confirm(visit, "campaigns/cancel.html")


async def cancel(visit: Visit) -> Response:
    return await _change(visit, manage.cancel, "campaign.cancel", "Cancelled. No more texts leave.")


async def approve(visit: Visit) -> Response:
    return await _change(visit, manage.approve, "campaign.approve", "Approved. It can be sent as it is now.")


async def confirm_archive(visit: Visit) -> Response:
    return await _confirm(visit, "campaigns/archive.html")


async def archive(visit: Visit) -> Response:
    return await _change(visit, manage.archive, "campaign.archive", "Archived. Its results stay.")


async def duplicate(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        campaign = await find_campaign(tx, visit)
        with page_errors():
            made = await manage.duplicate(tx, visit.organization_id, campaign.row.id, by=visit.user.email)
        after = {"name": made.row.name, "copy_of": CAMPAIGN.encode(campaign.row.id)}
        subject = CAMPAIGN.encode(made.row.id)
        await record(tx, visit.organization_id, actor_of(visit), "campaign.create", subject, after=after)
    return redirect(visit, campaign_url(visit, made.row), done="Duplicated as a draft, without its times.")


async def _confirm(visit: Visit, template: str, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        campaign = await find_campaign(tx, visit)
        outcomes = add_up(await list_totals(tx, visit.organization_id, campaign.row.id))
    return render(
        visit,
        template,
        status=400 if form is not None else 200,
        row=campaign.row,
        waiting=outcomes[Outcome.WAITING] + outcomes[Outcome.QUEUED],
        received=outcomes[Outcome.SENT] + outcomes[Outcome.DELIVERED] + outcomes[Outcome.UNKNOWN],
        form=form or FormState(),
        here=campaign_url(visit, campaign.row),
    )


async def _change(visit: Visit, use_case: Callable[..., Awaitable[CampaignRow]], act: str, done: str) -> Response:
    async with visit.database.transaction() as tx:
        before = (await find_campaign(tx, visit)).row
        with page_errors():
            after = await use_case(tx, visit.organization_id, before.id, by=visit.user.email)
        await record(
            tx,
            visit.organization_id,
            actor_of(visit),
            act,
            CAMPAIGN.encode(before.id),
            before={"state": before.state},
            after={"name": after.name, "state": after.state, "revision": after.revision},
        )
    return redirect(visit, campaign_url(visit, after), done=done)
