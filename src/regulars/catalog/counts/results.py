"""What was counted, for pages."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from regulars.catalog.counts import queries
from regulars.catalog.counts.model import Count, State, Tally
from regulars.catalog.model import Catalog
from regulars.kit.db import Tx


class Overviews(NamedTuple):
    """The last finished count of every key, and the one that runs or failed after it."""

    done: Count | None
    current: Count | None


async def find_overviews(tx: Tx, organization_id: UUID, catalog: Catalog) -> Overviews:
    counts = await queries.list_overviews(tx, organization_id, catalog)
    done = next((count for count in counts if count.state is State.DONE), None)
    current = next((count for count in counts if count.state is not State.DONE), None)
    return Overviews(done, current)


async def find_count(tx: Tx, organization_id: UUID, count_id: UUID) -> Count | None:
    return await queries.find_count(tx, organization_id, count_id)


async def find_preview(tx: Tx, organization_id: UUID, catalog: Catalog, key: str) -> Count | None:
    """The proposal for a key that waits for a decision."""
    ids = await queries.list_previews(tx, organization_id, catalog, key)
    return await queries.find_count(tx, organization_id, max(ids)) if ids else None


async def find_tallies(
    tx: Tx, organization_id: UUID, count: Count | None, keys: Sequence[str] | None = None
) -> dict[str, Tally]:
    return {} if count is None else await queries.find_tallies(tx, organization_id, count.id, keys=keys)
