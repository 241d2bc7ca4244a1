"""Count how many stored values fit a type: request a count, run it batch by batch in the worker, and read the
result."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import ClassVar, Final, NamedTuple
from uuid import UUID

import msgspec
from psycopg.sql import SQL, Identifier

from regulars.catalog import entries
from regulars.catalog.counts import queries
from regulars.catalog.counts.model import (
    CountJob,
    DeclaredType,
    JobState,
    Tally,
    ValueBatch,
    ValueCount,
    add_values,
)
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.work.queue import Due, RowQueue, Schedule, Wait

BATCH_ROWS: Final = 5_000
# How long an unconfirmed preview is retained; its samples may be personal data.
PREVIEW_RETENTION: Final = timedelta(hours=24)


class ValueSource(ABC):
    """Reads the stored values of a catalog; `profiles` and `sales` implement it for their tables."""

    table: ClassVar[str]

    @abstractmethod
    async def count_values(
        self, tx: Tx, organization_id: UUID, key: str | None, *, after: UUID, until: UUID
    ) -> list[ValueCount]:
        """Return each distinct value of a key, or of all keys, in this range of ids, with its number of occurrences."""

    async def count_rows(self, tx: Tx, organization_id: UUID) -> int:
        statement = SQL("SELECT count(*) FROM {table} WHERE organization_id = %s")
        return await tx.fetch_count(statement.format(table=Identifier(self.table)), (organization_id,))

    async def read_batch(
        self, tx: Tx, organization_id: UUID, *, after: UUID, rows_max: int, key: str | None
    ) -> ValueBatch:
        """Return the values of the rows after this id: of one key, or of all keys."""
        statement = SQL(
            """
            SELECT count(*), (array_agg(id ORDER BY id DESC))[1] FROM (
                SELECT id FROM {table} WHERE organization_id = %s AND id > %s ORDER BY id LIMIT %s
            ) AS batch
            """
        ).format(table=Identifier(self.table))
        [(rows, last)] = await tx.fetch(statement, (organization_id, after, rows_max))
        if last is None:
            return ValueBatch(0, None, [])
        return ValueBatch(rows, last, await self.count_values(tx, organization_id, key, after=after, until=last))


class CountQueue(RowQueue[CountJob]):
    """The queue of counts whose next batch is due; each pass runs one batch of one count."""

    name = "catalog.counts"
    schedule = Schedule(waits_s=(5, 60, 600))
    due = Due(
        table="catalog_counts",
        waits=(
            schedule.retries(),
            Wait(at_most=(timedelta(0),), condition="attempts = 0 AND finished_at IS NULL"),
            Wait(at_most=(PREVIEW_RETENTION,), condition="attempts = 0 AND finished_at IS NOT NULL", waits_again=True),
        ),
    )
    batch_rows = 1

    def __init__(self, sources: Mapping[Catalog, ValueSource]) -> None:
        self._sources = sources

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[CountJob]:
        return await queries.take_due_counts(tx, organization_id, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[CountJob]) -> None:
        for count in rows:
            await _count_batch(tx, organization_id, count, self._sources[count.catalog])


async def count_every_key(tx: Tx, organization_id: UUID, catalog: Catalog) -> CountJob:
    """Start a count of the values of all keys, each by its type; returns the running count if there is one."""
    for count in await queries.list_full_counts(tx, organization_id, catalog):
        if count.state is JobState.RUNNING:
            return count
        if count.state is JobState.FAILED:
            await delete_counts(tx, organization_id, [count.id])
    return await _start(tx, organization_id, catalog)


async def preview_type(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    key: str,
    *,
    declared: AttributeType,
    allowed_values: Sequence[str] = (),
) -> CountJob:
    """Start a count of one key's values by a proposed type; earlier previews of the key are deleted."""
    values = tuple(entries.check_allowed_values(declared, allowed_values))
    await delete_counts(tx, organization_id, await queries.list_previews(tx, organization_id, catalog, key))
    return await _start(tx, organization_id, catalog, key=key, declared=declared, allowed_values=values)


async def confirm_preview(tx: Tx, organization_id: UUID, preview: CountJob) -> CatalogEntry | None:
    """Give the key the proposed type, for which the preview (a trial count) counted the values; None if the count is
    not a finished preview.

    Until all keys are counted again, the list shows the result of the preview for this key.
    """
    if preview.key is None or preview.type is None or preview.state is not JobState.DONE:
        return None
    entry = await entries.retype(
        tx,
        organization_id,
        preview.catalog,
        preview.key,
        declared=preview.type,
        allowed_values=preview.allowed_values,
    )
    tallies = await queries.find_tallies(tx, organization_id, preview.id)
    for tally in tallies.values():
        tally.samples = {}
        tally.common = {}
    for full_count in await queries.list_full_counts(tx, organization_id, preview.catalog):
        if full_count.state is JobState.DONE:
            await queries.upsert_tallies(tx, organization_id, full_count.id, tallies)
    await delete_counts(tx, organization_id, [preview.id])
    return entry


async def delete_counts(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    await queries.delete_tallies(tx, organization_id, count_ids)
    await queries.delete_counts(tx, organization_id, count_ids)


async def erase_values(tx: Tx, organization_id: UUID) -> None:
    """Erase all sampled values, which may be those of an erased person; the numbers stay."""
    await tx.execute(
        """
        UPDATE catalog_tallies SET samples = '[]', common = '[]'
        WHERE organization_id = %s AND (samples <> '[]' OR common <> '[]')
        """,
        (organization_id,),
    )


async def _start(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    *,
    key: str | None = None,
    declared: AttributeType | None = None,
    allowed_values: tuple[str, ...] = (),
) -> CountJob:
    count = CountJob(
        id=new_uuid(),
        catalog=catalog,
        key=key,
        type=declared,
        allowed_values=allowed_values,
        created_at=tx.now,
        due_at=tx.now,
    )
    await queries.insert_count(tx, organization_id, count)
    tx.queues_to_wake.add((CountQueue.name, organization_id))
    return count


class FullCounts(NamedTuple):
    """The last finished count of all keys, and a later one that is running or has failed."""

    done: CountJob | None
    current: CountJob | None


async def find_full_counts(tx: Tx, organization_id: UUID, catalog: Catalog) -> FullCounts:
    counts = await queries.list_full_counts(tx, organization_id, catalog)
    done = next((count for count in counts if count.state is JobState.DONE), None)
    current = next((count for count in counts if count.state is not JobState.DONE), None)
    return FullCounts(done, current)


async def find_preview(tx: Tx, organization_id: UUID, catalog: Catalog, key: str) -> CountJob | None:
    """Return the preview of a key's proposed type that a user has not confirmed yet."""
    ids = await queries.list_previews(tx, organization_id, catalog, key)
    return await queries.find_count(tx, organization_id, max(ids)) if ids else None


async def find_tallies(
    tx: Tx, organization_id: UUID, count: CountJob | None, keys: Sequence[str] | None = None
) -> dict[str, Tally]:
    return {} if count is None else await queries.find_tallies(tx, organization_id, count.id, keys=keys)


async def _count_batch(tx: Tx, organization_id: UUID, count: CountJob, source: ValueSource) -> None:
    """Read a batch of rows, add their values to the tallies and store the progress.

    The queue has locked the row of the count, and commits.
    """
    if count.state is JobState.DONE:
        # A finished preview becomes due again when its retention ends.
        await delete_counts(tx, organization_id, [count.id])
        return
    total = count.rows_total
    if total is None:
        total = await source.count_rows(tx, organization_id)
    batch = await source.read_batch(tx, organization_id, after=count.walked_to, rows_max=BATCH_ROWS, key=count.key)
    keys = sorted({value.key for value in batch.values})
    if keys:
        if count.catalog is Catalog.PRODUCTS and count.key is None:
            # The listener of new sales has registered these keys, unless a worker of an older release without that
            # listener handled the sale.
            await entries.register_product_keys(tx, organization_id, keys)
        tallies = await queries.find_tallies(tx, organization_id, count.id, keys=keys)
        types = await _find_types(tx, organization_id, count, keys)
        add_values(tallies, batch.values, types, stores_values=count.key is not None)
        await queries.upsert_tallies(tx, organization_id, count.id, tallies)
    is_done = batch.rows < BATCH_ROWS
    rows_read = count.rows_read + batch.rows
    due_at = tx.now
    if is_done and count.key is not None:
        due_at = tx.now + PREVIEW_RETENTION
    counted = msgspec.structs.replace(
        count,
        walked_to=batch.last or count.walked_to,
        rows_read=rows_read,
        rows_total=rows_read if is_done else max(total, rows_read),
        finished_at=tx.now if is_done else None,
        due_at=None if is_done and count.key is None else due_at,
    )
    await queries.update_progress(tx, organization_id, counted)
    if is_done and count.key is None:
        # From now on pages show this count, so older counts of all keys are deleted.
        full_counts = await queries.list_full_counts(tx, organization_id, count.catalog)
        await delete_counts(tx, organization_id, [earlier.id for earlier in full_counts if earlier.id < count.id])


async def _find_types(tx: Tx, organization_id: UUID, count: CountJob, keys: list[str]) -> dict[str, DeclaredType]:
    if count.key is not None and count.type is not None:
        return {count.key: DeclaredType(count.type, count.allowed_values)}
    types = await entries.find_types(tx, organization_id, count.catalog, keys)
    return {key: DeclaredType(declared, allowed) for key, (declared, allowed) in types.items()}
