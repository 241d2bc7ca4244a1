"""The pages of ticket collisions (a ticket sent again with other content): the list, its CSV export, and one collision
with the forms to decide it."""

from functools import partial
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.accounts.audit.log import record_act
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import SALES_EVENT
from regulars.sales import collision_review as review
from regulars.sales.pages.tickets import find_ticket
from regulars.stores.find import name_stores
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import Filter, make_page, read_all_rows, read_view
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/collisions"
FILTERS: Final = (Filter("state", "State", (("reviewed", "Reviewed"),)),)
CSV_HEADER: Final = ("id", "external_id", "store", "times_seen", "last_seen_at", "review", "note", "reviewed_by")


async def show_collisions(visit: Visit) -> Response:
    view = read_view(visit, "collisions", PATH, filters=FILTERS)
    is_reviewed = view.value("state") == "reviewed"
    async with visit.database.reading() as tx:
        collisions = await review.list_collisions(tx, visit.organization_id, view.request, is_reviewed=is_reviewed)
    page = make_page(view, collisions, review.position_of)
    return render(visit, "sales/collisions.html", view=view, page=page, is_reviewed=is_reviewed)


async def export_collisions(visit: Visit) -> Response:
    view = read_view(visit, "collisions", PATH, filters=FILTERS)
    is_reviewed = view.value("state") == "reviewed"
    collisions = read_all_rows(
        visit.database.reading,
        lambda tx, page: review.list_collisions(tx, visit.organization_id, page, is_reviewed=is_reviewed),
        review.position_of,
    )
    rows = (_csv_row(visit, collision) async for collision in collisions)
    return export_csv(visit, "collisions.export", "collisions.csv", CSV_HEADER, rows)


def _csv_row(visit: Visit, collision: review.ListedCollision) -> list[str]:
    return [
        SALES_EVENT.encode(collision.sales_event_id),
        collision.external_id,
        collision.store_external_id,
        str(collision.times_seen),
        format_timestamp(collision.last_seen_at),
        collision.review or "",
        mask.text(visit, collision.note) or "",
        collision.reviewed_by or "",
    ]


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
    Page(path=PATH, needs=Action.READ, handle=show_collisions),
    Page(path=f"{PATH}.csv", needs=Action.READ, handle=export_collisions, harm=Harm.EXPORTS),
    Page(path=f"{PATH}/{{ticket}}", needs=Action.READ, handle=show_collision),
    Form(path=f"{PATH}/{{ticket}}/keep", needs=Action.DECIDE_COLLISIONS, handle=_keep_first, harm=Harm.CHANGES),
    Form(path=f"{PATH}/{{ticket}}/dismiss", needs=Action.DECIDE_COLLISIONS, handle=_dismiss, harm=Harm.CHANGES),
)
