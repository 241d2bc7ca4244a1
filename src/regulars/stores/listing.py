"""Stores in the order of their names, as people look through them."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.kit.keyset import PageRequest, PageRows
from regulars.stores import queries
from regulars.stores.model import NamedStore

# So many are looked at for a word that few of them have.
LOOKED_AT_MAX: Final = 5_000


async def list_by_name(tx: Tx, organization_id: UUID, page: PageRequest, *, word: str = "") -> PageRows[NamedStore]:
    """Those whose name, place or code has the word."""
    return await queries.list_stores_by_name(
        tx,
        organization_id,
        page,
        word=word.lower() or None,
        identifier=STORE.decode(word),
        rows_max=LOOKED_AT_MAX,
    )


async def count_stores(tx: Tx, organization_id: UUID, *, most: int) -> int:
    """How many there are, counted up to a bound."""
    return await queries.count_stores(tx, organization_id, most=most)
