"""Suggestions for the fields of conditions: keys, values, products and stores that contain what a user typed."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from regulars.catalog.counts.products import Product
from regulars.catalog.entries import find_types, list_entries
from regulars.catalog.model import TYPE_LABELS, AttributeType, Catalog, KeyFilter, fold_text, label_key, list_distinct
from regulars.catalog.suggestions import (
    SUGGESTIONS_MAX,
    TYPED_CHARACTERS_MAX,
    find_known_products,
    suggest_products,
    suggest_values,
)
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.stores.find import find_store_names, list_by_name

# Where fields send what the user types.
SUGGESTIONS_PATH: Final = "/suggestions"


class Source(StrEnum):
    """What a field suggests."""

    ATTRIBUTES = "attributes"
    PROPERTIES = "properties"
    ATTRIBUTE_VALUES = "attribute_values"
    PROPERTY_VALUES = "property_values"
    PRODUCTS = "products"
    STORES = "stores"


# The catalog whose keys or values each source suggests.
CATALOGS: Final = {
    Source.ATTRIBUTES: Catalog.ATTRIBUTES,
    Source.PROPERTIES: Catalog.PRODUCTS,
    Source.ATTRIBUTE_VALUES: Catalog.ATTRIBUTES,
    Source.PROPERTY_VALUES: Catalog.PRODUCTS,
}
_OF_VALUES: Final = frozenset({Source.ATTRIBUTE_VALUES, Source.PROPERTY_VALUES})
_NOTHING_FOUND: Final = {
    Source.ATTRIBUTES: "No attribute has this name.",
    Source.PROPERTIES: "No product property has this name.",
    Source.PRODUCTS: "No ticket has a product with this name or code. Enter takes it as a code.",
    Source.STORES: "No store has this name, town or code.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`value` is what the form sends, `name` what the user reads. `times` is how many customers or ticket lines have
    the value."""

    value: str
    name: str
    code: str = ""
    note: str = ""
    times: int | None = None
    product: Product | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """The suggestions of a field, the best first; `message` says why there are none, or whether there may be more."""

    source: Source
    found: Sequence[Suggestion] = ()
    message: str = ""


async def suggest_for_field(
    tx: Tx, organization_id: UUID, source: Source, typed: str, *, key: str = "", sees_personal: bool
) -> Suggestions:
    """Find up to 20 suggestions that contain what the user typed. `key` is the key of suggested values."""
    typed = typed.strip()
    if _is_too_long(source, typed):
        message = f"Type at most {TYPED_CHARACTERS_MAX} characters; these are {len(typed)}."
        return Suggestions(source=source, message=message)
    if "\0" in typed:
        found: Sequence[Suggestion] = ()
    elif source in _OF_VALUES:
        found = await _suggest_values(tx, organization_id, source, key, typed, sees_personal=sees_personal)
    else:
        found = await _SUGGEST[source](tx, organization_id, source, typed)
    message = "" if found else _NOTHING_FOUND.get(source, "")
    if not found and source is Source.PRODUCTS:
        known = await find_known_products(tx, organization_id, [typed])
        message = message if known.is_complete else "Not found yet: tickets are still being counted."
    if len(found) >= SUGGESTIONS_MAX:
        message = f"Only the first {SUGGESTIONS_MAX} are shown. Type more to find others."
    return Suggestions(source=source, found=found, message=message)


async def resolve_typed(
    tx: Tx, organization_id: UUID, source: Source, typed: str, *, key: str = ""
) -> str | Suggestions:
    """Return the value with exactly the typed code or name, in whatever case; else what contains the text. A text that
    nothing contains is returned as it is, because the product may come later, and so is a value of no fixed list."""
    if await _is_value(tx, organization_id, source, typed, key):
        return typed
    # All roles may see the values of a fixed list.
    suggestions = await suggest_for_field(tx, organization_id, source, typed, key=key, sees_personal=False)
    folded = fold_text(typed)
    exact = {it.value for it in suggestions.found if folded in {fold_text(it.value), fold_text(it.name)}}
    if len(exact) == 1:
        return exact.pop()
    return suggestions if suggestions.found or _is_too_long(source, typed) else typed


def _is_too_long(source: Source, typed: str) -> bool:
    """Whether nothing has a name as long as the text; a value may be longer."""
    return len(typed) > TYPED_CHARACTERS_MAX and source not in _OF_VALUES


async def _is_value(tx: Tx, organization_id: UUID, source: Source, typed: str, key: str) -> bool:
    match source:
        case Source.PRODUCTS:
            return typed in (await find_known_products(tx, organization_id, [typed])).by_code
        case Source.STORES:
            return bool(await find_store_names(tx, organization_id, [typed]))
        case Source.ATTRIBUTE_VALUES | Source.PROPERTY_VALUES:
            types = await find_types(tx, organization_id, CATALOGS[source], [key])
            return key not in types or types[key][0] is not AttributeType.ENUM
        case _:
            return False


async def _suggest_keys(tx: Tx, organization_id: UUID, source: Source, typed: str) -> list[Suggestion]:
    page, containing = PageRequest(SUGGESTIONS_MAX), KeyFilter(typed or None)
    found = await list_entries(tx, organization_id, CATALOGS[source], page, containing)
    return [
        Suggestion(value=entry.key, name=label_key(entry.key), code=entry.key, note=TYPE_LABELS[entry.type])
        for entry in found
    ]


async def _suggest_values(
    tx: Tx, organization_id: UUID, source: Source, key: str, typed: str, *, sees_personal: bool
) -> list[Suggestion]:
    """The frequent values; of a fixed list also the others, of which fewer customers have one."""
    catalog = CATALOGS[source]
    frequent = await suggest_values(tx, organization_id, catalog, key, typed, sees_personal=sees_personal)
    found = [Suggestion(value=value, name=value, times=times) for value, times in frequent]
    declared, allowed_values = (await find_types(tx, organization_id, catalog, [key])).get(key, (None, ()))
    if declared is AttributeType.ENUM:
        known = {fold_text(value) for value, _ in frequent}
        others = [value for value in list_distinct(allowed_values) if fold_text(value) not in known]
        found += [Suggestion(value=value, name=value) for value in others if fold_text(typed) in fold_text(value)]
    return found[:SUGGESTIONS_MAX]


async def _suggest_products(tx: Tx, organization_id: UUID, _source: Source, typed: str) -> list[Suggestion]:
    return [
        Suggestion(value=product.code, name=product.name or product.code, code=product.code, product=product)
        for product in await suggest_products(tx, organization_id, typed)
    ]


async def _suggest_stores(tx: Tx, organization_id: UUID, _source: Source, typed: str) -> list[Suggestion]:
    found = await list_by_name(tx, organization_id, PageRequest(SUGGESTIONS_MAX), text=typed)
    return [
        Suggestion(
            value=store.external_id,
            name=store.display_name,
            code=store.external_id,
            note="" if store.address is None else store.address.locality,
        )
        for store, _ in found
    ]


_Suggest = Callable[[Tx, UUID, Source, str], Awaitable[Sequence[Suggestion]]]
_SUGGEST: Final[dict[Source, _Suggest]] = {
    Source.ATTRIBUTES: _suggest_keys,
    Source.PROPERTIES: _suggest_keys,
    Source.PRODUCTS: _suggest_products,
    Source.STORES: _suggest_stores,
}
