"""One change of the draft, which every form of the builder makes: refused, in conflict, or made and audited."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.journeys.definition import Definition
from regulars.journeys.drafts.change import Draft, lock_draft, write_draft
from regulars.journeys.drafts.tree import NoSuchPlace
from regulars.journeys.pages.edit.builder import render_builder
from regulars.journeys.pages.edit.panel import Panel
from regulars.journeys.pages.parts import PATH, read_journey_id, refusals
from regulars.kit.db import Tx
from regulars.kit.etag import etag_of
from regulars.kit.ids import JOURNEY
from regulars.web.errors import Conflict
from regulars.web.form import EditConflict
from regulars.web.render import redirect
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a form asks for. `piece` is what the form is about, as it stands in the draft, and `now` says it in words.

    `changed` is None where something in the form is wrong. `panel` is the form again; a button has none.
    """

    piece: object
    changed: Definition | None
    panel: Callable[[], Awaitable[Panel]] | None = None
    now: str = ""
    then: str = ""
    done: str | None = None


async def edit(visit: Visit, plan: Callable[[Tx, Draft], Awaitable[Edit]]) -> Response:
    journey_id, was = read_journey_id(visit), visit.form.get("was", "")
    async with visit.database.transaction() as tx:
        with refusals():
            draft = await lock_draft(tx, visit.organization_id, journey_id)
            try:
                asked = await plan(tx, draft)
            except NoSuchPlace:
                raise Conflict("The step is not there any more: the draft was changed. Open it again.") from None
            if asked.changed is None and asked.panel is not None:
                return render_builder(visit, draft, replace(await asked.panel(), was=was), status=400)
            if asked.changed is None or etag_of(asked.piece) != was:
                return await _tell_conflict(visit, draft, asked)
            await write_draft(tx, visit.organization_id, draft, asked.changed, by=visit.user.email)
        if not draft.is_new:
            after, subject = {"based_on": draft.based_on}, JOURNEY.encode(journey_id)
            await record(tx, visit.organization_id, actor_of(visit), "journey.edit", subject, after=after)
    return redirect(visit, f"{builder_url(visit)}{asked.then}", done=asked.done)


async def _tell_conflict(visit: Visit, draft: Draft, asked: Edit) -> Response:
    by, at = draft.changed_by or "Another user", draft.changed_at or draft.row.updated_at
    if asked.panel is None:
        raise Conflict(f"{by} changed the steps meanwhile, so nothing was done. Go back, look, and do it again.")
    panel = await asked.panel()
    when = visit.format.clock(at, seconds=True)
    panel.form.conflict = EditConflict(by=by, at=when, now=asked.now, url=builder_url(visit))
    return render_builder(visit, draft, panel, status=409)


def builder_url(visit: Visit) -> str:
    return visit.url(PATH, JOURNEY.encode(read_journey_id(visit)), "edit")
