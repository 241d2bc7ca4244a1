"""The attribute catalog and the product catalog: keys, how many values their type can read, and a change of type that
is counted before it is confirmed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.catalog import find
from regulars.catalog.counts import request, results
from regulars.catalog.counts.model import Count, State, Tally
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry, KeyFilter
from regulars.catalog.retype import ALLOWED_VALUES_MAX
from regulars.kit.db import Tx
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import COUNT_MAX, Filter, cut, read_view
from regulars.web.listing import Count as Matches
from regulars.web.render import redirect, render, render_form
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Page
from regulars.web.visit import Visit

ALLOWED_VALUE_CHARACTERS_MAX: Final = 2_048
VALUES_SHOWN_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Use:
    """Something that reads a key: what it is called, and its address below the organization."""

    label: str
    path: str
    # Whoever may not do this does not learn of it.
    needs: Action = Action.READ


# Who reads a key; rooms above tell it through the composition root.
FindUses = Callable[[Tx, UUID, Catalog, str], Awaitable[Sequence[Use]]]


@dataclass(frozen=True, slots=True)
class Words:
    """What the pages of one catalog call things."""

    catalog: Catalog
    path: str
    title: str
    key: str
    rows: str
    holders: str


WORDS: Final = (
    Words(Catalog.ATTRIBUTES, "/attributes", "Attributes", "attribute", "customers", "Customers"),
    Words(Catalog.PRODUCTS, "/products", "Product properties", "property", "tickets", "Lines"),
)
TYPES: Final = (
    (AttributeType.TEXT, "text", "As it was sent"),
    (AttributeType.NUMBER, "number", "12 or -3.5"),
    (AttributeType.BOOLEAN, "boolean", "true or false"),
    (AttributeType.DATE, "date", "2026-11-15, or with a time"),
    (AttributeType.CURRENCY, "currency", "An amount, such as 12.50"),
    (AttributeType.ENUM, "enum", "One of a closed list"),
)
WHY_UNREAD: Final = {
    AttributeType.NUMBER: "not a number",
    AttributeType.CURRENCY: "not an amount",
    AttributeType.BOOLEAN: "neither true nor false",
    AttributeType.DATE: "not a date",
    AttributeType.ENUM: "not in the list",
}


def pages(*, uses: Sequence[FindUses] = ()) -> tuple[Page, ...]:
    return tuple(page for words in WORDS for page in _pages_of(_Desk(words, tuple(uses))))


def _pages_of(desk: "_Desk") -> tuple[Page, ...]:
    path = desk.words.path
    edit = partial(Form, needs=Action.EDIT_CATALOGS, bytes_max=LARGE_FORM_BYTES_MAX)
    return (
        Page(path=path, needs=Action.READ, handle=desk.list),
        Page(path=f"{path}/{{key}}", needs=Action.READ, handle=desk.show),
        edit(path=f"{path}/count", handle=desk.count),
        edit(path=f"{path}/{{key}}/preview", handle=desk.preview),
        edit(path=f"{path}/{{key}}/confirm", handle=desk.confirm),
        edit(path=f"{path}/{{key}}/cancel", handle=desk.cancel),
    )


class _Desk:
    """The pages of one catalog."""

    def __init__(self, words: Words, uses: tuple[FindUses, ...]) -> None:
        self.words = words
        self._uses = uses

    async def list(self, visit: Visit) -> Response:
        types = tuple((kind.value, kind.value) for kind in AttributeType)
        filters = (
            Filter("q", f"Find a {self.words.key}", kind="search", placeholder="Find a key"),
            Filter("type", "Type", types),
        )
        view = read_view(visit, self.words.catalog.value, self.words.path, filters=filters, sorts=("key",))
        declared = view.value("type")
        async with visit.database.reading() as tx:
            wanted = KeyFilter(view.value("q") or None, AttributeType(declared) if declared else None)
            found = await find.browse_entries(tx, visit.organization_id, self.words.catalog, view.request, wanted)
            page = cut(view, found, lambda entry: (entry.key,))
            count = await find.count_entries(tx, visit.organization_id, self.words.catalog, at_most=COUNT_MAX + 1)
            overviews = await results.find_overviews(tx, visit.organization_id, self.words.catalog)
            keys = [entry.key for entry in page.rows]
            tallies = await results.find_tallies(tx, visit.organization_id, overviews.done, keys)
        return render(
            visit,
            "catalog/list.html",
            words=self.words,
            view=view,
            page=page,
            keys_total=Matches(count),
            overviews=overviews,
            tallies=tallies,
            unread=sum(tally.unreadable for tally in tallies.values()),
        )

    async def show(self, visit: Visit) -> Response:
        return await self._entry_page(visit, FormState())

    async def count(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            await request.count_every_key(tx, visit.organization_id, self.words.catalog)
        return redirect(visit, visit.url(self.words.path))

    async def preview(self, visit: Visit) -> Response:
        """Count the stored values by the type that was chosen; nothing changes yet."""
        form = FormState(visit.form)
        key = visit.references[0]
        declared = form.choice("type", [kind.value for kind in AttributeType])
        allowed = _read_values(form) if declared == AttributeType.ENUM else ()
        if form.is_refused:
            return await self._entry_page(visit, form)
        async with visit.database.transaction() as tx:
            await self._entry(tx, visit)
            await request.preview_type(
                tx,
                visit.organization_id,
                self.words.catalog,
                key,
                declared=AttributeType(declared),
                allowed_values=allowed,
            )
        return redirect(visit, visit.url(self.words.path, key) + "#preview")

    async def confirm(self, visit: Visit) -> Response:
        """Take the type that was counted. The preview itself says which, so a form cannot name another."""
        key = visit.references[0]
        async with visit.database.transaction() as tx:
            entry = await self._entry(tx, visit)
            preview = await results.find_preview(tx, visit.organization_id, self.words.catalog, key)
            changed = None
            if preview is not None and str(preview.id) == visit.form.get("preview"):
                changed = await request.confirm(tx, visit.organization_id, preview)
            if changed is not None:
                before, after = {"type": str(entry.type)}, {"type": str(changed.type)}
                act = f"{self.words.catalog.value}.type"
                await record(tx, visit.organization_id, actor_of(visit), act, key, before=before, after=after)
        if changed is None:
            done = "The type was not changed: its preview is gone or not finished. Count again."
        else:
            done = f"{key} is read as {changed.type} now; it was {entry.type}. No stored value was changed."
        return redirect(visit, visit.url(self.words.path, key), done=done)

    async def cancel(self, visit: Visit) -> Response:
        key = visit.references[0]
        async with visit.database.transaction() as tx:
            preview = await results.find_preview(tx, visit.organization_id, self.words.catalog, key)
            if preview is not None:
                await request.drop(tx, visit.organization_id, [preview.id])
        return redirect(visit, visit.url(self.words.path, key))

    async def _entry(self, tx: Tx, visit: Visit) -> CatalogEntry:
        entry = await find.find_entry(tx, visit.organization_id, self.words.catalog, visit.references[0])
        if entry is None:
            raise PageNotFound("No value was ever sent under this key.")
        return entry

    async def _entry_page(self, visit: Visit, form: FormState) -> Response:
        async with visit.database.reading() as tx:
            entry = await self._entry(tx, visit)
            preview = await results.find_preview(tx, visit.organization_id, self.words.catalog, entry.key)
            counted = await results.find_tallies(tx, visit.organization_id, preview)
            overviews = await results.find_overviews(tx, visit.organization_id, self.words.catalog)
            tallies = await results.find_tallies(tx, visit.organization_id, overviews.done, [entry.key])
            uses = [
                use
                for ask_uses in self._uses
                for use in await ask_uses(tx, visit.organization_id, self.words.catalog, entry.key)
                if visit.may(use.needs)
            ]
        if not form.values:
            form.values = _as_it_stands(entry, preview)
        values: dict[str, Any] = {
            "words": self.words,
            "entry": entry,
            "preview": preview,
            "proposed": counted.get(entry.key, Tally()),
            "overview": overviews.done,
            "tally": tallies.get(entry.key),
            "uses": uses,
            "types": TYPES,
            "why": WHY_UNREAD,
            "values_shown_max": VALUES_SHOWN_MAX,
            "is_running": preview is not None and preview.state is State.RUNNING,
            "has_failed": preview is not None and preview.state is State.FAILED,
        }
        return render_form(visit, "catalog/entry.html", form, **values)


def _read_values(form: FormState) -> tuple[str, ...]:
    """The closed list of an enum, one value a line."""
    values = tuple(dict.fromkeys(line.strip() for line in form.value("values").splitlines() if line.strip()))
    if not values:
        form.refuse("values", "Write at least one value, each on a line of its own.")
    elif len(values) > ALLOWED_VALUES_MAX:
        form.refuse("values", f"At most {ALLOWED_VALUES_MAX} values; this has {len(values)}.")
    elif any(len(value) > ALLOWED_VALUE_CHARACTERS_MAX for value in values):
        form.refuse("values", f"A value may have {ALLOWED_VALUE_CHARACTERS_MAX} characters.")
    return values


def _as_it_stands(entry: CatalogEntry, preview: Count | None) -> dict[str, str]:
    """The form as the proposal says, or as the key is read now."""
    if preview is not None and preview.type is not None:
        return {"type": preview.type.value, "values": "\n".join(preview.allowed_values)}
    return {"type": entry.type.value, "values": "\n".join(entry.allowed_values)}
