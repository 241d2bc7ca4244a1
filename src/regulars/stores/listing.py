"""Stores in the order of their names, as people look through them."""

from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.stores import queries
from regulars.stores.model import Store

# So many are looked at for a word that few of them have.
LOOKED_AT_MAX: Final = 5_000


class NamedStore(NamedTuple):
    """A store and its place in the order; the place is the database's own spelling of the name."""

    store: Store
    place: tuple[str, str]


class Stretch(NamedTuple):
    """Stores of one look, and where it ended if there may be more behind it."""

    found: list[NamedStore]
    ended_at: tuple[str, str] | None


async def list_by_name(
    tx: Tx,
    organization_id: UUID,
    *,
    word: str = "",
    beyond: tuple[str, ...] | None = None,
    is_backward: bool = False,
    limit: int,
) -> Stretch:
    """Those whose name, place or code has the word; backward, the reverse of what comes before."""
    place = _read_place(beyond)
    rows = await queries.list_stores_by_name(
        tx,
        organization_id,
        word=word.lower(),
        identifier=STORE.decode(word),
        beyond=place,
        is_backward=is_backward,
        looked_at=LOOKED_AT_MAX if word else limit,
        limit=limit,
    )
    found = [NamedStore(store, (name, str(store.id))) for name, store in rows]
    if not word or is_backward or len(found) >= limit:
        return Stretch(found, None)
    end = await queries.find_store_beyond(tx, organization_id, beyond=place, skipped=LOOKED_AT_MAX - 1)
    return Stretch(found, None if end is None else (end[0], str(end[1])))


async def count_stores(tx: Tx, organization_id: UUID, *, most: int) -> int:
    """How many there are, counted up to a bound."""
    return await queries.count_stores(tx, organization_id, most=most)


def _read_place(position: tuple[str, ...] | None) -> tuple[str, UUID] | None:
    """Cursors are signed, so only a place of our own comes back; one of another order has another length."""
    if position is None or len(position) != 2:  # noqa: PLR2004  # a name and an id
        return None
    return position[0], UUID(position[1])
