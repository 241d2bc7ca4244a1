"""The SQL of stores."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from regulars.kit.arrays import Ids, Jsons, Texts, Timestamps
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows
from regulars.stores.model import Address, NamedStore, Store, StoreRef

# Below every UUIDv7: a list without a cursor begins after it.
_BEFORE_ALL = UUID(int=0)
_FIND: Final = fill("SELECT {names} FROM stores WHERE organization_id = %s AND ", names=names_of(Store))


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
        _FIND + "id = %s",
        (organization_id, identifier),
    )
    return _store(rows[0]) if rows else None


async def find_store_by_external_id(tx: Tx, organization_id: UUID, external_id: str) -> Store | None:
    rows = await tx.fetch(
        _FIND + "external_id = %s",
        (organization_id, external_id),
    )
    return _store(rows[0]) if rows else None


async def list_stores(tx: Tx, organization_id: UUID, *, after: UUID | None, limit: int) -> list[Store]:
    rows = await tx.fetch(
        _FIND + "id > %s ORDER BY id LIMIT %s",
        (organization_id, after or _BEFORE_ALL, limit),
    )
    return [_store(row) for row in rows]


# As the index has it.
_BY_NAME: Final = Keyset({'(left(lower(COALESCE(name, external_id)), 100)) COLLATE "C"': str, "id": UUID})
_FILTERS: Final = {
    "word": """
        (id = %(identifier)s::uuid OR position(%(word)s IN lower(concat_ws(
            ' ', name, external_id, address ->> 'locality', address ->> 'postal_code'))) > 0)
        """
}


async def list_stores_by_name(
    tx: Tx, organization_id: UUID, page: PageRequest, *, word: str | None, identifier: UUID | None, rows_max: int
) -> PageRows[NamedStore]:
    """Only those with the word where there is one, among a bounded number."""
    return await _BY_NAME.scan(
        tx,
        SQL("""
        SELECT sorted, id, external_id, name, address, created_at, updated_at
        FROM (
            SELECT (left(lower(COALESCE(name, external_id)), 100)) COLLATE "C" AS sorted,
                   id, external_id, name, address, created_at, updated_at
            FROM stores
            WHERE organization_id = %(organization_id)s {beyond}
            ORDER BY {ordered}
            LIMIT %(looked_at)s
        ) AS stores
        WHERE true {narrowed}
        ORDER BY {ordered}
        LIMIT %(limit)s
        """),
        page,
        {"organization_id": organization_id, "word": word, "identifier": identifier},
        make=lambda name, *row: NamedStore(_store(row), (name, str(row[0]))),
        table="stores",
        filters=_FILTERS,
        rows_max=rows_max,
    )


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


_CHANGEABLE: Final = Columns(name=Texts, address=Jsons)
_INSERT: Final = (Columns(id=Ids, external_id=Texts) | _CHANGEABLE).write(
    """
    INSERT INTO stores (organization_id, created_at, updated_at, {columns})
    SELECT %(organization_id)s, %(now)s, %(now)s, it.* FROM {records}
    ORDER BY it.external_id
    ON CONFLICT (organization_id, external_id) DO NOTHING
    RETURNING id
    """
)
_UPDATE: Final = (Columns(id=Ids, updated_at=Timestamps) | _CHANGEABLE).write(
    """
    UPDATE stores SET updated_at = it.updated_at, {changed} FROM {records}
    WHERE stores.organization_id = %(organization_id)s AND stores.id = it.id
    """,
    changed=_CHANGEABLE.assign("it"),
)


async def insert_stores_if_new(tx: Tx, organization_id: UUID, stores: Sequence[Store]) -> set[UUID]:
    """Insert, in the order of their external_id, the stores nobody else has inserted; give the ids that went in."""
    values = {"organization_id": organization_id, "now": tx.now, "records": _records(stores)}
    return {row[0] for row in await tx.fetch(_INSERT, values)}


async def update_stores(tx: Tx, organization_id: UUID, stores: Sequence[Store]) -> None:
    await tx.execute(_UPDATE, {"organization_id": organization_id, "records": _records(stores)})


def _records(stores: Sequence[Store]) -> str:
    return msgspec.json.encode(stores).decode()
