"""Facts that a listener failed on: tried again alone, each on its own schedule, and parked in the end."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit import log
from regulars.kit.db import Tx
from regulars.work import queries
from regulars.work.facts import Fact, Listener, Listeners
from regulars.work.outbox import RETRIES, decode_facts
from regulars.work.queries import RetryRow
from regulars.work.queue import Due, RowQueue

# A name that this release does not know may be one of the next release, which is starting beside it. After this long
# it is one that is gone.
VANISHED_AFTER: Final = timedelta(hours=1)

_log = log.get(__name__)


class RetryQueue(RowQueue[RetryRow]):
    name = "outbox.retries"
    due = Due(table="outbox_retries")
    schedule = RETRIES
    turns_at_once = 1

    def __init__(self, listeners: Listeners) -> None:
        self._listeners: dict[tuple[str, str], tuple[type[Fact], Listener]] = {
            (kind.topic, name): (kind, listener)
            for kind, by_name in listeners.items()
            for name, listener in by_name.items()
        }

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[RetryRow]:
        names = sorted({name for _, name in self._listeners})
        gone = await queries.delete_vanished_retries(tx, organization_id, names, until=tx.now - VANISHED_AFTER)
        for row_id, name in gone:
            about = {"organization_id": str(organization_id), "row": str(row_id), "listener": name}
            _log.warning("outbox.listener_vanished", **about)
        return await queries.take_due_retries(tx, organization_id, names, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[RetryRow]) -> None:
        together: dict[tuple[str, str], list[RetryRow]] = {}
        for row in rows:
            together.setdefault((row.topic, row.listener), []).append(row)
        for address, some in together.items():
            kind, listener = self._listeners[address]
            await listener(tx, organization_id, decode_facts(kind, some))
        await queries.delete_retries(tx, organization_id, rows)

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: RetryRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        await queries.postpone_retry(tx, organization_id, row, attempts=attempts, due_at=due_at)
