"""One bite of a count: read a stretch of rows, add what stands in them, and note how far it went."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.catalog import queries as catalog_queries
from regulars.catalog.counts import queries, request
from regulars.catalog.counts.model import Count, Reading, State, Values, tally
from regulars.catalog.model import Catalog
from regulars.catalog.register import register_product_keys
from regulars.kit.db import Tx

BITE_ROWS: Final = 5_000
# A preview that nobody confirmed; its samples may be personal, so it does not stay.
PREVIEW_KEPT: Final = timedelta(hours=24)


async def take_bite(tx: Tx, organization_id: UUID, count: Count, values: Values) -> None:
    """The count's row is locked by the caller, who commits what this does."""
    if count.state is State.DONE:
        # A finished preview that is due again is past its time.
        await request.drop(tx, organization_id, [count.id])
        return
    total = count.rows_total
    if total is None:
        total = await values.count_rows(tx, organization_id)
    stretch = await values.read_stretch(tx, organization_id, after=count.walked_to, rows_max=BITE_ROWS, key=count.key)
    keys = sorted({found.key for found in stretch.values})
    if keys:
        if count.catalog is Catalog.PRODUCTS and count.key is None:
            # The listener of new sales has registered them, unless a worker that did not know it took the fact.
            await register_product_keys(tx, organization_id, keys)
        tallies = await queries.find_tallies(tx, organization_id, count.id, keys=keys)
        readings = await _readings(tx, organization_id, count, keys)
        tally(tallies, stretch.values, readings, keeps_values=count.key is not None)
        await queries.upsert_tallies(tx, organization_id, count.id, tallies)
    is_done = stretch.rows < BITE_ROWS
    rows_read = count.rows_read + stretch.rows
    due_at = tx.now
    if is_done and count.key is not None:
        due_at = tx.now + PREVIEW_KEPT
    await queries.update_progress(
        tx,
        organization_id,
        count.id,
        walked_to=stretch.last or count.walked_to,
        rows_read=rows_read,
        rows_total=rows_read if is_done else max(total, rows_read),
        finished_at=tx.now if is_done else None,
        due_at=None if is_done and count.key is None else due_at,
    )
    if is_done and count.key is None:
        await _drop_older(tx, organization_id, count)


async def _readings(tx: Tx, organization_id: UUID, count: Count, keys: list[str]) -> dict[str, Reading]:
    if count.key is not None and count.type is not None:
        return {count.key: Reading(count.type, frozenset(count.allowed_values))}
    entries = await catalog_queries.find_entries(tx, organization_id, count.catalog, keys)
    return {entry.key: Reading(entry.type, frozenset(entry.allowed_values)) for entry in entries}


async def _drop_older(tx: Tx, organization_id: UUID, count: Count) -> None:
    """What was counted before is not shown any more."""
    overviews = await queries.list_overviews(tx, organization_id, count.catalog)
    await request.drop(tx, organization_id, [one.id for one in overviews if one.id < count.id])
