"""Group commit: items that arrive while a batch is being committed form the next batch.

There is one queue for each key (an organization and an endpoint). A queue has at most one batch in flight. Queues with
items are in a ready list, and a fixed number of tasks (flushers) take queues from it in turn, so one busy queue cannot
starve another. There is no timer: an idle coalescer flushes a single item at once, and batches grow only while the
database is busy.

Queues of one kind may be flushed in one *shared batch*. They have their own ready list, from which a shared batch takes
all queues, up to a limit. Normally one shared batch is in flight. If it takes long, one of its items is probably
waiting for a lock, so a second shared batch starts. Items that a shared batch could not write are flushed again, each
queue alone.

A queue refuses items that would wait too long. It decides by the batch that was taken last: if its first item had
waited too long, the queue accepts only items that fit into the next batch. While the database is unreachable no batch
is taken, and only the number and the bytes of waiting items are limited.
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
# The limit for the items in all queues together.
WAITING_BYTES_MAX = 64 << 20
# A queue whose items wait longer than this refuses new ones: the caller should retry later.
WAIT_S_MAX = 0.5
BATCH_BYTES_MAX = 4 << 20
SHARED_ITEMS_MAX = 64
# After this time a second shared batch may start while the first is still in flight.
LONG_BATCH_S = 0.05

_log = log.get(__name__)

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)

# The key of a queue, and the items taken from it.
Batch = tuple[K, list[T]]


class Overloaded(Exception):
    """A queue is at its limit; the item was not queued."""


@dataclass(slots=True)
class _Queue(Generic[T]):
    # Each item with its size in bytes and its time of arrival.
    items: deque[tuple[T, int, float]] = field(default_factory=deque)
    size: int = 0
    # Whether the first item of the last batch had waited too long.
    is_late: bool = False
    # True while the queue is being flushed or is in a ready list; it is then not added to a list again.
    is_scheduled: bool = False
    # Items that a shared batch could not write; they are flushed without other queues, before this queue's new items.
    unwritten: list[T] = field(default_factory=list)


@dataclass(slots=True)
class _ReadyList(Generic[K]):
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
        """`flush` writes a batch of one queue. `shared_as` returns the kind of a queue that may be flushed together
        with others of its kind, or None; `flush_together` returns the items of each batch that it could not write."""
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
        self._alone: _ReadyList[K] = _ReadyList()
        self._shared: _ReadyList[K] = _ReadyList()
        self._shared_batch_at = float("-inf")
        self._shared_batch_timer: asyncio.TimerHandle | None = None
        self.waiting_items = 0
        self.waiting_bytes = 0

    def put(self, key: K, item: T, *, size: int) -> None:
        """Queue an item, or raise Overloaded. `flush` must give the item its outcome, whatever happens."""
        if not self.has_room(key, size=size):
            raise Overloaded
        self.add(key, item, size=size)

    def add(self, key: K, item: T, *, size: int) -> None:
        """Queue an item for which `has_room` was true."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        queue.items.append((item, size, monotonic()))
        queue.size += size
        self.waiting_items += 1
        self.waiting_bytes += size
        if not queue.is_scheduled:
            queue.is_scheduled = True
            self._enqueue(key)

    def has_room(self, key: K, *, size: int) -> bool:
        queue = self._queues.get(key)
        if queue is not None and queue.items:
            if len(queue.items) >= self._queue_items_max or queue.size + size > self._queue_bytes_max:
                return False
            if queue.is_late and len(queue.items) >= self._items_max(key):
                return False
        return self.waiting_bytes + size <= self._waiting_bytes_max

    async def drain(self) -> None:
        """Wait until all queued items have their outcome."""
        while flushers := self._alone.flushers | self._shared.flushers:
            await asyncio.wait(flushers)

    def _enqueue(self, key: K, *, by_flusher_of: _ReadyList[K] | None = None) -> None:
        """Add the queue to its ready list, and start a flusher unless the caller is a flusher of that list."""
        ready = self._alone if self._queues[key].unwritten or self._shared_as(key) is None else self._shared
        ready.keys.append(key)
        if ready is not by_flusher_of:
            self._start_flusher(ready)

    def _start_flusher(self, ready: _ReadyList[K]) -> None:
        if ready is self._shared and self._is_shared_batch_recent():
            self._watch_shared_batch()
        elif len(ready.flushers) < self._flushers_max:
            if ready is self._shared:
                self._shared_batch_at = monotonic()
            ready.flushers.add(asyncio.create_task(self._serve_ready(ready)))

    def _is_shared_batch_recent(self) -> bool:
        return bool(self._shared.flushers) and monotonic() - self._shared_batch_at < LONG_BATCH_S

    def _watch_shared_batch(self) -> None:
        if self._shared_batch_timer is None:
            self._shared_batch_timer = asyncio.get_running_loop().call_later(LONG_BATCH_S, self._check_shared_batch)

    def _check_shared_batch(self) -> None:
        self._shared_batch_timer = None
        if self._shared.keys:
            self._start_flusher(self._shared)

    async def _serve_ready(self, ready: _ReadyList[K]) -> None:
        serve_next = self._serve_alone if ready is self._alone else self._serve_together
        try:
            while ready.keys:
                try:
                    await serve_next()
                except Exception:  # noqa: BLE001  # `flush` must not raise; the other queues still need this flusher
                    _log.exception("coalesce.flush_failed")
                if ready is self._shared and len(ready.flushers) > 1 and self._is_shared_batch_recent():
                    # This flusher's batch was slow, and a second flusher has taken over the list.
                    self._watch_shared_batch()
                    return
        finally:
            # Removed here and not in a callback: for an item that arrives before the callback runs, this flusher would
            # count as running, no other would be started, and the item would never be flushed.
            ready.flushers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _serve_alone(self) -> None:
        key = self._alone.keys.popleft()
        queue = self._queues[key]
        batch, queue.unwritten = queue.unwritten or self._take_batch(key, queue), []
        try:
            await self._flush(key, batch)
        finally:
            self._reschedule(key, self._alone)

    async def _serve_together(self) -> None:
        if self._flush_together is None:
            raise AssertionError("queues that are shared need a way to flush them together")
        started_at = self._shared_batch_at = monotonic()
        batches = self._take_batches()
        unwritten: Sequence[list[T]] = [[]] * len(batches)
        try:
            unwritten = await self._flush_together(batches)
        finally:
            if self._shared_batch_at == started_at:
                # The batch has ended, so the next one may start at once.
                self._shared_batch_at = float("-inf")
            for (key, _), items in zip(batches, unwritten, strict=True):
                self._queues[key].unwritten = items
                self._reschedule(key, self._shared)

    def _reschedule(self, key: K, ready: _ReadyList[K]) -> None:
        queue = self._queues[key]
        if queue.unwritten or queue.items:
            self._enqueue(key, by_flusher_of=ready)
        else:
            # Empty queues are deleted, so that past keys take no memory.
            del self._queues[key]

    def _take_batches(self) -> list[Batch[K, T]]:
        """Take the first queues of the shared list that have the same kind, up to the limit; a large queue alone."""
        keys = self._shared.keys
        kind = self._shared_as(keys[0])
        batches: list[Batch[K, T]] = []
        items = size = 0
        while keys:
            queue = self._queues[keys[0]]
            items += len(queue.items)
            if batches and (items > SHARED_ITEMS_MAX or kind is None or self._shared_as(keys[0]) != kind):
                # This queue has another kind than the first (a kind may change in between), or too many items.
                break
            size += queue.size
            if batches and size > BATCH_BYTES_MAX:
                break
            key = keys.popleft()
            batches.append((key, self._take_batch(key, queue)))
        return batches

    def _take_batch(self, key: K, queue: _Queue[T]) -> list[T]:
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


class Batcher(Generic[K, T, R]):
    """A coalescer whose callers wait for the result of their item. `run` returns the results of a batch in its order;
    if it raises, every caller of the batch gets the error."""

    def __init__(
        self, run: Callable[[K, list[T]], Awaitable[Sequence[R]]], *, items_max: int, flushers: int = FLUSHERS
    ) -> None:
        self._run = run
        self._coalescer: Coalescer[K, tuple[T, asyncio.Future[R]]] = Coalescer(
            self._flush, items_max=lambda _: items_max, flushers=flushers
        )

    async def submit(self, key: K, item: T) -> R:
        """Return the result of the item, or raise Overloaded."""
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._coalescer.put(key, (item, result), size=1)
        return await result

    async def _flush(self, key: K, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._run(key, [item for item, _ in batch])
        except Exception as error:  # noqa: BLE001  # every waiting caller gets the error
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), result in zip(batch, results, strict=True):
            # A caller that was cancelled or timed out does not wait any more.
            if not waiting.done():
                waiting.set_result(result)
