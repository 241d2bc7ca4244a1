"""The SQL of stores."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from psycopg.rows import TupleRow

from regulars.kit.db import Tx
from regulars.stores.model import Address, Store, StoreRef

# Below every UUIDv7: a list without a cursor begins after it.
_BEFORE_ALL = UUID(int=0)


def _store(row: TupleRow) -> Store:
    identifier, external_id, name, address, created_at, updated_at = row
    return Store(
        id=identifier,
        external_id=external_id,
        name=name,
        address=None if address is None else msgspec.convert(address, Address),
        created_at=created_at,
        updated_at=updated_at,
    )


async def find_store_refs_by_id(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[StoreRef]:
    rows = await tx.fetch(
        "SELECT id, external_id FROM stores WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )
    return [StoreRef(*row) for row in rows]


async def find_store_refs_by_external_id(tx: Tx, organization_id: UUID, external_ids: Sequence[str]) -> list[StoreRef]:
    rows = await tx.fetch(
        "SELECT id, external_id FROM stores WHERE organization_id = %s AND external_id = ANY (%s::text[])",
        (organization_id, list(external_ids)),
    )
    return [StoreRef(*row) for row in rows]


async def find_store_names(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> dict[UUID, str]:
    rows = await tx.fetch(
        "SELECT id, coalesce(name, external_id) FROM stores WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )
    return {row[0]: row[1] for row in rows}


async def find_store_by_id(tx: Tx, organization_id: UUID, identifier: UUID) -> Store | None:
    rows = await tx.fetch(
        """
        SELECT id, external_id, name, address, created_at, updated_at
        FROM stores
        WHERE organization_id = %s AND id = %s
        """,
        (organization_id, identifier),
    )
    return _store(rows[0]) if rows else None


async def find_store_by_external_id(tx: Tx, organization_id: UUID, external_id: str) -> Store | None:
    rows = await tx.fetch(
        """
        SELECT id, external_id, name, address, created_at, updated_at
        FROM stores
        WHERE organization_id = %s AND external_id = %s
        """,
        (organization_id, external_id),
    )
    return _store(rows[0]) if rows else None


async def list_stores(tx: Tx, organization_id: UUID, *, after: UUID | None, limit: int) -> list[Store]:
    rows = await tx.fetch(
        """
        SELECT id, external_id, name, address, created_at, updated_at
        FROM stores
        WHERE organization_id = %s AND id > %s
        ORDER BY id
        LIMIT %s
        """,
        (organization_id, after or _BEFORE_ALL, limit),
    )
    return [_store(row) for row in rows]


async def lock_stores(tx: Tx, organization_id: UUID, external_ids: Sequence[str]) -> list[Store]:
    # NO KEY: an upsert never changes a key, so it need not hold up those who only refer to the store.
    rows = await tx.fetch(
        """
        SELECT locked.id, locked.external_id, locked.name, locked.address, locked.created_at, locked.updated_at
        FROM (
            SELECT (
                SELECT id FROM stores WHERE organization_id = %(organization_id)s AND external_id = named.external_id
            ) AS id
            FROM unnest(%(external_ids)s::text[]) AS named (external_id)
            ORDER BY id
        ) AS wanted
        CROSS JOIN LATERAL (
            SELECT id, external_id, name, address, created_at, updated_at
            FROM stores
            WHERE organization_id = %(organization_id)s AND id = wanted.id
            FOR NO KEY UPDATE
        ) AS locked
        """,
        {"organization_id": organization_id, "external_ids": list(external_ids)},
    )
    return [_store(row) for row in rows]


async def insert_stores_if_new(tx: Tx, organization_id: UUID, stores: Sequence[Store]) -> set[UUID]:
    """Insert, in the order of their external_id, the stores nobody else has inserted; give the ids that went in."""
    rows = await tx.fetch(
        """
        INSERT INTO stores (organization_id, id, external_id, name, address, created_at, updated_at)
        SELECT %s, row.id, row.external_id, row.name, row.address, %s, %s
        FROM json_to_recordset(%s::json) AS row (id uuid, external_id text, name text, address json)
        ORDER BY row.external_id
        ON CONFLICT (organization_id, external_id) DO NOTHING
        RETURNING id
        """,
        (organization_id, tx.now, tx.now, _records(stores)),
    )
    return {row[0] for row in rows}


async def update_stores(tx: Tx, organization_id: UUID, stores: Sequence[Store]) -> None:
    await tx.execute(
        """
        UPDATE stores
        SET name = row.name, address = row.address, updated_at = row.updated_at
        FROM json_to_recordset(%s::json) AS row (id uuid, name text, address json, updated_at timestamptz)
        WHERE stores.organization_id = %s AND stores.id = row.id
        """,
        (_records(stores), organization_id),
    )


def _records(stores: Sequence[Store]) -> str:
    records: list[dict[str, Any]] = [msgspec.structs.asdict(store) for store in stores]
    return msgspec.json.encode(records).decode()
