"""The SQL of the two catalogs."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.catalog.model import AttributeType, Catalog, CatalogEntry, KeyFilter
from regulars.kit.arrays import Booleans, Labels, Texts
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows


class NewAttribute(NamedTuple):
    key: str
    type: AttributeType
    looks_like_code: bool


_TABLES: Final = {Catalog.ATTRIBUTES: SQL("profile_attributes"), Catalog.PRODUCTS: SQL("product_properties")}
# Only attributes are ever taken for a code.
_COLUMNS: Final = {
    Catalog.ATTRIBUTES: SQL("key, type, allowed_values, looks_like_code, created_at, updated_at"),
    Catalog.PRODUCTS: SQL("key, type, allowed_values, false, created_at, updated_at"),
}


def _entry(*row: Any) -> CatalogEntry:
    key, declared, allowed_values, looks_like_code, created_at, updated_at = row
    return CatalogEntry(
        key=key,
        type=AttributeType(declared),
        allowed_values=tuple(allowed_values),
        looks_like_code=looks_like_code,
        created_at=created_at,
        updated_at=updated_at,
    )


async def find_known_keys(tx: Tx, organization_id: UUID, catalog: Catalog, keys: Sequence[str]) -> set[str]:
    rows = await tx.fetch(
        SQL("SELECT key FROM {table} WHERE organization_id = %s AND key = ANY (%s::text[])").format(
            table=_TABLES[catalog]
        ),
        (organization_id, list(keys)),
    )
    return {row[0] for row in rows}


_ATTRIBUTES: Final = Columns(key=Texts, type=(Labels, "type.value"), looks_like_code=Booleans)
_INSERT_ATTRIBUTES: Final = _ATTRIBUTES.write(
    """
    INSERT INTO profile_attributes (organization_id, created_at, updated_at, {columns})
    SELECT %(organization_id)s, %(now)s, %(now)s, it.* FROM {rows}
    ORDER BY it.key
    ON CONFLICT (organization_id, key) DO NOTHING
    """
)


async def insert_attributes_if_new(tx: Tx, organization_id: UUID, attributes: Sequence[NewAttribute]) -> None:
    await tx.execute(
        _INSERT_ATTRIBUTES, {"organization_id": organization_id, "now": tx.now, **_ATTRIBUTES.of(attributes)}
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


async def retype(
    tx: Tx, organization_id: UUID, catalog: Catalog, key: str, *, declared: AttributeType, allowed_values: Sequence[str]
) -> CatalogEntry | None:
    rows = await tx.fetch(
        SQL(
            """
            UPDATE {table}
            SET type = %(type)s, allowed_values = %(allowed_values)s::text[], updated_at = %(now)s
            WHERE organization_id = %(organization_id)s AND key = %(key)s
            RETURNING {columns}
            """
        ).format(table=_TABLES[catalog], columns=_COLUMNS[catalog]),
        {
            "organization_id": organization_id,
            "key": key,
            "type": declared.value,
            "allowed_values": list(allowed_values),
            "now": tx.now,
        },
    )
    return _entry(*rows[0]) if rows else None


async def find_entries(tx: Tx, organization_id: UUID, catalog: Catalog, keys: Sequence[str]) -> list[CatalogEntry]:
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM {table} WHERE organization_id = %s AND key = ANY (%s::text[])").format(
            table=_TABLES[catalog], columns=_COLUMNS[catalog]
        ),
        (organization_id, list(keys)),
    )
    return [_entry(*row) for row in rows]


_BY_KEY: Final = Keyset({"key": str})
_FILTERS: Final = {"containing": "position(%(containing)s IN lower(key)) > 0", "type": "type = %(type)s"}


async def list_entries(
    tx: Tx, organization_id: UUID, catalog: Catalog, page: PageRequest, wanted: KeyFilter
) -> PageRows[CatalogEntry]:
    return await _BY_KEY.fetch(
        tx,
        SQL(
            """
            SELECT {columns} FROM {table}
            WHERE organization_id = %(organization_id)s {narrowed} {beyond}
            ORDER BY {ordered}
            LIMIT %(limit)s
            """
        ),
        page,
        {
            "organization_id": organization_id,
            "containing": None if wanted.containing is None else wanted.containing.lower(),
            "type": None if wanted.declared is None else wanted.declared.value,
        },
        make=_entry,
        filters=_FILTERS,
        table=_TABLES[catalog],
        columns=_COLUMNS[catalog],
    )


async def count_entries(tx: Tx, organization_id: UUID, catalog: Catalog, *, at_most: int) -> int:
    """How many keys there are, counted up to so many."""
    [(number,)] = await tx.fetch(
        SQL("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE organization_id = %s LIMIT %s) AS known").format(
            table=_TABLES[catalog]
        ),
        (organization_id, at_most),
    )
    return int(number)
