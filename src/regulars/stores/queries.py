"""The SQL of stores."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from psycopg.rows import TupleRow
from psycopg.sql import SQL

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


async def find_addresses(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> dict[UUID, Address]:
    rows = await tx.fetch(
        "SELECT id, address FROM stores WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND address IS NOT NULL",
        (organization_id, list(ids)),
    )
    return {row[0]: msgspec.convert(row[1], Address) for row in rows}


async def find_addresses_in(tx: Tx, organization_id: UUID, country: str, *, limit: int) -> list[Address]:
    rows = await tx.fetch(
        "SELECT address FROM stores WHERE organization_id = %s AND address ->> 'country_code' = %s LIMIT %s",
        (organization_id, country, limit),
    )
    return [msgspec.convert(row[0], Address) for row in rows]


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


# As the index has it.
_BY_NAME = SQL('(left(lower(COALESCE(name, external_id)), 100)) COLLATE "C"')


async def list_stores_by_name(
    tx: Tx,
    organization_id: UUID,
    *,
    word: str,
    identifier: UUID | None,
    beyond: tuple[str, UUID] | None,
    is_backward: bool,
    looked_at: int,
    limit: int,
) -> list[tuple[str, Store]]:
    """Each with its name as it is sorted; only those with the word where there is one, among a bounded stretch."""
    order = SQL("DESC" if is_backward else "ASC")
    after = SQL("AND ({name}, id) {than} (%(name)s, %(id)s)").format(
        name=_BY_NAME, than=SQL("<" if is_backward else ">")
    )
    rows = await tx.fetch(
        SQL("""
        SELECT s.sorted, s.id, s.external_id, s.name, s.address, s.created_at, s.updated_at
        FROM (
            SELECT {name} AS sorted, id, external_id, name, address, created_at, updated_at
            FROM stores
            WHERE organization_id = %(organization_id)s {after}
            ORDER BY {name} {order}, id {order}
            LIMIT %(looked_at)s
        ) AS s
        WHERE %(word)s = '' OR s.id = %(identifier)s::uuid
           OR position(%(word)s IN lower(concat_ws(' ', s.name, s.external_id, s.address ->> 'locality',
                                                   s.address ->> 'postal_code'))) > 0
        ORDER BY s.sorted {order}, s.id {order}
        LIMIT %(limit)s
        """).format(name=_BY_NAME, order=order, after=SQL("") if beyond is None else after),
        {
            "organization_id": organization_id,
            "word": word,
            "identifier": identifier,
            "name": None if beyond is None else beyond[0],
            "id": None if beyond is None else beyond[1],
            "looked_at": looked_at,
            "limit": limit,
        },
    )
    return [(row[0], _store(row[1:])) for row in rows]


async def find_store_beyond(
    tx: Tx, organization_id: UUID, *, beyond: tuple[str, UUID] | None, skipped: int
) -> tuple[str, UUID] | None:
    """The place of the store that comes after so many others, by name."""
    after = SQL("AND ({name}, id) > (%(name)s, %(id)s)").format(name=_BY_NAME)
    rows = await tx.fetch(
        SQL("""
        SELECT {name}, id FROM stores
        WHERE organization_id = %(organization_id)s {after}
        ORDER BY {name}, id
        LIMIT 1 OFFSET %(skipped)s
        """).format(name=_BY_NAME, after=SQL("") if beyond is None else after),
        {
            "organization_id": organization_id,
            "name": None if beyond is None else beyond[0],
            "id": None if beyond is None else beyond[1],
            "skipped": skipped,
        },
    )
    return (rows[0][0], rows[0][1]) if rows else None


async def count_stores(tx: Tx, organization_id: UUID, *, most: int) -> int:
    rows = await tx.fetch(
        "SELECT count(*) FROM (SELECT FROM stores WHERE organization_id = %s LIMIT %s) AS counted",
        (organization_id, most),
    )
    return int(rows[0][0])


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
