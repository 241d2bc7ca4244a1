"""Pages of the attribute catalog and the product catalog: the keys, how many of their values fit their type, and a form
that changes a type after a count has shown how many values fit the new one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.catalog import entries
from regulars.catalog.counts import counting
from regulars.catalog.counts.model import CountJob, JobState, Tally
from regulars.catalog.model import TYPE_LABELS, AttributeType, Catalog, CatalogEntry, KeyFilter
from regulars.kit.db import Tx
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import COUNT_MAX, Count, Filter, make_page, read_view
from regulars.web.render import redirect, render, render_form
from regulars.web.route import LARGE_FORM_BYTES_MAX, Form, Harm, Page
from regulars.web.visit import Visit

ALLOWED_VALUE_CHARACTERS_MAX: Final = 2_048
VALUES_SHOWN_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A use of a key, such as a segment with a condition on the key: its label, and its path below the organization."""

    label: str
    path: str
    # A user without this permission does not see the use.
    needs: Action = Action.READ


# Finds the uses of a key; `server.py` passes in a function of each module that uses keys.
FindUses = Callable[[Tx, UUID, Catalog, str], Awaitable[Sequence[KeyUse]]]


@dataclass(frozen=True, slots=True)
class CatalogLabels:
    """The labels of one catalog. `key` and `keys` are what it lists, `whole_key` says of whom a key is,
    `rows` names the rows that a count reads, `occurrences` what has the values."""

    catalog: Catalog
    path: str
    title: str
    key: str
    keys: str
    whole_key: str
    rows: str
    occurrences: str
    search: str


LABELS: Final = (
    CatalogLabels(
        Catalog.ATTRIBUTES,
        "/attributes",
        "Customer attributes",
        "attribute",
        "attributes",
        "Customer attribute",
        "customers",
        "Customers",
        "Find an attribute",
    ),
    CatalogLabels(
        Catalog.PRODUCTS,
        "/products",
        "Product properties",
        "property",
        "properties",
        "Product property",
        "tickets",
        "Ticket lines",
        "Find a property",
    ),
)
# An example of each type.
TYPES: Final = (
    (AttributeType.TEXT, "as it was sent"),
    (AttributeType.NUMBER, "12 or -3.5"),
    (AttributeType.BOOLEAN, "only these two values"),
    (AttributeType.DATE, "2026-11-15, or with a time"),
    (AttributeType.CURRENCY, "such as 12.50"),
    (AttributeType.ENUM, "one of the values that you list"),
)
# Why a value does not fit a type.
WHY_UNREADABLE: Final = {
    AttributeType.NUMBER: "not a number",
    AttributeType.CURRENCY: "not an amount",
    AttributeType.BOOLEAN: "neither true nor false",
    AttributeType.DATE: "not a date",
    AttributeType.ENUM: "not in the list",
}


def pages(*, uses: Sequence[FindUses] = ()) -> tuple[Page, ...]:
    return tuple(page for labels in LABELS for page in _pages_of(_CatalogPages(labels, tuple(uses))))


def _pages_of(catalog: "_CatalogPages") -> tuple[Page, ...]:
    path = catalog.labels.path
    edit = partial(Form, needs=Action.EDIT_CATALOGS, bytes_max=LARGE_FORM_BYTES_MAX, harm=Harm.CHANGES)
    return (
        Page(path=path, needs=Action.READ, handle=catalog.list),
        Page(path=f"{path}/{{key}}", needs=Action.READ, handle=catalog.show),
        edit(path=f"{path}/count", handle=catalog.count),
        edit(path=f"{path}/{{key}}/preview", handle=catalog.preview),
        edit(path=f"{path}/{{key}}/confirm", handle=catalog.confirm),
        edit(path=f"{path}/{{key}}/cancel", handle=catalog.cancel),
    )


class _CatalogPages:
    """The pages of one catalog."""

    def __init__(self, labels: CatalogLabels, uses: tuple[FindUses, ...]) -> None:
        self.labels = labels
        self._uses = uses

    async def list(self, visit: Visit) -> Response:
        types = tuple((kind.value, TYPE_LABELS[kind]) for kind in AttributeType)
        filters = (
            Filter("q", self.labels.search, kind="search", placeholder=self.labels.search),
            Filter("type", "Type", types),
        )
        view = read_view(visit, self.labels.catalog.value, self.labels.path, filters=filters, sorts=("key",))
        declared = view.value("type")
        async with visit.database.reading() as tx:
            key_filter = KeyFilter(view.value("q") or None, AttributeType(declared) if declared else None)
            rows = await entries.list_entries(tx, visit.organization_id, self.labels.catalog, view.request, key_filter)
            page = make_page(view, rows, lambda entry: (entry.key,))
            # One more than pages show, which is then `10,000+`.
            keys_total = await entries.count_entries(
                tx, visit.organization_id, self.labels.catalog, count_max=COUNT_MAX + 1
            )
            full_counts = await counting.find_full_counts(tx, visit.organization_id, self.labels.catalog)
            keys = [entry.key for entry in page.rows]
            tallies = await counting.find_tallies(tx, visit.organization_id, full_counts.done, keys)
        return render(
            visit,
            "catalog/list.html",
            labels=self.labels,
            view=view,
            page=page,
            keys_total=Count(keys_total),
            full_counts=full_counts,
            tallies=tallies,
            unreadable=sum(tally.unreadable for tally in tallies.values()),
            type_labels=TYPE_LABELS,
        )

    async def count(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            await counting.count_every_key(tx, visit.organization_id, self.labels.catalog)
        return redirect(visit, visit.url(self.labels.path))

    async def preview(self, visit: Visit) -> Response:
        """Count how many stored values fit the chosen type; nothing changes yet."""
        form = FormState(visit.form, again=self.show)
        key = visit.references[0]
        declared = form.choice("type", [kind.value for kind in AttributeType])
        allowed = _read_values(form) if declared == AttributeType.ENUM else ()
        form.check()
        async with visit.database.transaction() as tx:
            await self._entry(tx, visit)
            await counting.preview_type(
                tx,
                visit.organization_id,
                self.labels.catalog,
                key,
                declared=AttributeType(declared),
                allowed_values=allowed,
            )
        return redirect(visit, visit.url(self.labels.path, key) + "#preview")

    async def confirm(self, visit: Visit) -> Response:
        """Give the key the type that was counted. It is read from the stored count, so the form cannot set another."""
        key = visit.references[0]
        async with visit.database.transaction() as tx:
            entry = await self._entry(tx, visit)
            preview = await counting.find_preview(tx, visit.organization_id, self.labels.catalog, key)
            changed = None
            if preview is not None and str(preview.id) == visit.form.get("preview"):
                changed = await counting.confirm_preview(tx, visit.organization_id, preview)
            if changed is not None:
                before, after = {"type": str(entry.type)}, {"type": str(changed.type)}
                await record_act(tx, visit, f"{self.labels.catalog.value}.type", key, before=before, after=after)
        if changed is None:
            done = "The type was not changed, because the preview is gone or not finished. Preview the change again."
        else:
            before_label, after_label = TYPE_LABELS[entry.type], TYPE_LABELS[changed.type]
            done = f"The type of {key} changed from {before_label} to {after_label}. No stored value was changed."
        return redirect(visit, visit.url(self.labels.path, key), done=done)

    async def cancel(self, visit: Visit) -> Response:
        key = visit.references[0]
        async with visit.database.transaction() as tx:
            preview = await counting.find_preview(tx, visit.organization_id, self.labels.catalog, key)
            if preview is not None:
                await counting.delete_counts(tx, visit.organization_id, [preview.id])
        return redirect(visit, visit.url(self.labels.path, key))

    async def _entry(self, tx: Tx, visit: Visit) -> CatalogEntry:
        found = await entries.find_entries(tx, visit.organization_id, self.labels.catalog, [visit.references[0]])
        if not found:
            raise PageNotFound(f"No value was ever sent for a {self.labels.whole_key.lower()} with this name.")
        return found[0]

    async def show(self, visit: Visit, form: FormState | None = None) -> Response:
        async with visit.database.reading() as tx:
            entry = await self._entry(tx, visit)
            preview = await counting.find_preview(tx, visit.organization_id, self.labels.catalog, entry.key)
            preview_tallies = await counting.find_tallies(tx, visit.organization_id, preview)
            full_counts = await counting.find_full_counts(tx, visit.organization_id, self.labels.catalog)
            tallies = await counting.find_tallies(tx, visit.organization_id, full_counts.done, [entry.key])
            uses = [
                use
                for find_uses in self._uses
                for use in await find_uses(tx, visit.organization_id, self.labels.catalog, entry.key)
                if visit.may(use.needs)
            ]
        values: dict[str, Any] = {
            "labels": self.labels,
            "entry": entry,
            "preview": preview,
            "proposed": preview_tallies.get(entry.key, Tally()),
            "full_count": full_counts.done,
            "tally": tallies.get(entry.key),
            "uses": uses,
            "types": TYPES,
            "type_labels": TYPE_LABELS,
            "why_unreadable": WHY_UNREADABLE,
            "values_shown_max": VALUES_SHOWN_MAX,
            "is_running": preview is not None and preview.state is JobState.RUNNING,
            "has_failed": preview is not None and preview.state is JobState.FAILED,
        }
        return render_form(visit, "catalog/entry.html", form or _fill_form(entry, preview), **values)


def _read_values(form: FormState) -> tuple[str, ...]:
    """Read the allowed values of an enum from the form, one value per line."""
    values = tuple(dict.fromkeys(line.strip() for line in form.value("values").splitlines() if line.strip()))
    if not values:
        form.refuse("values", "Enter at least one value, one per line.")
    elif len(values) > entries.ALLOWED_VALUES_MAX:
        form.refuse("values", f"At most {entries.ALLOWED_VALUES_MAX} values; this has {len(values)}.")
    elif any(len(value) > ALLOWED_VALUE_CHARACTERS_MAX for value in values):
        form.refuse("values", f"A value may have at most {ALLOWED_VALUE_CHARACTERS_MAX} characters.")
    return values


def _fill_form(entry: CatalogEntry, preview: CountJob | None) -> FormState:
    """Return the form with the type that the user has proposed and not confirmed, else with the key's type."""
    if preview is not None and preview.type is not None:
        return FormState({"type": preview.type.value, "values": "\n".join(preview.allowed_values)})
    return FormState({"type": entry.type.value, "values": "\n".join(entry.allowed_values)})
