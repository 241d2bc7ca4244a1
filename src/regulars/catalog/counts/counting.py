"""Count how many stored values fit a type: request a count, run it batch by batch in the worker, and read the
result."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import ClassVar, Final, NamedTuple
from uuid import UUID

import msgspec
from psycopg.sql import SQL, Identifier

from regulars.catalog import entries
from regulars.catalog.counts import products, queries
from regulars.catalog.counts.model import (
    ATTEMPTS_MAX,
    CUSTOMERS_MIN,
    FREQUENT_KEYS_MAX,
    START,
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
from regulars.kit.ids import first_id_at, new_uuid
from regulars.work.personal import ErasedPeople
from regulars.work.queue import Due, RowQueue, Schedule, WaitLimit

BATCH_ROWS: Final = 5_000
# How long an unconfirmed preview is retained; its samples may be personal data.
PREVIEW_RETENTION: Final = timedelta(hours=24)
# A finished count goes on with new rows; while there are none it waits for `count_new_rows_soon`.
FOLLOW_AFTER_ROWS: Final = timedelta(minutes=2)
FOLLOW_WHEN_IDLE: Final = timedelta(hours=6)
# Where rows may change it begins again: with few rows every ten minutes, with a million or more once a day. While no
# row changes it waits twice as long each time.
COUNT_AGAIN_AFTER_MIN: Final = timedelta(minutes=10)
COUNT_AGAIN_AFTER_MAX: Final = timedelta(hours=24)
ROWS_PER_DAY: Final = 1_000_000
COUNT_WHEN_IDLE_MAX: Final = timedelta(hours=4)
# An erasure waits this long for a batch that is being counted.
LOCK_TIMEOUT: Final = "2s"
# The end of a random id is enough to tell customers apart.
BUYER_CHARACTERS: Final = 12
_LAST_ID: Final = UUID(int=(1 << 128) - 1)


class ValueSource(ABC):
    """Reads the stored values of a catalog; `profiles` and `sales` implement it for their tables."""

    table: ClassVar[str]

    def __init__(self, *, age_min: timedelta = timedelta(0)) -> None:
        """A count of all keys reads no younger rows: a row becomes visible when its transaction commits, and a count
        that goes on after its id never reads it."""
        self._age_min = age_min

    @abstractmethod
    async def count_values(
        self, tx: Tx, organization_id: UUID, key: str | None, *, after: UUID, until: UUID
    ) -> list[ValueCount]:
        """Return each distinct value of a key, or of all keys, in this range of ids, with its number of occurrences."""

    async def read_batch(
        self, tx: Tx, organization_id: UUID, *, after: UUID, rows_max: int, key: str | None
    ) -> ValueBatch:
        """Return the values of the rows after this id: of one key, or of all keys."""
        statement = SQL(
            """
            SELECT count(*), (array_agg(id ORDER BY id DESC))[1],
                   EXISTS (SELECT FROM {table} WHERE organization_id = %(organization_id)s AND id >= %(before)s)
            FROM (
                SELECT id FROM {table}
                WHERE organization_id = %(organization_id)s AND id > %(after)s AND id < %(before)s
                ORDER BY id LIMIT %(rows_max)s
            ) AS batch
            """
        ).format(table=Identifier(self.table))
        is_read_once = key is None and self._age_min
        before = first_id_at(tx.now - self._age_min) if is_read_once else _LAST_ID
        [(rows, last, has_younger)] = await tx.fetch(
            statement, {"organization_id": organization_id, "after": after, "before": before, "rows_max": rows_max}
        )
        values = [] if last is None else await self.count_values(tx, organization_id, key, after=after, until=last)
        return ValueBatch(rows, last, values, has_younger)


class ChangingSource(ValueSource):
    """Rows that may change, so that a count of all keys begins again after a time."""

    @abstractmethod
    async def has_changed(self, tx: Tx, organization_id: UUID, *, since: datetime) -> bool:
        """Whether a row has changed since then, or is new."""


class GrowingSource(ValueSource):
    """Rows of tickets, which never change, so that a count of all keys goes on with new rows."""

    @abstractmethod
    async def list_products(
        self, tx: Tx, organization_id: UUID, *, after: UUID, until: UUID, today: date
    ) -> list[products.ProductSales]:
        """Return the products in this range of ids."""


class CountQueue(RowQueue[CountJob]):
    """The queue of counts whose next batch is due; each pass runs one batch of one count."""

    name = "catalog.counts"
    # Pages show what the counts of all keys have, and no user would start a parked one again.
    schedule = Schedule(waits_s=(5, 60, 600, 3600), is_endless=True)
    due = Due(
        table="catalog_counts",
        waits=(
            schedule.retries(),
            WaitLimit(at_most=(timedelta(0),), condition="attempts = 0 AND finished_at IS NULL"),
            WaitLimit(
                at_most=(PREVIEW_RETENTION,), condition="attempts = 0 AND finished_at IS NOT NULL", waits_again=True
            ),
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

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: CountJob, *, attempts: int, due_at: datetime | None
    ) -> None:
        """A count of attributes that has failed begins again. It has values of few customers until it ends, and an
        erasure does not find those that a customer had when the count read them."""
        if attempts >= ATTEMPTS_MAX and row.catalog is Catalog.ATTRIBUTES and row.key is None and not row.finished_at:
            await queries.delete_tallies(tx, organization_id, [row.id])
            start = msgspec.structs.replace(row, walked_to=START, rows_read=0)
            await queries.update_progress(tx, organization_id, start)
        await super().postpone(tx, organization_id, row, attempts=attempts, due_at=due_at)


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

    Until all keys are counted again, the list shows the result of the preview for this key. The values that are
    suggested stay: those that do not fit the new type are left out when they are shown.
    """
    if preview.key is None or preview.type is None or preview.state is not JobState.DONE:
        return None
    counts = await queries.lock_counts(tx, organization_id)
    entry = await entries.retype(
        tx,
        organization_id,
        preview.catalog,
        preview.key,
        declared=preview.type,
        allowed_values=preview.allowed_values,
    )
    tallies = await queries.find_tallies(tx, organization_id, preview.id)
    for full_count in counts:
        if full_count.catalog is not preview.catalog or full_count.key is not None:
            continue
        if full_count.state is not JobState.DONE:
            # It has counted some of the values by the earlier type.
            await delete_counts(tx, organization_id, [full_count.id])
            await count_every_key(tx, organization_id, preview.catalog)
        else:
            counted = await queries.find_tallies(tx, organization_id, full_count.id, keys=[preview.key])
            for key, tally in tallies.items():
                before = counted.get(key, Tally())
                tally.samples, tally.common, tally.buyers = {}, before.common, before.buyers
            await queries.upsert_tallies(tx, organization_id, full_count.id, tallies)
    await delete_counts(tx, organization_id, [preview.id])
    return entry


async def delete_counts(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    """Delete counts with what they have counted; first the counts, since that waits for a batch that is being added."""
    await queries.delete_counts(tx, organization_id, count_ids)
    await queries.delete_tallies(tx, organization_id, count_ids)
    await products.delete_products(tx, organization_id, count_ids)


async def count_new_rows_soon(tx: Tx, organization_id: UUID, catalog: Catalog) -> None:
    """Have a finished count go on, as soon as rows of this moment are old enough to be read."""
    await queries.bring_forward(tx, organization_id, catalog, due_at=tx.now + FOLLOW_AFTER_ROWS)


async def erase_values(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Erase the values of previews, which may be those of an erased person, and take the people out of the values that
    are suggested; the other numbers stay."""
    await tx.set_lock_timeout(LOCK_TIMEOUT)
    counts = await queries.lock_counts(tx, organization_id)
    await queries.erase_samples(tx, organization_id, [count.id for count in counts if count.key is not None])
    full_counts = [count for count in counts if count.key is None]
    for count in full_counts:
        if count.catalog is Catalog.ATTRIBUTES and people.attributes:
            keys = sorted({key for key, _ in people.attributes})
            tallies = await queries.find_tallies(tx, organization_id, count.id, keys=keys)
            for key, value in people.attributes:
                if key in tallies:
                    tallies[key].remove_customer(value)
            await queries.upsert_tallies(tx, organization_id, count.id, tallies)
    buyers = [str(profile_id)[-BUYER_CHARACTERS:] for profile_id in people.profile_ids]
    counts_of_lines = [count.id for count in full_counts if count.catalog is Catalog.PRODUCTS]
    found = await queries.find_keys_of_buyers(tx, organization_id, counts_of_lines, buyers)
    for count_id, keys in found.items():
        tallies = await queries.find_tallies(tx, organization_id, count_id, keys=keys)
        for tally in tallies.values():
            tally.remove_buyers(buyers)
        await queries.upsert_tallies(tx, organization_id, count_id, tallies)


async def _start(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    *,
    key: str | None = None,
    declared: AttributeType | None = None,
    allowed_values: tuple[str, ...] = (),
) -> CountJob:
    earlier = (await find_full_counts(tx, organization_id, catalog)).done
    count = CountJob(
        id=new_uuid(),
        catalog=catalog,
        key=key,
        type=declared,
        allowed_values=allowed_values,
        rows_total=None if earlier is None else earlier.rows_read,
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
    if count.state is JobState.DONE and count.key is not None:
        # A finished preview becomes due again when its retention ends.
        await delete_counts(tx, organization_id, [count.id])
        return
    if count.state is JobState.DONE and isinstance(source, ChangingSource):
        await _count_again(tx, organization_id, count, source)
        return
    batch = await source.read_batch(tx, organization_id, after=count.walked_to, rows_max=BATCH_ROWS, key=count.key)
    await _add_batch(tx, organization_id, count, source, batch)
    is_done = batch.rows < BATCH_ROWS
    rows_read = count.rows_read + batch.rows
    counted = msgspec.structs.replace(
        count,
        walked_to=batch.last or count.walked_to,
        rows_read=rows_read,
        rows_total=rows_read if is_done else count.rows_total and max(count.rows_total, rows_read),
        finished_at=tx.now if is_done else count.finished_at,
        due_at=tx.now + _pause_after(count, source, rows_read, batch) if is_done else tx.now,
    )
    await queries.update_progress(tx, organization_id, counted)
    if is_done and count.key is None and count.finished_at is None:
        await _replace_earlier_count(tx, organization_id, count, source)


async def _add_batch(tx: Tx, organization_id: UUID, count: CountJob, source: ValueSource, batch: ValueBatch) -> None:
    """Add the values of a batch to the tallies of a count, and the products to its products."""
    is_preview = count.key is not None
    keys = sorted({value.key for value in batch.values})
    if keys:
        if count.catalog is Catalog.PRODUCTS and not is_preview:
            # The listener of new sales has registered these keys, unless a worker of an older release without that
            # listener handled the sale.
            await entries.register_product_keys(tx, organization_id, keys)
        tallies = await queries.find_tallies(tx, organization_id, count.id, keys=keys)
        types = await _find_types(tx, organization_id, count, keys)
        frequent_keys = await entries.find_among_first(
            tx, organization_id, count.catalog, keys, limit=FREQUENT_KEYS_MAX
        )
        add_values(tallies, batch.values, types, is_preview=is_preview, frequent_keys=frequent_keys)
        await queries.upsert_tallies(tx, organization_id, count.id, tallies)
    if isinstance(source, GrowingSource) and batch.last is not None and not is_preview:
        today = tx.now.date()
        sales = await source.list_products(tx, organization_id, after=count.walked_to, until=batch.last, today=today)
        await products.add_sales(tx, organization_id, count.id, sales, today=today)


def _pause_after(count: CountJob, source: ValueSource, rows_read: int, batch: ValueBatch) -> timedelta:
    """How long a finished count waits: for its next rows, for its next beginning, or for the end of its retention."""
    if count.key is not None:
        return PREVIEW_RETENTION
    if isinstance(source, GrowingSource):
        return FOLLOW_AFTER_ROWS if batch.rows or batch.has_younger else FOLLOW_WHEN_IDLE
    return _pause_of(rows_read)


def _pause_of(rows: int) -> timedelta:
    return min(max(timedelta(days=rows / ROWS_PER_DAY), COUNT_AGAIN_AFTER_MIN), COUNT_AGAIN_AFTER_MAX)


async def _count_again(tx: Tx, organization_id: UUID, count: CountJob, source: ChangingSource) -> None:
    """Begin a new count beside a finished one, if a row may have changed since that began."""
    if await source.has_changed(tx, organization_id, since=count.created_at):
        await count_every_key(tx, organization_id, count.catalog)
    unchanged_for = tx.now - count.created_at
    due_at = tx.now + max(_pause_of(count.rows_read), min(unchanged_for, COUNT_WHEN_IDLE_MAX))
    await queries.update_progress(tx, organization_id, msgspec.structs.replace(count, due_at=due_at))


async def _replace_earlier_count(tx: Tx, organization_id: UUID, count: CountJob, source: ValueSource) -> None:
    """From now on pages show this count, so older counts of all keys are deleted. Values that too few customers have
    are no longer needed, unless new rows will be added."""
    if isinstance(source, ChangingSource):
        await queries.drop_rare_values(tx, organization_id, count.id, times_min=CUSTOMERS_MIN)
    full_counts = await queries.list_full_counts(tx, organization_id, count.catalog)
    await delete_counts(tx, organization_id, [earlier.id for earlier in full_counts if earlier.id < count.id])


async def _find_types(tx: Tx, organization_id: UUID, count: CountJob, keys: list[str]) -> dict[str, DeclaredType]:
    if count.key is not None and count.type is not None:
        return {count.key: DeclaredType(count.type, count.allowed_values)}
    types = await entries.find_types(tx, organization_id, count.catalog, keys)
    return {key: DeclaredType(declared, allowed) for key, (declared, allowed) in types.items()}
