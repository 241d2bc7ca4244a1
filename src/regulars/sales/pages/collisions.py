"""The pages of ticket collisions (a ticket sent again with other content): the list, its CSV export, and one collision
with the forms to decide it."""

from functools import partial
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.accounts.list_pages import ListPages, OpenedList
from regulars.kit.db import Tx
from regulars.kit.ids import SALES_EVENT
from regulars.kit.keyset import PageRequest, PageRows
from regulars.lists.columns import HARMLESS, Column, Columns, Head, Place
from regulars.sales import collision_review as review
from regulars.sales.pages.tickets import find_ticket
from regulars.stores.find import name_stores
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import Filter, read_view
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/collisions"
FILTERS: Final = (Filter("state", "State", (("reviewed", "Reviewed"),)),)
_CONTENTS: Final = Head("Different contents", "is-num drop-3", 3, is_plain=True)
_TIMES_SEEN: Final = Head("Times sent again", "is-num drop-2", 4, is_plain=True)
_NOTE: Final = Head("Note", "clip drop-2", 6, is_plain=True)
COLUMNS: Final = Columns[review.ListedCollision](
    Column("id", lambda it: SALES_EVENT.encode(it.sales_event_id), HARMLESS, places=Place.FILE),
    Column("external_id", lambda it: it.external_id, HARMLESS, Head("Ticket", "clip", 1)),
    Column("store", lambda it: it.store_external_id, HARMLESS, Head("Store", "clip drop-3", 2)),
    Column("contents", lambda it: it.contents, HARMLESS, _CONTENTS, places=Place.PAGE),
    Column("times_seen", lambda it: it.times_seen, HARMLESS, _TIMES_SEEN),
    Column("last_seen_at", lambda it: it.last_seen_at, HARMLESS, Head("Last sent", "nowrap", 5, is_plain=True)),
    Column("review", lambda it: it.review, HARMLESS, Head("State", "", 7)),
    Column("note", lambda it: it.note, head=_NOTE),
    Column("reviewed_by", lambda it: it.reviewed_by, HARMLESS, places=Place.FILE),
)


async def _open_collisions(_tx: Tx, visit: Visit) -> OpenedList[review.ListedCollision]:
    view = read_view(visit, "collisions", PATH, filters=FILTERS)
    is_reviewed = view.value("state") == "reviewed"

    heads = [pair for pair in COLUMNS.heads if is_reviewed or pair[0] is not _NOTE]

    async def fetch(tx: Tx, page: PageRequest) -> PageRows[review.ListedCollision]:
        return await review.list_collisions(tx, visit.organization_id, page, is_reviewed=is_reviewed)

    return OpenedList(view, view.by_key(fetch, review.position_of), {"is_reviewed": is_reviewed, "heads": heads})


COLLISIONS: Final = ListPages(
    "sales/collisions.html", COLUMNS, _open_collisions, act="collisions.export", file_name="collisions.csv"
)


async def show_collision(visit: Visit, form: FormState | None = None) -> Response:
    async with visit.database.reading() as tx:
        sale = await find_ticket(tx, visit)
        collision = await review.find_collision(tx, visit.organization_id, sale)
        stores = await name_stores(tx, visit.organization_id, [sale.store.id])
    if collision is None:
        raise PageNotFound("This ticket was never sent again with other content.")
    values: dict[str, Any] = {
        "sale": sale,
        "store_name": stores.get(sale.store.id, sale.store.external_id),
        "collision": _mask_personal(visit, collision),
        "page_url": visit.url(PATH, SALES_EVENT.encode(sale.id)),
        "ticket_url": visit.url("/tickets", sale.ticket.external_id),
    }
    return render_form(visit, "sales/collision.html", form or FormState(), **values)


def _mask_personal(visit: Visit, collision: review.Collision) -> review.Collision:
    """Hide fields that may have personal data, and the note, from users who may not see personal data."""
    if visit.sees_personal:
        return collision

    def hide(difference: review.FieldDifference) -> review.FieldDifference:
        if difference.field not in review.PERSONAL_FIELDS:
            return difference
        return review.FieldDifference(difference.field, mask.HIDDEN, mask.HIDDEN)

    comparisons = [
        comparison._replace(differences=[hide(difference) for difference in comparison.differences])
        for comparison in collision.comparisons
    ]
    return review.Collision(collision.review._replace(note=mask.text(visit, collision.review.note)), comparisons)


async def _decide(decision: review.Decision, visit: Visit) -> Response:
    form = FormState(visit.form, again=show_collision)
    is_note_required = decision is review.Decision.DISMISSED
    note = form.text("note", required=is_note_required, characters_max=review.NOTE_CHARACTERS_MAX)
    form.check()
    async with visit.database.transaction() as tx:
        sale = await find_ticket(tx, visit)
        has_collision = await review.decide(
            tx, visit.organization_id, sale.id, decision, note=note or None, decided_by=visit.user.email
        )
        if has_collision:
            await record_act(tx, visit, f"collision.{decision.value.lower()}", SALES_EVENT.encode(sale.id))
    if not has_collision:
        raise PageNotFound("This ticket was never sent again with other content.")
    message = (
        "The first ticket stays. The conflict is closed."
        if decision is review.Decision.FIRST_IS_RIGHT
        else "The conflict is dismissed."
    )
    return redirect(visit, visit.url(PATH), done=message)


_keep_first = partial(_decide, review.Decision.FIRST_IS_RIGHT)
_dismiss = partial(_decide, review.Decision.DISMISSED)
PAGES: Final = (
    *COLLISIONS.pages(PATH, needs=Action.READ),
    Page(path=f"{PATH}/{{ticket}}", needs=Action.READ, handle=show_collision),
    Form(path=f"{PATH}/{{ticket}}/keep", needs=Action.DECIDE_COLLISIONS, handle=_keep_first, harm=Harm.CHANGES),
    Form(path=f"{PATH}/{{ticket}}/dismiss", needs=Action.DECIDE_COLLISIONS, handle=_dismiss, harm=Harm.CHANGES),
)
