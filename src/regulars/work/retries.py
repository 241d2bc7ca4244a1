"""Retry facts (events of the outbox) that a listener failed on, for that listener alone; after the last attempt they
are parked: stored for the operator, and not tried again."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.db import Database, Tx
from regulars.work import queries
from regulars.work.facts import Fact, Listener, Listeners
from regulars.work.outbox import RETRIES, RETRY_QUEUE, decode_facts
from regulars.work.queries import RetryRow
from regulars.work.queue import Due, Queue, RowQueue, WaitLimit, log_queue_error

# A listener that this release does not know may belong to the next release, which is starting at the same time. After
# this long it must be a listener that was removed.
VANISHED_AFTER: Final = timedelta(hours=1)

_log = log.get(__name__)


class RetryQueue(Queue):
    """The queue of all retries. A pass runs a batch for each listener with due retries: none waits for another."""

    name = RETRY_QUEUE
    due = Due(
        table="outbox_retries",
        waits=(RETRIES.retries(), WaitLimit(at_most=(timedelta(0),), condition="attempts = 0")),
    )

    def __init__(self, listeners: Listeners) -> None:
        by_name: dict[str, dict[str, tuple[type[Fact], Listener]]] = {}
        for kind, listeners_of_kind in listeners.items():
            for name, listener in listeners_of_kind.items():
                by_name.setdefault(name, {})[kind.topic] = (kind, listener)
        self._retries = {name: _ListenerRetries(name, by_topic) for name, by_topic in by_name.items()}

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            await self._delete_vanished(tx, organization_id)
            due = await queries.find_listeners_with_retries(tx, organization_id, sorted(self._retries))
        has_more = False
        failure: Exception | None = None
        for name in due:
            try:
                has_more |= await self._retries[name].run_pass(database, organization_id)
            except Exception as error:  # noqa: BLE001  # it is logged; the other listeners must get their batch
                log_queue_error("outbox.retries_failed", self.name, organization_id, error, listener=name)
                failure = error
        if failure is not None and not has_more:
            # Raised, so that the worker's loop waits before the next pass.
            raise failure
        return has_more

    async def _delete_vanished(self, tx: Tx, organization_id: UUID) -> None:
        names = sorted(self._retries)
        deleted = await queries.delete_vanished_retries(tx, organization_id, names, until=tx.now - VANISHED_AFTER)
        for row_id, name in deleted:
            log_values = {"organization_id": str(organization_id), "row": str(row_id), "listener": name}
            _log.warning("outbox.listener_vanished", **log_values)


class _ListenerRetries(RowQueue[RetryRow]):
    """The retries of one listener."""

    name = RETRY_QUEUE
    due = RetryQueue.due
    schedule = RETRIES

    def __init__(self, listener: str, by_topic: Mapping[str, tuple[type[Fact], Listener]]) -> None:
        self._listener = listener
        self._by_topic = by_topic

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[RetryRow]:
        return await queries.take_due_retries(tx, organization_id, self._listener, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[RetryRow]) -> None:
        by_topic: dict[str, list[RetryRow]] = {}
        for row in rows:
            by_topic.setdefault(row.topic, []).append(row)
        for topic, rows_of_topic in by_topic.items():
            kind, listener = self._by_topic[topic]
            await listener(tx, organization_id, decode_facts(kind, rows_of_topic))
        await queries.delete_retries(tx, organization_id, rows)

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: RetryRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        await queries.postpone_retry(tx, organization_id, row, attempts=attempts, due_at=due_at)
