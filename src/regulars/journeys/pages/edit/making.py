"""What all forms of the builder share: one change of the draft, its refusal, and the news that somebody was faster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.journeys.definition import Definition
from regulars.journeys.drafts.change import Draft, PieceChanged, change_draft
from regulars.journeys.drafts.tree import NoSuchPlace
from regulars.journeys.pages.edit.builder import Panel, render_builder
from regulars.journeys.pages.parts import PATH, read_journey_id, refusals
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY
from regulars.web.errors import Conflict
from regulars.web.visit import Visit


async def change(
    tx: Tx, visit: Visit, piece: Callable[[Definition], object], alter: Callable[[Definition], Definition]
) -> Draft:
    """The change, and its line in the audit log if it is the first since the last version."""
    journey_id = read_journey_id(visit)
    with refusals():
        draft = await change_draft(
            tx,
            visit.organization_id,
            journey_id,
            piece=piece,
            was=visit.form.get("was", ""),
            change=alter,
            by=visit.user.email,
        )
    if draft.revision == 1:
        after = {"based_on": draft.based_on}
        subject = JOURNEY.encode(journey_id)
        await record(tx, visit.organization_id, actor_of(visit), "journey.edit", subject, after=after)
    return draft


def refuse(visit: Visit, draft: Draft, panel: Panel) -> Response:
    """The form again, whole, with what is wrong; it still remembers what it was drawn from."""
    return render_builder(visit, draft, replace(panel, was=visit.form.get("was", "")), status=400)


def clash(visit: Visit, draft: Draft, panel: Panel, theirs: str) -> Response:
    """Both are shown: theirs in words, and one's own in the form, which would be saved over it now."""
    by, at = draft.changed_by or "Somebody", draft.changed_at or draft.row.updated_at
    conflict = f"{by} changed this at {visit.format.clock(at, seconds=True)}, after you had opened it."
    return render_builder(visit, draft, replace(panel, conflict=conflict, theirs=theirs), status=409)


def was_faster(error: PieceChanged) -> Conflict:
    """For what has no content of its own to lose: it can be done again."""
    by = error.draft.changed_by or "Somebody"
    return Conflict(f"{by} changed the steps meanwhile, so nothing was done. Go back, look, and do it again.")


@contextmanager
def places() -> Iterator[None]:
    try:
        yield
    except NoSuchPlace:
        raise Conflict("The step is not there any more: somebody changed the draft. Open it again.") from None


def builder_url(visit: Visit) -> str:
    return visit.url(PATH, JOURNEY.encode(read_journey_id(visit)), "edit")
