"""The SQL of the two catalogs."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from psycopg.rows import TupleRow

from regulars.catalog.model import AttributeType, CatalogEntry
from regulars.kit.db import Tx


class NewAttribute(NamedTuple):
    key: str
    type: AttributeType
    looks_like_code: bool


def _entry(row: TupleRow) -> CatalogEntry:
    key, declared, allowed_values, created_at, updated_at = row
    return CatalogEntry(
        key=key,
        type=AttributeType(declared),
        allowed_values=tuple(allowed_values),
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
