"""Create or update stores under the caller's own store codes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

import msgspec

from regulars.kit.arrays import Ids, Jsons, Texts, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.kit.upserts import upsert_with_retries
from regulars.stores.find import store_from_row
from regulars.stores.model import Store, StoreUpsert, apply, new_store


class UpsertedStore(msgspec.Struct, frozen=True):
    """The store right after this upsert; later upserts of the same batch may change it again."""

    store: Store
    change: Literal["created", "updated", "unchanged"]


async def upsert_stores(tx: Tx, organization_id: UUID, upserts: Sequence[StoreUpsert]) -> list[UpsertedStore]:
    """Apply the upserts in their order and return one outcome for each; several may name the same store.

    Existing stores are locked, and written only if an upsert changes them. A store that does not exist is inserted in
    its state after all its upserts. If another transaction inserts it first, our insert waits and returns nothing, and
    the next attempt applies the same upserts to the other transaction's row.
    """
    return await upsert_with_retries(
        upserts, lambda upsert: upsert.external_id, lambda waiting: _upsert_once(tx, organization_id, waiting)
    )


async def _upsert_once(
    tx: Tx, organization_id: UUID, upserts: dict[str, list[StoreUpsert]]
) -> dict[str, list[UpsertedStore]]:
    """Make one attempt for all stores, by external id; a store that another transaction inserted first is not in the
    result."""
    locked = await _lock_stores(tx, organization_id, sorted(upserts))
    stored = {store.external_id: store for store in locked}
    outcomes: dict[str, list[UpsertedStore]] = {}
    created: list[Store] = []
    changed: list[Store] = []
    for external_id, store_upserts in upserts.items():
        before = stored.get(external_id)
        outcomes[external_id] = _apply_all(before, store_upserts, now=tx.now)
        after = outcomes[external_id][-1].store
        if before is None:
            created.append(after)
        elif after is not before:
            changed.append(after)
    if changed:
        await _update_stores(tx, organization_id, changed)
    if created:
        inserted = await _insert_stores_if_new(tx, organization_id, created)
        for store in created:
            if store.id not in inserted:
                del outcomes[store.external_id]
    return outcomes


def _apply_all(store: Store | None, upserts: Sequence[StoreUpsert], *, now: datetime) -> list[UpsertedStore]:
    outcomes: list[UpsertedStore] = []
    for upsert in upserts:
        if store is None:
            store = new_store(upsert, identifier=new_uuid(), now=now)
            outcomes.append(UpsertedStore(store, "created"))
        else:
            before, store = store, apply(upsert, store, now=now)
            outcomes.append(UpsertedStore(store, "unchanged" if store is before else "updated"))
    return outcomes


async def _lock_stores(tx: Tx, organization_id: UUID, external_ids: Sequence[str]) -> list[Store]:
    # NO KEY UPDATE: the ids do not change, so transactions that only refer to the store need not wait.
    rows = await tx.fetch(
        """
        SELECT locked.id, locked.external_id, locked.name, locked.address, locked.created_at, locked.updated_at
        FROM (
            SELECT (
                SELECT id FROM stores WHERE organization_id = %(organization_id)s AND external_id = named.external_id
            ) AS id
            FROM unnest(%(external_ids)s::text[]) AS named (external_id)
            ORDER BY id
        ) AS requested
        CROSS JOIN LATERAL (
            SELECT id, external_id, name, address, created_at, updated_at
            FROM stores
            WHERE organization_id = %(organization_id)s AND id = requested.id
            FOR NO KEY UPDATE
        ) AS locked
        """,
        {"organization_id": organization_id, "external_ids": list(external_ids)},
    )
    return [store_from_row(row) for row in rows]


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


async def _insert_stores_if_new(tx: Tx, organization_id: UUID, stores: Sequence[Store]) -> set[UUID]:
    """Insert the stores that do not exist yet, in the order of their external_id; returns the inserted ids."""
    values = {"organization_id": organization_id, "now": tx.now, "records": _records(stores)}
    return {row[0] for row in await tx.fetch(_INSERT, values)}


async def _update_stores(tx: Tx, organization_id: UUID, stores: Sequence[Store]) -> None:
    await tx.execute(_UPDATE, {"organization_id": organization_id, "records": _records(stores)})


def _records(stores: Sequence[Store]) -> str:
    return msgspec.json.encode(stores).decode()
