"""Many writers, one transaction: what arrives while a batch is being committed becomes the next batch.

There is a queue per key (an organization and an endpoint). A queue has at most one batch in flight, and a fixed number
of flushers serve the waiting queues in turn, so one queue's flood cannot starve another. There is no timer: an idle
coalescer flushes a lone item at once, and batches grow only because the database is busy.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from regulars.kit import log

FLUSHERS = 8
QUEUE_ITEMS_MAX = 2_048
WAITING_BYTES_MAX = 64 << 20
BATCH_BYTES_MAX = 4 << 20

_log = log.get(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class Overloaded(Exception):
    """A queue is at its bound; the item was not taken."""


@dataclass(slots=True)
class _Queue(Generic[T]):
    items: deque[tuple[T, int]] = field(default_factory=deque)
    # A queue that is being flushed, or that stands in line for it, is not put in line again.
    in_line: bool = False


class Coalescer(Generic[K, T]):
    def __init__(
        self,
        flush: Callable[[K, list[T]], Awaitable[None]],
        *,
        items_max: Callable[[K], int],
        flushers: int = FLUSHERS,
        queue_items_max: int = QUEUE_ITEMS_MAX,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self._flush = flush
        self._items_max = items_max
        self._flushers_max = flushers
        self._queue_items_max = queue_items_max
        self._waiting_bytes_max = waiting_bytes_max
        self._queues: dict[K, _Queue[T]] = {}
        self._line: deque[K] = deque()
        self._flushers: set[asyncio.Task[None]] = set()
        self.waiting_items = 0
        self.waiting_bytes = 0

    def put(self, key: K, item: T, *, size: int) -> None:
        """Queue an item, or raise Overloaded. `flush` must give the item its outcome, whatever happens."""
        if not self.has_room(key, size=size):
            raise Overloaded
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        queue.items.append((item, size))
        self.waiting_items += 1
        self.waiting_bytes += size
        if not queue.in_line:
            queue.in_line = True
            self._line.append(key)
            if len(self._flushers) < self._flushers_max:
                self._flushers.add(asyncio.create_task(self._serve_line()))

    def has_room(self, key: K, *, size: int) -> bool:
        queue = self._queues.get(key)
        is_full = queue is not None and len(queue.items) >= self._queue_items_max
        return not is_full and self.waiting_bytes + size <= self._waiting_bytes_max

    async def drain(self) -> None:
        """Wait until everything that was queued has its outcome."""
        while self._flushers:
            await asyncio.wait(self._flushers)

    async def _serve_line(self) -> None:
        try:
            while self._line:
                try:
                    await self._serve_next()
                except Exception:  # noqa: BLE001  # against its promise; those behind it are in line, and nobody else comes
                    _log.exception("coalesce.flush_failed")
        finally:
            # At once and not in a callback: an item that arrives before the callback ran would see a flusher too many
            # and start none, and nobody would serve it.
            self._flushers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _serve_next(self) -> None:
        key = self._line.popleft()
        queue = self._queues[key]
        batch = self._take(queue, self._items_max(key))
        try:
            await self._flush(key, batch)
        finally:
            if queue.items:
                self._line.append(key)
            else:
                # An empty queue is forgotten, so that queues of the past cost no memory.
                del self._queues[key]

    def _take(self, queue: _Queue[T], items_max: int) -> list[T]:
        batch: list[T] = []
        size = 0
        while queue.items and len(batch) < items_max:
            item, item_size = queue.items[0]
            if batch and size + item_size > BATCH_BYTES_MAX:
                break
            queue.items.popleft()
            batch.append(item)
            size += item_size
        self.waiting_items -= len(batch)
        self.waiting_bytes -= size
        return batch
