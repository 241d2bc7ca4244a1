"""Many writers, one transaction: what arrives while a batch is being committed becomes the next batch.

There is a queue per key (an organization and an endpoint). A queue has at most one batch in flight, and a fixed number
of flushers serve the waiting queues in turn, so one queue's flood cannot starve another. There is no timer: an idle
coalescer flushes a lone item at once, and batches grow only because the database is busy.

Queues of one kind may be flushed *together*. They stand in a line of their own, of which one turn takes whatever is
there, so it too grows only because the database is busy. One such turn is under way at a time, and another begins
beside it only when it takes long: then somebody in it waits for something, and the others must not wait for that. What
a shared turn leaves over goes to the other line, each queue by itself.

A queue refuses what it could not serve soon. How long that takes shows in the last batch that was taken: if somebody in
it had waited too long, nobody is let in who would not be in the very next batch. While nothing is taken, because the
database is away, only what waits is bounded, by number and by bytes: a caller may well outwait that.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from regulars.kit import log
from regulars.kit.clock import monotonic

FLUSHERS = 8
QUEUE_ITEMS_MAX = 2_048
QUEUE_BYTES_MAX = 16 << 20
WAITING_BYTES_MAX = 64 << 20
# Who would wait for longer had better come again.
WAIT_S_MAX = 0.5
BATCH_BYTES_MAX = 4 << 20
SHARED_ITEMS_MAX = 64
# A shared turn that is under way for longer holds nobody else up.
TURN_IS_LONG_S = 0.05

_log = log.get(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

# A queue with what was taken from it.
Batch = tuple[K, list[T]]


class Overloaded(Exception):
    """A queue is at its bound; the item was not taken."""


@dataclass(slots=True)
class _Queue(Generic[T]):
    # Each with its size, and when it came.
    items: deque[tuple[T, int, float]] = field(default_factory=deque)
    size: int = 0
    # Whether the first of the batch that was taken last had waited too long.
    is_late: bool = False
    # A queue that is being flushed, or that stands in line for it, is not put in line again.
    in_line: bool = False
    # What a shared turn left over, to be flushed by itself before anything else of this queue.
    left: list[T] = field(default_factory=list)


@dataclass(slots=True)
class _Line(Generic[K]):
    keys: deque[K] = field(default_factory=deque)
    flushers: set[asyncio.Task[None]] = field(default_factory=set)


class Coalescer(Generic[K, T]):
    def __init__(
        self,
        flush: Callable[[K, list[T]], Awaitable[None]],
        *,
        items_max: Callable[[K], int],
        flushers: int = FLUSHERS,
        wait_s_max: Callable[[K], float] = lambda _: WAIT_S_MAX,
        queue_items_max: int = QUEUE_ITEMS_MAX,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
        shared_as: Callable[[K], Hashable | None] = lambda _: None,
        flush_together: Callable[[Sequence[Batch[K, T]]], Awaitable[Sequence[list[T]]]] | None = None,
    ) -> None:
        """`shared_as` gives what a queue may be flushed together with, or None; `flush_together` what it left over."""
        self._flush = flush
        self._flush_together = flush_together
        self._shared_as = shared_as
        self._items_max = items_max
        self._flushers_max = flushers
        self._wait_s_max = wait_s_max
        self._queue_items_max = queue_items_max
        self._queue_bytes_max = queue_bytes_max
        self._waiting_bytes_max = waiting_bytes_max
        self._queues: dict[K, _Queue[T]] = {}
        self._alone: _Line[K] = _Line()
        self._shared: _Line[K] = _Line()
        self._shared_turn_at = float("-inf")
        self._watch: asyncio.TimerHandle | None = None
        self.waiting_items = 0
        self.waiting_bytes = 0

    def put(self, key: K, item: T, *, size: int) -> None:
        """Queue an item, or raise Overloaded. `flush` must give the item its outcome, whatever happens."""
        if not self.has_room(key, size=size):
            raise Overloaded
        self.add(key, item, size=size)

    def add(self, key: K, item: T, *, size: int) -> None:
        """Queue an item that was found to have room."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        queue.items.append((item, size, monotonic()))
        queue.size += size
        self.waiting_items += 1
        self.waiting_bytes += size
        if not queue.in_line:
            queue.in_line = True
            self._stand_in_line(key)

    def has_room(self, key: K, *, size: int) -> bool:
        queue = self._queues.get(key)
        if queue is not None and queue.items:
            if len(queue.items) >= self._queue_items_max or queue.size + size > self._queue_bytes_max:
                return False
            if queue.is_late and len(queue.items) >= self._items_max(key):
                return False
        return self.waiting_bytes + size <= self._waiting_bytes_max

    async def drain(self) -> None:
        """Wait until everything that was queued has its outcome."""
        while flushers := self._alone.flushers | self._shared.flushers:
            await asyncio.wait(flushers)

    def _stand_in_line(self, key: K, *, served_by: _Line[K] | None = None) -> None:
        """Somebody is called to serve the line, unless one of its own flushers is asking and goes on by itself."""
        line = self._alone if self._queues[key].left or self._shared_as(key) is None else self._shared
        line.keys.append(key)
        if line is not served_by:
            self._call_flusher(line)

    def _call_flusher(self, line: _Line[K]) -> None:
        if line is self._shared and self._is_shared_turn_young():
            self._watch_shared_turn()
        elif len(line.flushers) < self._flushers_max:
            if line is self._shared:
                self._shared_turn_at = monotonic()
            line.flushers.add(asyncio.create_task(self._serve_line(line)))

    def _is_shared_turn_young(self) -> bool:
        return bool(self._shared.flushers) and monotonic() - self._shared_turn_at < TURN_IS_LONG_S

    def _watch_shared_turn(self) -> None:
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(TURN_IS_LONG_S, self._look_at_shared_turn)

    def _look_at_shared_turn(self) -> None:
        self._watch = None
        if self._shared.keys:
            self._call_flusher(self._shared)

    async def _serve_line(self, line: _Line[K]) -> None:
        serve_next = self._serve_alone if line is self._alone else self._serve_together
        try:
            while line.keys:
                try:
                    await serve_next()
                except Exception:  # noqa: BLE001  # against its promise; those behind it are in line, and nobody else comes
                    _log.exception("coalesce.flush_failed")
                if line is self._shared and len(line.flushers) > 1 and self._is_shared_turn_young():
                    # It was the slow one: another took the line over.
                    self._watch_shared_turn()
                    return
        finally:
            # At once and not in a callback: an item that arrives before the callback ran would see a flusher too many
            # and start none, and nobody would serve it.
            line.flushers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _serve_alone(self) -> None:
        key = self._alone.keys.popleft()
        queue = self._queues[key]
        batch, queue.left = queue.left or self._take(key, queue), []
        try:
            await self._flush(key, batch)
        finally:
            self._served(key, self._alone)

    async def _serve_together(self) -> None:
        if self._flush_together is None:
            raise AssertionError("queues that are shared need a way to flush them together")
        began = self._shared_turn_at = monotonic()
        turn = self._take_together()
        left: Sequence[list[T]] = [[]] * len(turn)
        try:
            left = await self._flush_together(turn)
        finally:
            if self._shared_turn_at == began:
                # It is over: whoever comes now need not wait until it would have been long.
                self._shared_turn_at = float("-inf")
            for (key, _), rest in zip(turn, left, strict=True):
                self._queues[key].left = rest
                self._served(key, self._shared)

    def _served(self, key: K, line: _Line[K]) -> None:
        queue = self._queues[key]
        if queue.left or queue.items:
            self._stand_in_line(key, served_by=line)
        else:
            # An empty queue is forgotten, so that queues of the past cost no memory.
            del self._queues[key]

    def _take_together(self) -> list[Batch[K, T]]:
        """From the first queues in line that share one kind, until it is enough; a large one comes alone."""
        keys = self._shared.keys
        kind = self._shared_as(keys[0])
        turn: list[Batch[K, T]] = []
        items = size = 0
        while keys:
            queue = self._queues[keys[0]]
            items += len(queue.items)
            if turn and (items > SHARED_ITEMS_MAX or kind is None or self._shared_as(keys[0]) != kind):
                # It may also have come to be better alone while it stood here.
                break
            size += queue.size
            if turn and size > BATCH_BYTES_MAX:
                break
            key = keys.popleft()
            turn.append((key, self._take(key, queue)))
        return turn

    def _take(self, key: K, queue: _Queue[T]) -> list[T]:
        items_max = self._items_max(key)
        batch: list[T] = []
        size = 0
        queue.is_late = bool(queue.items) and monotonic() - queue.items[0][2] > self._wait_s_max(key)
        while queue.items and len(batch) < items_max:
            item, item_size, _ = queue.items[0]
            if batch and size + item_size > BATCH_BYTES_MAX:
                break
            queue.items.popleft()
            batch.append(item)
            size += item_size
        queue.size -= size
        self.waiting_items -= len(batch)
        self.waiting_bytes -= size
        return batch
