"""Find stores by their ids, search them by text, and list and count them."""

from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import replace
from psycopg.sql import SQL

from regulars.kit.columns import fill, names_of
from regulars.kit.db import Tx
from regulars.kit.ids import STORE, Reference, read_reference
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Scan
from regulars.kit.name_search import FOLDED_NAME, NamePatterns
from regulars.kit.referenced_table import ReferencedTable, ReferenceLookup, select_each
from regulars.stores.model import CHANGEABLE, Address, ListedStore, Store, StoreRef

# Addresses that `find_addresses_in_country` and `find_countries` read at most.
STORES_MAX: Final = 10_000
# Rows that one page of a search scans at most, for a text that few stores match.
ROWS_SCANNED_MAX: Final = 5_000
# Smaller than every UUIDv7: a list without a cursor begins after this id.
_BEFORE_ALL = UUID(int=0)
_LIST: Final = fill(
    "SELECT {names} FROM stores WHERE organization_id = %s AND id > %s ORDER BY id LIMIT %s", names=names_of(Store)
)


def _make_store(*row: Any) -> Store:
    store = Store(*row)
    return store if store.address is None else replace(store, address=msgspec.convert(store.address, Address))


STORES: Final = ReferencedTable("stores", names_of(Store), _make_store, changeable=CHANGEABLE)
_REFS: Final = ReferenceLookup(select_each("stores", names_of(StoreRef)), StoreRef)


async def find_stores(tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, StoreRef]:
    """Return the stores that the references name; a reference without a store is not in the result."""
    return await _REFS.find(tx, organization_id, references)


async def find_store(tx: Tx, organization_id: UUID, reference: Reference) -> Store | None:
    return (await STORES.find(tx, organization_id, [reference])).get(reference)


async def name_stores(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the display names of these stores: the name, or the code of a store without one."""
    if not ids:
        return {}
    return await tx.fetch_map(
        "SELECT id, coalesce(name, external_id) FROM stores WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )


async def find_store_names(tx: Tx, organization_id: UUID, texts: Collection[str]) -> dict[str, str]:
    """Return the display names of stores by their external or canonical ids; an unknown id is not in the result."""
    references = {text: read_reference(STORE, text) for text in texts}
    stores = await STORES.find(tx, organization_id, set(references.values())) if references else {}
    return {text: stores[reference].display_name for text, reference in references.items() if reference in stores}


async def find_addresses(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Address]:
    """Return the addresses of these stores; a store without an address is not in the result."""
    if not ids:
        return {}
    rows = await tx.fetch(
        "SELECT id, address FROM stores WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND address IS NOT NULL",
        (organization_id, list(ids)),
    )
    return {row[0]: msgspec.convert(row[1], Address) for row in rows}


async def find_countries(tx: Tx, organization_id: UUID) -> dict[UUID, str]:
    """Return the country code of each store with an address."""
    return await tx.fetch_map(
        """
        SELECT id, address ->> 'country_code' FROM stores WHERE organization_id = %s AND address IS NOT NULL LIMIT %s
        """,
        (organization_id, STORES_MAX),
    )


async def find_addresses_in_country(tx: Tx, organization_id: UUID, country: str) -> list[Address]:
    """Return the addresses of the organization's stores in a country."""
    rows = await tx.fetch(
        "SELECT address FROM stores WHERE organization_id = %s AND address ->> 'country_code' = %s LIMIT %s",
        (organization_id, country, STORES_MAX),
    )
    return [msgspec.convert(row[0], Address) for row in rows]


async def list_stores(tx: Tx, organization_id: UUID, *, after: UUID | None, limit: int) -> list[Store]:
    """Return the stores that follow the id `after`, in the order of their creation."""
    rows = await tx.fetch(_LIST, (organization_id, after or _BEFORE_ALL, limit))
    return [_make_store(*row) for row in rows]


# The expression must be the same as in the index.
_BY_NAME: Final = Keyset({'(left(lower(COALESCE(name, external_id)), 100)) COLLATE "C"': str, "id": UUID})
_LIST_BY_NAME: Final = fill(
    """
    SELECT sorted, {names}
    FROM (
        SELECT (left(lower(COALESCE(name, external_id)), 100)) COLLATE "C" AS sorted, {names}
        FROM stores
        WHERE organization_id = %(organization_id)s {and_after_position}
        ORDER BY {ordered}
        LIMIT %(scan_limit)s
    ) AS stores
    WHERE true {and_filters}
    ORDER BY {ordered}
    LIMIT %(limit)s
    """,
    names=names_of(Store),
)
_FILTERS: Final = {
    "text": """
        (id = %(identifier)s::uuid OR position(%(text)s IN lower(concat_ws(
            ' ', name, external_id, address ->> 'locality', address ->> 'postal_code'))) > 0)
        """
}


async def list_by_name(tx: Tx, organization_id: UUID, page: PageRequest, *, text: str = "") -> PageRows[ListedStore]:
    """Return a page of stores whose name, town or code contains the text, by name, from a limited number of rows."""
    return await _BY_NAME.fetch(
        tx,
        SQL(_LIST_BY_NAME),
        page,
        {"organization_id": organization_id, "text": text.lower() or None, "identifier": STORE.decode(text)},
        make=lambda name, *row: ListedStore(_make_store(*row), (name, str(row[0]))),
        filters=_FILTERS,
        scan=Scan("stores", ROWS_SCANNED_MAX),
    )


_FIND_BY_NAME: Final = fill(
    """
    SELECT {names}
    FROM (
        SELECT (left(lower(COALESCE(name, external_id)), 100)) COLLATE "C" AS sorted, {searched} AS searched, {names}
        FROM stores
        WHERE organization_id = %(organization_id)s
        ORDER BY (left(lower(COALESCE(name, external_id)), 100)) COLLATE "C", id
        LIMIT %(searched_max)s
    ) AS stores
    WHERE searched ~ ALL (%(parts)s::text[])
    ORDER BY searched ~ %(first)s DESC, sorted, id
    LIMIT %(limit)s
    """,
    names=names_of(Store),
    searched=fill(
        FOLDED_NAME, name="concat_ws(' ', name, external_id, address ->> 'locality', address ->> 'postal_code')"
    ),
)


async def find_by_name(tx: Tx, organization_id: UUID, patterns: NamePatterns, *, limit: int) -> list[Store]:
    """Return stores whose name, code, town or postal code matches, by name, from a limited number of rows."""
    rows = await tx.fetch(
        _FIND_BY_NAME,
        {
            "organization_id": organization_id,
            "searched_max": ROWS_SCANNED_MAX,
            "parts": patterns.parts,
            "first": patterns.first,
            "limit": limit,
        },
    )
    return [_make_store(*row) for row in rows]


async def count_stores(tx: Tx, organization_id: UUID, *, count_max: int) -> int:
    """Return the number of stores, counted up to `count_max`."""
    return await tx.fetch_count(
        "SELECT count(*) FROM (SELECT FROM stores WHERE organization_id = %s LIMIT %s) AS counted",
        (organization_id, count_max),
    )
