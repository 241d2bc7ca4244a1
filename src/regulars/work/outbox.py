"""The outbox: facts are recorded in the transaction that made them true, and drained by the worker afterwards."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import psycopg

from regulars.kit import ids, log
from regulars.kit.db import Database, Tx
from regulars.work import queries
from regulars.work.facts import Fact, Listeners

CHUNK_ROWS: Final = 50
# Waits before the second, third, … try. A row that fails after all of them is parked: it stays for a person to look
# at, and nothing waits behind it.
RETRY_SCHEDULE_S: Final = (1, 5, 30, 120, 600, 1800, 3600)
ATTEMPTS_MAX: Final = len(RETRY_SCHEDULE_S) + 1
# A bound on one call, so that a worker comes back to its other organizations; the next poll continues.
CHUNKS_MAX: Final = 1000

_log = log.get(__name__)


async def record(tx: Tx, organization_id: UUID, facts: Sequence[Fact], *, not_before: datetime | None = None) -> None:
    """Write the facts: one row for each topic, whose payload is the list of its facts in the order given."""
    by_topic: dict[str, list[Fact]] = {}
    for fact in facts:
        by_topic.setdefault(fact.topic, []).append(fact)
    rows = [
        queries.NewOutboxRow(ids.new_uuid(), topic, msgspec.json.encode(together).decode())
        for topic, together in by_topic.items()
    ]
    if rows:
        await queries.insert_outbox_rows(tx, organization_id, rows, not_before=not_before)


async def drain(database: Database, organization_id: UUID, listeners: Listeners) -> int:
    """Hand every due fact of one organization to its listeners; answer how many rows took effect.

    Rows whose topic no listener table names are left alone: they may belong to a newer version of the code that is
    starting up beside this one.
    """
    done = 0
    topics = [fact_type.topic for fact_type in listeners]
    async with database.reading() as tx:
        # Most organizations have nothing new most of the time, and one statement without a transaction says so.
        if not await queries.has_due_rows(tx, organization_id, topics):
            return 0
    for _ in range(CHUNKS_MAX):
        taken, succeeded = await _drain_chunk(database, organization_id, listeners)
        done += succeeded
        if taken < CHUNK_ROWS:
            break
    return done


class _RowFailedError(Exception):
    """A row's listener failed, and the rows that were taken together are to be tried one by one."""


async def _drain_chunk(database: Database, organization_id: UUID, listeners: Listeners) -> tuple[int, int]:
    """Take a chunk of rows; answer how many were taken, and how many of them took effect."""
    try:
        taken = await _drain_together(database, organization_id, listeners)
    except _RowFailedError:
        return await _drain_one_by_one(database, organization_id, listeners)
    return taken, taken


async def _drain_together(database: Database, organization_id: UUID, listeners: Listeners) -> int:
    """The usual case, with as few round trips as there are: if any row fails, none has taken effect."""
    types = {fact_type.topic: fact_type for fact_type in listeners}
    async with database.transaction() as tx:
        rows = await queries.take_due_rows(tx, organization_id, list(types), limit=CHUNK_ROWS)
        try:
            for row in rows:
                await _tell(tx, organization_id, row, types[row.topic], listeners)
        except Exception as error:
            if tx.connection.broken or isinstance(error, psycopg.InterfaceError):
                raise
            raise _RowFailedError from error
        if rows:
            await queries.delete_rows(tx, organization_id, [row.id for row in rows])
    return len(rows)


async def _drain_one_by_one(database: Database, organization_id: UUID, listeners: Listeners) -> tuple[int, int]:
    types = {fact_type.topic: fact_type for fact_type in listeners}
    async with database.transaction() as tx:
        rows = await queries.take_due_rows(tx, organization_id, list(types), limit=CHUNK_ROWS)
        finished = [row.id for row in rows if await _apply(tx, organization_id, row, types[row.topic], listeners)]
        if finished:
            await queries.delete_rows(tx, organization_id, finished)
    return len(rows), len(finished)


async def _apply(
    tx: Tx, organization_id: UUID, row: queries.OutboxRow, fact_type: type[Fact], listeners: Listeners
) -> bool:
    try:
        # A savepoint, so that a failing row takes back only its own writes and its neighbours still commit.
        async with tx.connection.transaction():
            await _tell(tx, organization_id, row, fact_type, listeners)
    except Exception as error:
        if tx.connection.broken or isinstance(error, psycopg.InterfaceError):
            raise
        await _postpone(tx, organization_id, row)
        return False
    return True


async def _tell(
    tx: Tx, organization_id: UUID, row: queries.OutboxRow, fact_type: type[Fact], listeners: Listeners
) -> None:
    facts = msgspec.json.decode(row.payload, type=list[fact_type])  # type: ignore[valid-type]  # known at run time only
    for listener in listeners[fact_type]:
        await listener(tx, organization_id, facts)


async def _postpone(tx: Tx, organization_id: UUID, row: queries.OutboxRow) -> None:
    attempts = row.attempts + 1
    about = {"organization_id": str(organization_id), "row": str(row.id), "topic": row.topic, "attempts": attempts}
    if attempts >= ATTEMPTS_MAX:
        _log.exception("outbox.parked", **about)
        await queries.park_row(tx, organization_id, row.id, attempts=attempts)
        return
    _log.warning("outbox.postponed", exc_info=True, **about)
    wait = timedelta(seconds=RETRY_SCHEDULE_S[attempts - 1])
    await queries.postpone_row(tx, organization_id, row.id, attempts=attempts, not_before=tx.now + wait)
