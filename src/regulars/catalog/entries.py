"""The entries (keys with their types) of the two catalogs: find them, register new keys, and change their types.

A caller need not declare a key before sending it. A change of type does not change stored values: those that do not fit
the new type match no filter until the type changes again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from psycopg.sql import SQL

from regulars.catalog.counts.first_count import begin_first_count
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry, KeyFilter, has_leading_zeros, infer_type
from regulars.kit.arrays import Booleans, Labels, Texts
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.kit.errors import invalid
from regulars.kit.keyset import Keyset, PageRequest, PageRows

# Keys are indexed, and an entry of a PostgreSQL index has at most about 2,700 bytes. A longer product key is stored
# with its sale, but is not in the catalog.
PRODUCT_KEY_BYTES_MAX: Final = 2_000
ALLOWED_VALUES_MAX: Final = 1_000
_TABLES: Final = {Catalog.ATTRIBUTES: SQL("profile_attributes"), Catalog.PRODUCTS: SQL("product_properties")}
# Only attributes have the column `looks_like_code`: whether the first value was a number with leading zeros.
_COLUMNS: Final = {
    Catalog.ATTRIBUTES: SQL("key, type, allowed_values, looks_like_code, created_at, updated_at"),
    Catalog.PRODUCTS: SQL("key, type, allowed_values, false, created_at, updated_at"),
}


def _entry(*row: Any) -> CatalogEntry:
    return msgspec.convert(dict(zip(CatalogEntry.__struct_fields__, row, strict=True)), CatalogEntry)


async def find_entries(tx: Tx, organization_id: UUID, catalog: Catalog, keys: Collection[str]) -> list[CatalogEntry]:
    """Return the entries of these keys; an unknown key is not in the result."""
    # PostgreSQL accepts no parameter with a zero byte, and no key has one.
    valid = sorted(key for key in keys if "\0" not in key)
    if not valid:
        return []
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM {table} WHERE organization_id = %s AND key = ANY (%s::text[])").format(
            table=_TABLES[catalog], columns=_COLUMNS[catalog]
        ),
        (organization_id, valid),
    )
    return [_entry(*row) for row in rows]


async def find_types(
    tx: Tx, organization_id: UUID, catalog: Catalog, keys: Collection[str]
) -> dict[str, tuple[AttributeType, tuple[str, ...]]]:
    """Return the types of these keys, and for an enum its allowed values; an unknown key is not in the result."""
    found = await find_entries(tx, organization_id, catalog, keys)
    return {entry.key: (entry.type, entry.allowed_values) for entry in found}


_BY_KEY: Final = Keyset({"key": str})
_FILTERS: Final = {"containing": "position(%(containing)s IN lower(key)) > 0", "type": "type = %(type)s"}


async def list_entries(
    tx: Tx, organization_id: UUID, catalog: Catalog, page: PageRequest, key_filter: KeyFilter | None = None
) -> PageRows[CatalogEntry]:
    """Return a page of the entries, in the order of their keys."""
    containing, declared = key_filter or KeyFilter()
    return await _BY_KEY.fetch(
        tx,
        """
        SELECT {columns} FROM {table}
        WHERE organization_id = %(organization_id)s {and_filters} {and_after_position}
        ORDER BY {ordered}
        LIMIT %(limit)s
        """,
        page,
        {
            "organization_id": organization_id,
            "containing": None if containing is None else containing.lower(),
            "type": None if declared is None else declared.value,
        },
        make=_entry,
        filters=_FILTERS,
        table=_TABLES[catalog],
        columns=_COLUMNS[catalog],
    )


async def find_among_first(
    tx: Tx, organization_id: UUID, catalog: Catalog, keys: Collection[str], *, limit: int
) -> set[str]:
    """Return those of the keys that are among the first keys in alphabetical order."""
    found = await tx.fetch_column(
        SQL(
            """
            SELECT key FROM (SELECT key FROM {table} WHERE organization_id = %s ORDER BY key LIMIT %s) AS first
            WHERE key = ANY (%s::text[])
            """
        ).format(table=_TABLES[catalog]),
        (organization_id, limit, list(keys)),
    )
    return set(found)


async def count_entries(tx: Tx, organization_id: UUID, catalog: Catalog, *, count_max: int) -> int:
    """Return the number of keys, counted up to `count_max`."""
    return await tx.fetch_count(
        SQL("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE organization_id = %s LIMIT %s) AS known").format(
            table=_TABLES[catalog]
        ),
        (organization_id, count_max),
    )


class _NewAttribute(NamedTuple):
    key: str
    type: AttributeType
    has_leading_zeros: bool


_ATTRIBUTES: Final = Columns(key=Texts, type=(Labels, "type.value"), looks_like_code=(Booleans, "has_leading_zeros"))
_INSERT_ATTRIBUTES: Final = _ATTRIBUTES.write(
    """
    INSERT INTO profile_attributes (organization_id, created_at, updated_at, {columns})
    SELECT %(organization_id)s, %(now)s, %(now)s, it.* FROM {rows}
    ORDER BY it.key
    ON CONFLICT (organization_id, key) DO NOTHING
    """
)


async def register_attributes(tx: Tx, organization_id: UUID, first_values: Mapping[str, str]) -> None:
    """Register those of the keys that are unknown, each with the type of its first value.

    Two transactions may register the same new key: the insert of the second waits for the first and then does nothing,
    so the first value to be committed decides the type. Keys are inserted in order, so two transactions that share
    several keys cannot deadlock.
    """
    if not first_values:
        return
    known = await _find_known_keys(tx, organization_id, Catalog.ATTRIBUTES, sorted(first_values))
    unknown = [
        _NewAttribute(key, infer_type(value), has_leading_zeros(value))
        for key, value in first_values.items()
        if key not in known
    ]
    if unknown:
        await tx.execute(
            _INSERT_ATTRIBUTES, {"organization_id": organization_id, "now": tx.now, **_ATTRIBUTES.of(unknown)}
        )
        await begin_first_count(tx, organization_id, Catalog.ATTRIBUTES)


async def register_product_keys(tx: Tx, organization_id: UUID, keys: Collection[str]) -> None:
    """Register those of the keys that are unknown; every product property starts as text."""
    indexable = sorted({key for key in keys if len(key.encode()) <= PRODUCT_KEY_BYTES_MAX})
    if not indexable:
        return
    known = await _find_known_keys(tx, organization_id, Catalog.PRODUCTS, indexable)
    unknown = [key for key in indexable if key not in known]
    if unknown:
        await tx.execute(
            """
            INSERT INTO product_properties (organization_id, key, type, created_at, updated_at)
            SELECT %(organization_id)s, key, %(type)s, %(now)s, %(now)s
            FROM unnest(%(keys)s::text[]) AS row (key)
            ORDER BY key
            ON CONFLICT (organization_id, key) DO NOTHING
            """,
            {"organization_id": organization_id, "now": tx.now, "type": AttributeType.TEXT.value, "keys": unknown},
        )


async def _find_known_keys(tx: Tx, organization_id: UUID, catalog: Catalog, keys: Sequence[str]) -> set[str]:
    rows = await tx.fetch(
        SQL("SELECT key FROM {table} WHERE organization_id = %s AND key = ANY (%s::text[])").format(
            table=_TABLES[catalog]
        ),
        (organization_id, list(keys)),
    )
    return {row[0] for row in rows}


async def retype(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    key: str,
    *,
    declared: AttributeType,
    allowed_values: Sequence[str] = (),
) -> CatalogEntry | None:
    """Give a key another type; None if the key is unknown."""
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
            "allowed_values": check_allowed_values(declared, allowed_values),
            "now": tx.now,
        },
    )
    return _entry(*rows[0]) if rows else None


def check_allowed_values(declared: AttributeType, allowed_values: Sequence[str]) -> list[str]:
    """Return the allowed values without duplicates; an enum needs at least one, any other type has none."""
    if declared is not AttributeType.ENUM:
        return []
    values = list(dict.fromkeys(allowed_values))
    if not values:
        raise invalid("allowed_values", "REQUIRED", "An enum needs at least one allowed value.")
    if len(values) > ALLOWED_VALUES_MAX:
        raise invalid("allowed_values", "LENGTH", f"An enum may have {ALLOWED_VALUES_MAX} allowed values.")
    return values
