"""Upsert stores by their caller's code: a list in, a list out, in the same order."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.kit.upserts import upsert_with_retries
from regulars.stores import queries
from regulars.stores.model import Store, StoreUpsert, apply, begin


class Upserted(msgspec.Struct, frozen=True):
    """The store as it stood after this upsert, which need not be the last of its batch."""

    store: Store
    change: Literal["created", "updated", "unchanged"]


async def upsert_stores(tx: Tx, organization_id: UUID, upserts: Sequence[StoreUpsert]) -> list[Upserted]:
    """Apply the upserts in their order; several may name the same store.

    Existing stores are locked and folded, and only changed ones written. A store that is not there is folded from
    nothing and inserted complete. Should another transaction insert it first, our insert waits, gives nothing back,
    and the next round folds the same upserts onto the winner's row.
    """
    return await upsert_with_retries(
        upserts, lambda upsert: upsert.external_id, lambda waiting: _settle(tx, organization_id, waiting)
    )


async def _settle(tx: Tx, organization_id: UUID, upserts: dict[str, list[StoreUpsert]]) -> dict[str, list[Upserted]]:
    """One round over the stores by external id; those that lost a race are left out of the answer."""
    locked = await queries.lock_stores(tx, organization_id, sorted(upserts))
    stored = {store.external_id: store for store in locked}
    settled: dict[str, list[Upserted]] = {}
    created: list[Store] = []
    changed: list[Store] = []
    for external_id, in_order in upserts.items():
        before = stored.get(external_id)
        settled[external_id] = _fold(before, in_order, now=tx.now)
        after = settled[external_id][-1].store
        if before is None:
            created.append(after)
        elif after is not before:
            changed.append(after)
    if changed:
        await queries.update_stores(tx, organization_id, changed)
    if created:
        inserted = await queries.insert_stores_if_new(tx, organization_id, created)
        for store in created:
            if store.id not in inserted:
                del settled[store.external_id]
    return settled


def _fold(store: Store | None, upserts: Sequence[StoreUpsert], *, now: datetime) -> list[Upserted]:
    outcomes: list[Upserted] = []
    for upsert in upserts:
        if store is None:
            store = begin(upsert, identifier=new_uuid(), now=now)
            outcomes.append(Upserted(store, "created"))
        else:
            before, store = store, apply(upsert, store, now=now)
            outcomes.append(Upserted(store, "unchanged" if store is before else "updated"))
    return outcomes
