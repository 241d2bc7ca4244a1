"""Wake the worker when a queue has new rows: after the commit, on a separate connection, at most twice a second.

A transaction that writes rows never uses NOTIFY: PostgreSQL commits transactions with NOTIFY one after another under
one lock, which would prevent group commit for all writers. So the transaction only inserts its rows, and once per
interval the waker sends the wake-ups of all organizations with new rows. A lost wake-up costs a second at most, because
the worker polls.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection, Notify
from psycopg.rows import TupleRow

from regulars.kit import log
from regulars.kit.db import CONNECTION_ERRORS, Database

CHANNEL: Final = "regulars_work"
INTERVAL_S: Final = 0.5
CLOSE_WAIT_S: Final = 2.0
RECONNECT_S: Final = 1.0
# PostgreSQL accepts payloads of fewer than 8,000 bytes; each organization needs 32 digits and a comma.
ORGANIZATIONS_PER_WAKE_MAX: Final = 200

_log = log.get(__name__)


class Waker:
    """Sends wake-ups; there is one object per server process. `wake` is cheap enough for the hot path."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: AsyncConnection[TupleRow] | None = None
        # The queues to wake, each with its organization.
        self._waiting: set[tuple[str, UUID]] = set()
        database.woken = self._waiting
        self._task: asyncio.Task[None] | None = None
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        """Send the waiting wake-ups, then close the connection."""
        self._is_open = False
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._task, CLOSE_WAIT_S)
        if self._connection is not None:
            await self._connection.close()

    def wake(self, queue: str, organization_id: UUID) -> None:
        """Send a wake-up for the organization: the first one at once, later ones of the same interval together."""
        if not self._is_open:
            return
        self._waiting.add((queue, organization_id))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            batch: dict[str, set[UUID]] = {}
            for queue, organization_id in self._waiting:
                batch.setdefault(queue, set()).add(organization_id)
            self._waiting.clear()
            try:
                for queue, organization_ids in batch.items():
                    for payload in payloads(queue, organization_ids):
                        await self._notify(payload)
            except Exception as error:  # noqa: BLE001  # a wake-up may be lost: the worker's poll finds the rows
                _log.warning("wake.failed", organizations=sum(map(len, batch.values())), error=type(error).__name__)
            await asyncio.sleep(INTERVAL_S if self._is_open else 0)

    async def _notify(self, payload: str) -> None:
        if self._connection is None or self._connection.closed:
            self._connection = await self._database.dial()
        await self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))


def payloads(queue: str, organization_ids: Collection[UUID]) -> Iterator[str]:
    """Yield the NOTIFY payloads for all organizations, each within PostgreSQL's size limit."""
    hex_ids = [organization_id.hex for organization_id in organization_ids]
    for first in range(0, len(hex_ids), ORGANIZATIONS_PER_WAKE_MAX):
        yield f"{queue}:{','.join(hex_ids[first : first + ORGANIZATIONS_PER_WAKE_MAX])}"


async def listen_forever(database: Database, wake: Callable[[str, UUID], None]) -> None:
    """Call `wake` for each wake-up, and reconnect when the connection is lost; polling makes up for missed wake-ups."""
    while True:
        try:
            connection = await database.dial()
            async with connection:
                await connection.execute("LISTEN regulars_work")
                async for notify in connection.notifies():
                    _call_wake(notify, wake)
        except CONNECTION_ERRORS as error:
            _log.warning("wake.lost_database", error=type(error).__name__)
        await asyncio.sleep(RECONNECT_S)


def _call_wake(notify: Notify, wake: Callable[[str, UUID], None]) -> None:
    queue, _, hex_ids = notify.payload.partition(":")
    try:
        organization_ids = [UUID(hex_id) for hex_id in hex_ids.split(",")]
    except ValueError:
        _log.warning("wake.not_understood")
        return
    for organization_id in organization_ids:
        wake(queue, organization_id)
