"""Applies a change of the builder to the draft of a journey, saves the draft as a version, or discards it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.journeys.definition import Definition
from regulars.journeys.difference import diff_definitions
from regulars.journeys.drafts import Draft, discard_draft, lock_draft, save_draft, write_draft
from regulars.journeys.pages.common import PATH, find_journey, journey_url, read_journey_id, render_journey
from regulars.journeys.pages.edit.builder import Panel, find_draft, render_builder
from regulars.journeys.step_tree import StepNotFound
from regulars.kit.db import Tx
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import JOURNEY
from regulars.web.errors import Conflict
from regulars.web.form import EditConflict, FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChange:
    """A change that a form requests.

    `edited_part` is the part of the draft that the form edits; `current_text` describes it in an edit conflict.
    `new_definition` is None if the form has an error. `panel` renders the form again; a plain button has no panel. The
    browser is redirected to the builder's URL with `url_suffix`, where it shows `message`.
    """

    edited_part: object
    new_definition: Definition | None
    panel: Callable[[], Awaitable[Panel]] | None = None
    current_text: str = ""
    url_suffix: str = ""
    message: str | None = None


async def apply_change(visit: Visit, plan: Callable[[Tx, Draft], Awaitable[DraftChange]]) -> Response:
    """Write the change that `plan` returns for the draft, unless another user changed the edited part meanwhile. With
    the field `check`, show the form again with what is wrong in it, and write nothing."""
    journey_id, etag = read_journey_id(visit), visit.form.get("was", "")
    async with visit.database.transaction() as tx:
        draft = await lock_draft(tx, visit.organization_id, journey_id)
        try:
            change = await plan(tx, draft)
        except StepNotFound:
            raise Conflict("The step is gone, because another user changed the draft. Open the draft again.") from None
        is_check = "check" in visit.form
        if change.panel is not None and (is_check or change.new_definition is None):
            panel = replace(await change.panel(), was=etag)
            return render_builder(visit, draft, panel, status=200 if is_check else 400)
        if change.new_definition is None or etag_of(change.edited_part) != etag:
            return await _render_conflict(visit, draft, change)
        if change.new_definition == draft.definition:
            return redirect(visit, f"{builder_url(visit)}{change.url_suffix}", done="Nothing was changed.")
        await write_draft(tx, visit.organization_id, draft, change.new_definition, by=visit.user.email)
        if not draft.has_changes:
            after, subject = {"based_on": draft.stored.based_on}, JOURNEY.encode(journey_id)
            await record_act(tx, visit, "journey.edit", subject, after=after)
    return redirect(visit, f"{builder_url(visit)}{change.url_suffix}", done=change.message)


async def _render_conflict(visit: Visit, draft: Draft, change: DraftChange) -> Response:
    by, at = draft.stored.changed_by or "Another user", draft.stored.changed_at or draft.row.updated_at
    if change.panel is None:
        raise Conflict(
            f"{by} changed the steps in the meantime, so your change was not made. Go back, reload and try again."
        )
    panel = await change.panel()
    when = visit.format.clock(at, seconds=True)
    panel.form.conflict = EditConflict(by=by, at=when, now=change.current_text, url=builder_url(visit))
    return render_builder(visit, draft, panel, status=409)


def builder_url(visit: Visit) -> str:
    return visit.url(PATH, JOURNEY.encode(read_journey_id(visit)), "edit")


async def save(visit: Visit) -> Response:
    """Save the draft as a version. If another user saved a version meanwhile, show the difference and save nothing."""
    etag, by = visit.form.get("was", ""), visit.user.email
    try:
        async with visit.database.transaction() as tx:
            before = await find_journey(tx, visit)
            journey = await save_draft(tx, visit.organization_id, read_journey_id(visit), etag=etag, by=by)
            row = journey.row
            is_new = row.version != before.row.version
            after = {"version": row.version, "name": row.name, "state": row.state}
            subject = JOURNEY.encode(row.id)
            if is_new:
                await record_act(tx, visit, "journey.save_version", subject, after=after)
    except EtagMismatch:
        return await _show_difference(visit)
    done = f"Version {row.version} is saved." if is_new else f"Nothing was changed since version {row.version}."
    if visit.form.get("activate"):
        return redirect(visit, journey_url(visit, row, "activate"), done=done)
    if is_new and row.state == "live":
        done = f"Version {row.version} is saved and live: customers who enter from now on follow it."
    return redirect(visit, f"{journey_url(visit, row)}?version={row.version}", done=done)


async def _show_difference(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        draft = await find_draft(tx, visit)
    why = f"{draft.stored.changed_by} changed the draft in the meantime; review it before you save."
    if draft.stored.based_on != journey.row.version:
        based_on = draft.stored.based_on
        why = f"Version {journey.row.version} was saved in the meantime; the draft is based on version {based_on}."
    return render_journey(
        visit,
        "journeys/clash.html",
        journey.row,
        status=409,
        why=why,
        draft=draft,
        was=etag_of((draft.definition, journey.row.version)),
        lines=diff_definitions(journey.definition, draft.definition),
    )


async def confirm_discard(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        draft = await find_draft(tx, visit)
    return render_journey(visit, "journeys/discard.html", draft.row, draft=draft, form=FormState())


async def discard(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        draft = await find_draft(tx, visit)
        if await discard_draft(tx, visit.organization_id, draft.row.id):
            before = {"based_on": draft.stored.based_on, "revision": draft.stored.revision}
            await record_act(tx, visit, "journey.discard_draft", JOURNEY.encode(draft.row.id), before=before)
    return redirect(visit, journey_url(visit, draft.row), done="Draft discarded. Saved versions stay.")
