"""Create or update stores under the caller's own store codes."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Literal
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.kit.upserts import upsert_rows
from regulars.stores.find import STORES
from regulars.stores.model import Store, StoreUpsert, apply, new_store


class UpsertedStore(msgspec.Struct, frozen=True):
    """The store right after this upsert; later upserts of the same batch may change it again."""

    store: Store
    change: Literal["created", "updated", "unchanged"]


async def upsert_stores(tx: Tx, organization_id: UUID, upserts: Sequence[StoreUpsert]) -> list[UpsertedStore]:
    """Apply the upserts in their order and return one outcome for each; several may name the same store."""
    return await upsert_rows(tx, organization_id, STORES, upserts, partial(_apply_all, now=tx.now))


def _apply_all(
    store: Store | None, upserts: Sequence[StoreUpsert], *, now: datetime
) -> tuple[Store | None, list[UpsertedStore]]:
    """Return the store after all upserts, and the outcome of each."""
    outcomes: list[UpsertedStore] = []
    for upsert in upserts:
        if store is None:
            store = new_store(upsert, identifier=new_uuid(), now=now)
            outcomes.append(UpsertedStore(store, "created"))
        else:
            before, store = store, apply(upsert, store, now=now)
            outcomes.append(UpsertedStore(store, "unchanged" if store is before else "updated"))
    return store, outcomes
