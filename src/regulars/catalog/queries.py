"""The SQL of the two catalogs."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.rows import TupleRow
from psycopg.sql import SQL

from regulars.catalog.model import AttributeType, Catalog, CatalogEntry
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows


class NewAttribute(NamedTuple):
    key: str
    type: AttributeType
    looks_like_code: bool


def _entry(row: TupleRow) -> CatalogEntry:
    key, declared, allowed_values, created_at, updated_at, *rest = row
    return CatalogEntry(
        key=key,
        type=AttributeType(declared),
        allowed_values=tuple(allowed_values),
        looks_like_code=bool(rest and rest[0]),
        created_at=created_at,
        updated_at=updated_at,
    )


async def find_known_attributes(tx: Tx, organization_id: UUID, keys: Sequence[str]) -> set[str]:
    rows = await tx.fetch(
        "SELECT key FROM profile_attributes WHERE organization_id = %s AND key = ANY (%s::text[])",
        (organization_id, list(keys)),
    )
    return {row[0] for row in rows}


async def find_known_product_keys(tx: Tx, organization_id: UUID, keys: Sequence[str]) -> set[str]:
    rows = await tx.fetch(
        "SELECT key FROM product_properties WHERE organization_id = %s AND key = ANY (%s::text[])",
        (organization_id, list(keys)),
    )
    return {row[0] for row in rows}


async def insert_attributes_if_new(tx: Tx, organization_id: UUID, attributes: Sequence[NewAttribute]) -> None:
    await tx.execute(
        """
        INSERT INTO profile_attributes (organization_id, key, type, looks_like_code, created_at, updated_at)
        SELECT %(organization_id)s, row.key, row.type, row.looks_like_code, %(now)s, %(now)s
        FROM unnest(%(keys)s::text[], %(types)s::text[], %(codes)s::boolean[]) AS row (key, type, looks_like_code)
        ORDER BY row.key
        ON CONFLICT (organization_id, key) DO NOTHING
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "keys": [attribute.key for attribute in attributes],
            "types": [attribute.type.value for attribute in attributes],
            "codes": [attribute.looks_like_code for attribute in attributes],
        },
    )


async def insert_product_keys_if_new(
    tx: Tx, organization_id: UUID, keys: Sequence[str], *, declared: AttributeType
) -> None:
    await tx.execute(
        """
        INSERT INTO product_properties (organization_id, key, type, created_at, updated_at)
        SELECT %(organization_id)s, key, %(type)s, %(now)s, %(now)s
        FROM unnest(%(keys)s::text[]) AS row (key)
        ORDER BY key
        ON CONFLICT (organization_id, key) DO NOTHING
        """,
        {"organization_id": organization_id, "now": tx.now, "type": declared.value, "keys": list(keys)},
    )


async def retype_attribute(
    tx: Tx, organization_id: UUID, key: str, *, declared: AttributeType, allowed_values: Sequence[str]
) -> CatalogEntry | None:
    rows = await tx.fetch(
        """
        UPDATE profile_attributes
        SET type = %(type)s, allowed_values = %(allowed_values)s::text[], updated_at = %(now)s
        WHERE organization_id = %(organization_id)s AND key = %(key)s
        RETURNING key, type, allowed_values, created_at, updated_at
        """,
        {
            "organization_id": organization_id,
            "key": key,
            "type": declared.value,
            "allowed_values": list(allowed_values),
            "now": tx.now,
        },
    )
    return _entry(rows[0]) if rows else None


async def retype_product_property(
    tx: Tx, organization_id: UUID, key: str, *, declared: AttributeType, allowed_values: Sequence[str]
) -> CatalogEntry | None:
    rows = await tx.fetch(
        """
        UPDATE product_properties
        SET type = %(type)s, allowed_values = %(allowed_values)s::text[], updated_at = %(now)s
        WHERE organization_id = %(organization_id)s AND key = %(key)s
        RETURNING key, type, allowed_values, created_at, updated_at
        """,
        {
            "organization_id": organization_id,
            "key": key,
            "type": declared.value,
            "allowed_values": list(allowed_values),
            "now": tx.now,
        },
    )
    return _entry(rows[0]) if rows else None


async def find_entries(tx: Tx, organization_id: UUID, catalog: Catalog, keys: Sequence[str]) -> list[CatalogEntry]:
    find = _find_attributes if catalog is Catalog.ATTRIBUTES else _find_product_properties
    return [_entry(row) for row in await find(tx, organization_id, keys)]


async def _find_attributes(tx: Tx, organization_id: UUID, keys: Sequence[str]) -> list[TupleRow]:
    return await tx.fetch(
        """
        SELECT key, type, allowed_values, created_at, updated_at, looks_like_code FROM profile_attributes
        WHERE organization_id = %s AND key = ANY (%s::text[])
        """,
        (organization_id, list(keys)),
    )


async def _find_product_properties(tx: Tx, organization_id: UUID, keys: Sequence[str]) -> list[TupleRow]:
    return await tx.fetch(
        """
        SELECT key, type, allowed_values, created_at, updated_at FROM product_properties
        WHERE organization_id = %s AND key = ANY (%s::text[])
        """,
        (organization_id, list(keys)),
    )


_BY_KEY: Final = Keyset({"key": str})
_FILTERS: Final = {"containing": "position(%(containing)s IN lower(key)) > 0", "type": "type = %(type)s"}


async def list_entries(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    page: PageRequest,
    *,
    containing: str | None = None,
    declared: AttributeType | None = None,
) -> PageRows[CatalogEntry]:
    return await _BY_KEY.fetch(
        tx,
        _LIST_ATTRIBUTES if catalog is Catalog.ATTRIBUTES else _LIST_PRODUCT_PROPERTIES,
        page,
        {
            "organization_id": organization_id,
            "containing": None if containing is None else containing.lower(),
            "type": None if declared is None else declared.value,
        },
        make=lambda *row: _entry(row),
        filters=_FILTERS,
    )


_LIST_ATTRIBUTES = SQL("""
SELECT key, type, allowed_values, created_at, updated_at, looks_like_code FROM profile_attributes
WHERE organization_id = %(organization_id)s {narrowed} {beyond}
ORDER BY {ordered}
LIMIT %(limit)s
""")
_LIST_PRODUCT_PROPERTIES = SQL("""
SELECT key, type, allowed_values, created_at, updated_at FROM product_properties
WHERE organization_id = %(organization_id)s {narrowed} {beyond}
ORDER BY {ordered}
LIMIT %(limit)s
""")


async def count_entries(tx: Tx, organization_id: UUID, catalog: Catalog, *, at_most: int) -> int:
    """How many keys there are, counted up to so many."""
    count = _COUNT_ATTRIBUTES if catalog is Catalog.ATTRIBUTES else _COUNT_PRODUCT_PROPERTIES
    [(number,)] = await tx.fetch(count, (organization_id, at_most))
    counted: int = number
    return counted


_COUNT_ATTRIBUTES = """
SELECT count(*) FROM (SELECT 1 FROM profile_attributes WHERE organization_id = %s LIMIT %s) AS known
"""
_COUNT_PRODUCT_PROPERTIES = """
SELECT count(*) FROM (SELECT 1 FROM product_properties WHERE organization_id = %s LIMIT %s) AS known
"""
