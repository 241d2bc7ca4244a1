"""The outbox: a fact (an event) is recorded in the transaction of the change it describes, and the worker passes it to
its listeners afterwards.

The listeners of a fact are independent. If one fails, the work of the others is committed, together with a retry row
for the one that failed (`retries.py`). A listener that cannot get a lock, or takes too long, does not block the others
either: its facts are moved to its own queue at once, and for a minute new facts go there directly.
"""

import functools
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from regulars.kit import failpoint, ids, log
from regulars.kit.clock import monotonic
from regulars.kit.db import Database, Tx
from regulars.work import queries, queue
from regulars.work.facts import Fact, Listener, Listeners, find_condition
from regulars.work.queries import OutboxRow, RetryRow

# Every fact waits for a short time; pages show only a delay of at least this long.
BEHIND_MIN: Final = timedelta(seconds=3)
# The longest delay of a fact: `due_at` of `record` is at most this far ahead.
DELAY_MAX: Final = timedelta(minutes=1)
# The waits before each retry. A fact that a listener fails on after the last one is parked: it stays stored for the
# operator, is not tried again, and blocks nothing.
RETRIES: Final = queue.Schedule(waits_s=(1, 5, 30, 120, 600, 1800, 3600))
# The size of the facts about 6,000 sales, after which a batch ends: one row may be about one sale, and another about a
# thousand.
BATCH_CHARACTERS_MAX: Final = 1 << 18
# The queue of facts that were deferred for one listener (`retries.py`).
RETRY_QUEUE: Final = "outbox.retries"
# The time limit of a listener's statement while other listeners wait; for deferred facts the usual limit applies.
STATEMENT_MS_MAX: Final = 5_000
# After a lock or the time limit blocked a listener: how long its new facts go directly to its rows in `RETRY_QUEUE`.
DEFER_S: Final = 60.0

_log = log.get(__name__)

AnyFact = TypeVar("AnyFact", bound=Fact)


class DueFacts(NamedTuple):
    """Rows with facts of one kind, and the listeners to call with them."""

    kind: type[Fact]
    rows: Sequence[OutboxRow]
    listeners: Mapping[str, Listener]


Notify = Callable[[Tx, UUID, DueFacts], Awaitable[None]]


async def record(tx: Tx, organization_id: UUID, facts: Sequence[Fact], *, due_at: datetime | None = None) -> None:
    """Record the facts: one row for each topic, whose payload is the list of its facts in order.

    Facts with `on_interest` are recorded only if a module registered interest. The worker is woken after the commit.
    """
    by_type: dict[type[Fact], list[Fact]] = {}
    for fact in facts:
        by_type.setdefault(type(fact), []).append(fact)
    rows = [
        queries.NewOutboxRow(
            ids.new_uuid(), kind.topic, msgspec.json.encode(facts_of_kind).decode(), on_interest=kind.on_interest
        )
        for kind, facts_of_kind in by_type.items()
    ]
    if rows and await queries.insert_outbox_rows(tx, organization_id, rows, due_at=due_at):
        tx.queues_to_wake.add((OutboxQueue.name, organization_id))


async def date_facts_now(tx: Tx, organization_id: UUID, *, before: datetime) -> None:
    """Date the facts that were recorded before this time as recorded now, for a transaction that wrote with past times.

    What waits until facts are handled (`behind_since`) waits for these too, as for any that were just recorded.
    """
    await queries.date_rows(tx, organization_id, before=before)


async def has_interest(tx: Tx, organization_id: UUID, fact: type[Fact]) -> bool:
    """Whether a module registered interest in the fact; for callers to whom making the fact is expensive."""
    rows = await tx.fetch(
        "SELECT FROM interests WHERE organization_id = %s AND topic = %s LIMIT 1", (organization_id, fact.topic)
    )
    return bool(rows)


async def behind_since(tx: Tx, organization_id: UUID, *, at_least: timedelta = BEHIND_MIN) -> datetime | None:
    """Return when the oldest waiting fact was recorded, if it has waited for `at_least`; else None. Metrics that
    listeners compute contain everything before that time."""
    oldest = await queries.find_oldest_row(tx, organization_id)
    return oldest if oldest is not None and tx.now - oldest >= at_least else None


async def register_interest(tx: Tx, organization_id: UUID, fact: type[Fact], *, needed_by: str) -> None:
    """Have the fact recorded from this commit on; registering twice is the same as once.

    Interest is a row that the recording statement reads, never a cached value, so a write after this commit records the
    fact. `needed_by` distinguishes modules, or objects of one module, that need the same topic.
    """
    await tx.execute(
        "INSERT INTO interests (organization_id, topic, needed_by) VALUES (%s, %s, %s)"
        " ON CONFLICT (organization_id, topic, needed_by) DO NOTHING",
        (organization_id, fact.topic, needed_by),
    )


async def withdraw_interest(tx: Tx, organization_id: UUID, fact: type[Fact], *, needed_by: str) -> None:
    """Have the fact recorded no longer. Facts that are recorded already still reach their listeners."""
    await tx.execute(
        "DELETE FROM interests WHERE organization_id = %s AND topic = %s AND needed_by = %s",
        (organization_id, fact.topic, needed_by),
    )


async def rewrite_waiting_facts(
    tx: Tx,
    organization_id: UUID,
    kind: type[AnyFact],
    ids: Collection[UUID],
    rewrite: Callable[[AnyFact], AnyFact | None],
) -> None:
    """Rewrite the waiting facts that contain one of the ids, to erase a person from them; a fact for which `rewrite`
    returns None is deleted.

    These are facts in the outbox, facts that wait for one listener, and parked ones. The function waits for rows that
    the worker has locked, so the caller sees afterwards what their listeners wrote.
    """
    id_texts = [str(identifier) for identifier in ids]
    if not id_texts:
        return
    decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # known at run time only
    for row in await queries.lock_rows_with(tx, organization_id, kind.topic, id_texts):
        remaining = [fact for fact in map(rewrite, decoder.decode(row.payload)) if fact is not None]
        if remaining:
            await queries.update_payload(tx, organization_id, row.id, msgspec.json.encode(remaining).decode())
        else:
            await queries.delete_rows(tx, organization_id, [row.id])
    for retry in await queries.lock_retries_with(tx, organization_id, kind.topic, id_texts):
        remaining = [fact for fact in map(rewrite, decoder.decode(retry.payload)) if fact is not None]
        if remaining:
            await queries.update_retry_payload(tx, organization_id, retry, msgspec.json.encode(remaining).decode())
        else:
            await queries.delete_retries(tx, organization_id, [retry])


class OutboxQueue(queue.Queue):
    """Passes every due fact to its listeners.

    Rows of a topic without listeners are not touched: they may belong to a newer release that is starting at the same
    time.

    The listeners with a name in `last` are called after all others. They lock rows of the organization until the
    commit: if another listener took a lock after that, two workers on the same organization could deadlock.
    """

    name = "outbox"
    due = queue.Due(
        table="outbox",
        waits=(
            queue.WaitLimit(at_most=(timedelta(0),), condition="not_before IS NULL"),
            queue.WaitLimit(
                at_most=(DELAY_MAX,), condition="not_before IS NOT NULL", waits_again=True, also="not_before"
            ),
        ),
    )
    passes_at_once = 4
    delays_passes = True

    def __init__(self, listeners: Listeners, *, last: Collection[str] = ()) -> None:
        self._kinds = {kind.topic: kind for kind in listeners}
        # Two sets of listeners: those that are called first, and those that are called last.
        self._phases = [
            {
                kind: {name: listener for name, listener in by_name.items() if (name in last) is is_last}
                for kind, by_name in listeners.items()
            }
            for is_last in (False, True)
        ]
        conditions = {find_condition(listener) for by_name in listeners.values() for listener in by_name.values()}
        self._conditions = tuple(sorted(condition for condition in conditions if condition is not None))
        # Organizations with large facts, and how many rows the next batch takes of each.
        self._batch_rows: dict[UUID, int] = {}
        # Until when facts are deferred, by organization and listener.
        self._deferred_until: dict[tuple[UUID, str], float] = {}

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        while True:
            try:
                return await self._deliver_batch(database, organization_id, self._notify_all)
            except ListenerBlockedError as blocked:
                # The transaction was rolled back. In the next attempt the other listeners get the same facts, which are
                # deferred for this one.
                self._defer(organization_id, blocked.listener, blocked.__cause__)
            except queue.RowsFailedError:
                return await self._deliver_batch(database, organization_id, self._notify_each)

    async def _deliver_batch(self, database: Database, organization_id: UUID, notify: Notify) -> bool:
        """Take rows and call their listeners; return whether more rows may be due."""
        async with database.transaction(statement_timeout_ms=STATEMENT_MS_MAX) as tx:
            limit = self._batch_rows.get(organization_id, queue.BATCH_ROWS)
            rows, unmet_conditions = await queries.take_due_rows(
                tx,
                organization_id,
                list(self._kinds),
                self._conditions,
                limit=limit,
                characters_max=BATCH_CHARACTERS_MAX,
            )
            if rows:
                failpoint.hit("fact.taken", tx.connection.drop_connection)
            is_large = sum(len(row.payload) for row in rows) > BATCH_CHARACTERS_MAX
            self._set_batch_rows(organization_id, len(rows) if is_large else limit * 2)
            by_topic: dict[str, list[OutboxRow]] = {}
            for row in rows:
                by_topic.setdefault(row.topic, []).append(row)
            for listeners in self._phases:
                for topic, rows_of_topic in by_topic.items():
                    kind = self._kinds[topic]
                    needed = {
                        name: listener
                        for name, listener in listeners[kind].items()
                        if find_condition(listener) not in unmet_conditions
                    }
                    called = await self._defer_blocked(tx, organization_id, needed, rows_of_topic)
                    if called:
                        await notify(tx, organization_id, DueFacts(kind, rows_of_topic, called))
        return is_large or len(rows) == limit

    def _set_batch_rows(self, organization_id: UUID, rows: int) -> None:
        """Set how many rows the next batch takes: fewer, as long as the organization's facts are large."""
        if rows < queue.BATCH_ROWS:
            self._batch_rows[organization_id] = rows
        else:
            self._batch_rows.pop(organization_id, None)

    def _defer(self, organization_id: UUID, listener: str, error: BaseException | None) -> None:
        now = monotonic()
        self._deferred_until = {key: until for key, until in self._deferred_until.items() if until > now}
        self._deferred_until[organization_id, listener] = now + DEFER_S
        _log.warning(
            "outbox.listener_deferred",
            organization_id=str(organization_id),
            listener=listener,
            error=type(error).__name__,
        )

    async def _defer_blocked(
        self, tx: Tx, organization_id: UUID, listeners: Mapping[str, Listener], rows: Sequence[OutboxRow]
    ) -> Mapping[str, Listener]:
        """Defer the rows for listeners that were blocked within the last minute; return the listeners to call now."""
        if not self._deferred_until:
            return listeners
        now = monotonic()
        deferred = [name for name in listeners if self._deferred_until.get((organization_id, name), now) > now]
        for name in deferred:
            await self._insert_retries(tx, organization_id, name, rows, attempts=0)
        return {name: listener for name, listener in listeners.items() if name not in deferred}

    async def _insert_retries(
        self, tx: Tx, organization_id: UUID, name: str, rows: Sequence[OutboxRow], *, attempts: int
    ) -> None:
        due_at = RETRIES.due_at(tx.now, attempts=attempts) if attempts else tx.now
        await queries.insert_retries(tx, organization_id, rows, listener=name, attempts=attempts, due_at=due_at)
        tx.queues_to_wake.add((RETRY_QUEUE, organization_id))

    async def _notify_all(self, tx: Tx, organization_id: UUID, due: DueFacts) -> None:
        """Call the listeners with all rows at once, for the fewest round trips; if any row fails, none takes effect."""
        name = ""
        try:
            facts = decode_facts(due.kind, due.rows)
            for name, listener in due.listeners.items():  # noqa: B007  # the name is used in the `except` block
                await listener(tx, organization_id, facts)
        except queue.BLOCKED_ERRORS as error:
            raise ListenerBlockedError(name) from error
        except Exception as error:
            queue.raise_if_lost(tx, error)
            raise queue.RowsFailedError from error

    async def _notify_each(self, tx: Tx, organization_id: UUID, due: DueFacts) -> None:
        """Call each listener separately, and bisect the rows if it fails; store the rows it fails on for its retry."""
        for name, listener in due.listeners.items():

            async def notify(part: Sequence[OutboxRow], listener: Listener = listener) -> None:
                await listener(tx, organization_id, decode_facts(due.kind, part))

            try:
                # A savepoint around the bisection, so that a listener that is blocked handles all rows later, and none
                # now.
                async with tx.connection.transaction():
                    failing = await queue.find_failing_items(tx, due.rows, notify)
            except queue.BLOCKED_ERRORS as blocked:
                self._defer(organization_id, name, blocked)
                await self._insert_retries(tx, organization_id, name, due.rows, attempts=0)
                continue
            for row, error in failing:
                log_values = {"row": str(row.id), "topic": due.kind.topic, "listener": name}
                queue.log_failure(self.name, organization_id, error, attempts=1, is_parked=False, **log_values)
            if failing:
                await self._insert_retries(tx, organization_id, name, [row for row, _ in failing], attempts=1)


class ListenerBlockedError(Exception):
    """A listener waited for a lock for too long, or its statement timed out."""

    def __init__(self, listener: str) -> None:
        super().__init__(listener)
        self.listener = listener


def decode_facts(kind: type[Fact], rows: Sequence[OutboxRow | RetryRow]) -> list[Fact]:
    return [fact for row in rows for fact in _decoder_of(kind).decode(row.payload)]


@functools.cache
def _decoder_of(kind: type[Fact]) -> msgspec.json.Decoder[list[Fact]]:
    return msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # known at run time only
