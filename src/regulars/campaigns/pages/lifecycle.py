"""Handles the forms that pause, resume, cancel, duplicate, archive and follow up a campaign."""

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.campaigns import manage
from regulars.campaigns.approval import (
    Objection,
    etag_part,
    find_objection,
    find_objection_to_fixed,
    most_of_fixed,
)
from regulars.campaigns.confirmed_numbers import Question, RecipientsAndCost, read_cost, read_question, write_cost
from regulars.campaigns.errors import QuestionNotAnswered
from regulars.campaigns.follow_up import follow_up
from regulars.campaigns.model import RECEIVED, CampaignRow, CampaignState, RecipientOutcome, add_up, most_of
from regulars.campaigns.pages.common import (
    campaign_url,
    describe_most,
    describe_question,
    find_campaign,
    read_confirmed,
    render_campaign,
)
from regulars.campaigns.totals import list_totals
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import CAMPAIGN, SEGMENT
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit


async def pause(visit: Visit) -> Response:
    """Pause without a confirmation page, because a pause loses nothing."""
    return await _change(visit, manage.pause, "campaign.pause", "Campaign paused. No text leaves until you resume it.")


async def resume(visit: Visit) -> Response:
    """Resume a campaign. If it was paused at its start because it exceeded the confirmed numbers, the form has the
    numbers that the page showed. If the campaign asks for others by now, the page is shown again with both."""
    form = FormState(visit.form)
    shown = None
    if form.value("recipients"):
        recipients, cost = read_confirmed(form)
        shown = Question(recipients, dict(cost or {}))
    try:
        use_case = partial(manage.resume, shown=shown, etag=form.value("was"))
        return await _change(visit, use_case, "campaign.resume", "Campaign resumed.")
    except QuestionNotAnswered as error:
        form.refuse("recipients", _describe_difference(visit, shown, error.question))
        return await confirm("campaigns/resume.html", visit, form, status=409)


def _describe_difference(visit: Visit, shown: Question | None, now: Question | None) -> str:
    """What the user confirmed, and what the campaign asks now."""
    confirmed = "no numbers" if shown is None else describe_question(visit.format, shown)
    asked = "asks nothing" if now is None else f"has {describe_question(visit.format, now)}"
    return f"You confirmed {confirmed}. The campaign {asked} now."


async def cancel(visit: Visit) -> Response:
    return await _change(visit, manage.cancel, "campaign.cancel", "Campaign cancelled. No more texts leave.")


async def archive(visit: Visit) -> Response:
    return await _change(visit, manage.archive, "campaign.archive", "Campaign archived. Its results stay.")


async def duplicate(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        campaign = await find_campaign(tx, visit)
        copy = await manage.duplicate(tx, visit.organization_id, campaign.row.id, by=visit.user.email)
        after = {"name": copy.row.name, "copy_of": CAMPAIGN.encode(campaign.row.id)}
        await record_act(tx, visit, "campaign.create", CAMPAIGN.encode(copy.row.id), after=after)
    return redirect(
        visit, campaign_url(visit, copy.row, "edit"), done="Draft copy created, without start and end times."
    )


async def begin_follow_up(visit: Visit) -> Response:
    """Create a segment of customers who received the campaign and did not buy since, and a draft for that segment."""
    async with visit.database.transaction() as tx:
        campaign = await find_campaign(tx, visit)
        segment, draft = await follow_up(tx, visit.organization_id, campaign.row.id, by=visit.user.email)
        created = (
            ("segment.create", SEGMENT.encode(segment.row.id), segment.row.name),
            ("campaign.create", CAMPAIGN.encode(draft.row.id), draft.row.name),
        )
        for act, subject, name in created:
            await record_act(tx, visit, act, subject, after={"name": name, "follows": CAMPAIGN.encode(campaign.row.id)})
    done = "Segment and draft created for customers who received the text and did not buy since."
    return redirect(visit, campaign_url(visit, draft.row, "edit"), done=done)


async def confirm(
    template: str, visit: Visit, form: FormState | None = None, *, status: int = HTTPStatus.OK
) -> Response:
    """Show the page on which a user confirms one of the changes above."""
    async with visit.database.reading() as tx:
        campaign = await find_campaign(tx, visit)
        outcomes = add_up(await list_totals(tx, visit.organization_id, campaign.row.id))
        objection, most = await _find_objection(tx, visit, campaign)
        part = await etag_part(tx, visit.organization_id, campaign.row, campaign.definition)
    question = read_question(campaign.row.question)
    is_asked = question is not None or campaign.row.frozen_at is not None
    return render_campaign(
        visit,
        template,
        campaign.row,
        waiting=outcomes[RecipientOutcome.WAITING] + outcomes[RecipientOutcome.QUEUED],
        received=sum(outcomes[outcome] for outcome in RECEIVED),
        question=question,
        question_cost="" if question is None else visit.format.amounts(question.cost),
        question_json="" if question is None else write_cost(question.cost),
        form=form or FormState(),
        objection=objection,
        may_approve=is_asked and objection is not None and objection.refusal is None,
        shown_etag=etag_of(part),
        most="" if most is None else describe_most(visit.format, most),
        status=status,
    )


async def _find_objection(
    tx: Tx, visit: Visit, campaign: manage.Campaign
) -> tuple[Objection | None, RecipientsAndCost | None]:
    """Why this user cannot resume the campaign without an approval, and the most that is sent if they resume it."""
    row, definition = campaign.row, campaign.definition
    if row.state != CampaignState.PAUSED:
        return None, None
    if row.frozen_at is not None:
        objection = await find_objection_to_fixed(tx, visit.organization_id, row, definition, by=visit.user.email)
        return objection, most_of_fixed(row, definition)
    question = read_question(row.question)
    asked = RecipientsAndCost(row.confirmed_recipients or 0, read_cost(row.confirmed_cost))
    if question is not None:
        asked = question.numbers
    most = most_of(asked, definition.margin_percent)
    return await find_objection(tx, visit.organization_id, row, definition, most, by=visit.user.email), most


async def _change(visit: Visit, use_case: Callable[..., Awaitable[CampaignRow]], audit: str, message: str) -> Response:
    """Call a function of `manage` for the campaign, and record the change under `audit` in the audit log."""
    async with visit.database.transaction() as tx:
        before = (await find_campaign(tx, visit)).row
        after = await use_case(tx, visit.organization_id, before.id, by=visit.user.email)
        await record_act(
            tx,
            visit,
            audit,
            CAMPAIGN.encode(before.id),
            before={"state": before.state},
            after={"name": after.name, "state": after.state, "revision": after.revision},
        )
    return redirect(visit, campaign_url(visit, after), done=message)
