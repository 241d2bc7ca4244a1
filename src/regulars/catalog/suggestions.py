"""Suggestions for a field in which a user types: values of attributes and product properties, and products.

They come from the counts of all keys. A value is suggested only if at least five customers have it.
"""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from regulars.catalog import entries
from regulars.catalog.counts import counting, products
from regulars.catalog.counts.model import CountJob
from regulars.catalog.counts.products import Product
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry, fold_text, interpret
from regulars.kit.db import Tx
from regulars.kit.name_search import NamePatterns

SUGGESTIONS_MAX: Final = 20
# Products whose names the search of all pages reads: with the stores, segments, journeys and campaigns 20,000 names.
NAMED_PRODUCTS_MAX: Final = 12_500
# No stored value or product that is suggested is longer.
TYPED_CHARACTERS_MAX: Final = 255
# Types whose values staff declared, so that they say nothing about one customer.
_DECLARED_TYPES: Final = frozenset({AttributeType.ENUM, AttributeType.BOOLEAN})


class SuggestedValue(NamedTuple):
    """A value, and how many customers have it, or how many ticket lines have it for a product property."""

    value: str
    times: int


class KnownProducts(NamedTuple):
    """The products with some codes. Unless all tickets are counted, a missing product may still have been sold."""

    by_code: dict[str, Product]
    is_complete: bool


async def suggest_values(
    tx: Tx, organization_id: UUID, catalog: Catalog, key: str, typed: str, *, sees_personal: bool
) -> list[SuggestedValue]:
    """Suggest values of a key that contain what the user typed, most frequent first. Without the permission to see
    personal data there are none of a customer attribute, unless staff declared its values."""
    found = await entries.find_entries(tx, organization_id, catalog, [key])
    if not found or len(typed) > TYPED_CHARACTERS_MAX:
        return []
    entry = found[0]
    if not sees_personal and catalog is Catalog.ATTRIBUTES and entry.type not in _DECLARED_TYPES:
        return []
    count = await _find_count(tx, organization_id, catalog)
    tallies = await counting.find_tallies(tx, organization_id, count, [key])
    if key not in tallies:
        return []
    return _rank(tallies[key].list_frequent(), entry, fold_text(typed))[:SUGGESTIONS_MAX]


async def suggest_products(tx: Tx, organization_id: UUID, typed: str) -> list[Product]:
    """Suggest products whose code or name contains what the user typed, those that sold most first."""
    count = await _find_count(tx, organization_id, Catalog.PRODUCTS)
    if count is None or len(typed) > TYPED_CHARACTERS_MAX or "\0" in typed:
        return []
    return await products.search_products(tx, organization_id, count.id, typed, limit=SUGGESTIONS_MAX)


async def find_products_by_name(tx: Tx, organization_id: UUID, patterns: NamePatterns, *, limit: int) -> list[Product]:
    """Return products whose code or name matches, those that sold most first."""
    count = await _find_count(tx, organization_id, Catalog.PRODUCTS)
    if count is None:
        return []
    return await products.search_by_name(
        tx, organization_id, count.id, patterns, searched_max=NAMED_PRODUCTS_MAX, limit=limit
    )


async def find_known_products(tx: Tx, organization_id: UUID, codes: Collection[str]) -> KnownProducts:
    """Return the products with these codes that were on a ticket."""
    if not codes:
        return KnownProducts({}, is_complete=True)
    count = await _find_count(tx, organization_id, Catalog.PRODUCTS)
    if count is None:
        return KnownProducts({}, is_complete=False)
    found = await products.find_products(tx, organization_id, count.id, codes)
    is_complete = len(found) == len(set(codes)) or (
        count.finished_at is not None and await products.has_all(tx, organization_id, count.id)
    )
    return KnownProducts(found, is_complete=is_complete)


async def _find_count(tx: Tx, organization_id: UUID, catalog: Catalog) -> CountJob | None:
    """Return the last finished count of all keys, or the first one while it runs."""
    counts = await counting.find_full_counts(tx, organization_id, catalog)
    return counts.done or counts.current


def _rank(values: list[tuple[str, int]], entry: CatalogEntry, typed: str) -> list[SuggestedValue]:
    """The values that fit the type and contain what was typed; spellings of one value are added up as the first."""
    times_by_value: dict[str, SuggestedValue] = {}
    for value, times in values:
        interpreted = interpret(entry.type, value, allowed_values=entry.allowed_values)
        if interpreted is None or typed not in fold_text(value):
            continue
        shown = interpreted if isinstance(interpreted, str) else value
        first = times_by_value.get(fold_text(shown), SuggestedValue(shown, 0))
        times_by_value[fold_text(shown)] = first._replace(times=first.times + times)
    return sorted(times_by_value.values(), key=lambda suggested: -suggested.times)
