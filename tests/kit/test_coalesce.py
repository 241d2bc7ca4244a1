"""The coalescer with flushes that finish when the test says so: what is batched, who waits, and what is refused."""

import asyncio
from collections import Counter

import pytest

from regulars.kit import coalesce
from regulars.kit.coalesce import BATCH_BYTES_MAX, WAIT_S_MAX, Batcher, Coalescer, Overloaded

pytestmark = pytest.mark.anyio
ITEMS_MAX = 256


class Flushing:
    """Every batch that started, and a gate that each of them waits at."""

    def __init__(self, *, is_open: bool = False, **bounds: int) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.running: Counter[str] = Counter()
        self.most_at_once = 0
        self.gate = asyncio.Event()
        if is_open:
            self.gate.set()
        self.coalescer: Coalescer[str, int] = Coalescer(self._flush, items_max=lambda _: ITEMS_MAX, **bounds)

    async def _flush(self, lane: str, batch: list[int]) -> None:
        self.batches.append((lane, batch))
        self.running[lane] += 1
        assert self.running[lane] == 1, "a lane has one batch in flight"
        self.most_at_once = max(self.most_at_once, self.running.total())
        await self.gate.wait()
        await asyncio.sleep(0)
        self.running[lane] -= 1

    def put(self, lane: str, *items: int, size: int = 1) -> None:
        for item in items:
            self.coalescer.put(lane, item, size=size)

    async def let_one_pass(self) -> None:
        """The batch that is under way ends, and the next one stands at the gate again."""
        self.gate.set()
        await asyncio.sleep(0)
        self.gate.clear()
        await turns()

    async def finish(self) -> None:
        self.gate.set()
        await self.coalescer.drain()


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_lone_item_is_flushed_at_once():
    flushing = Flushing()
    flushing.put("a", 1)
    await turns()
    assert flushing.batches == [("a", [1])]
    await flushing.finish()


async def test_what_arrives_during_a_flush_becomes_the_next_batch_in_order_of_arrival():
    flushing = Flushing()
    flushing.put("a", 0)
    await turns()
    flushing.put("a", *range(1, 101))
    await turns()
    assert len(flushing.batches) == 1
    await flushing.finish()
    assert flushing.batches == [("a", [0]), ("a", list(range(1, 101)))]


async def test_a_batch_has_at_most_so_many_items():
    flushing = Flushing(is_open=True)
    flushing.put("a", *range(2 * ITEMS_MAX + 1))
    await flushing.finish()
    assert [len(batch) for _, batch in flushing.batches] == [ITEMS_MAX, ITEMS_MAX, 1]
    assert [item for _, batch in flushing.batches for item in batch] == list(range(2 * ITEMS_MAX + 1))


async def test_a_batch_has_at_most_so_many_bytes_unless_one_item_is_larger():
    flushing = Flushing(is_open=True)
    flushing.put("a", 1, 2, 3, size=BATCH_BYTES_MAX // 2)
    flushing.put("a", 4, size=2 * BATCH_BYTES_MAX)
    await flushing.finish()
    assert [batch for _, batch in flushing.batches] == [[1, 2], [3], [4]]


async def test_several_lanes_are_flushed_at_once_but_not_more_than_there_are_flushers():
    flushing = Flushing(flushers=3)
    for lane in "abcde":
        flushing.put(lane, 1)
    await turns()
    assert [lane for lane, _ in flushing.batches] == ["a", "b", "c"]
    await flushing.finish()
    assert flushing.most_at_once == 3
    assert [lane for lane, _ in flushing.batches] == list("abcde")


async def test_a_flood_on_one_lane_delays_another_by_the_flushes_in_progress_only():
    flushing = Flushing(is_open=True, flushers=1, queue_items_max=10_000)
    flushing.put("flood", *range(10_000))
    await asyncio.sleep(0)
    flushing.put("quiet", 1)
    await flushing.finish()
    place = flushing.batches.index(("quiet", [1]))
    assert place <= 1
    assert sum(len(batch) for lane, batch in flushing.batches if lane == "flood") == 10_000


async def test_lanes_that_both_flood_take_turns():
    flushing = Flushing(is_open=True, flushers=1)
    flushing.put("a", *range(4 * ITEMS_MAX))
    flushing.put("b", *range(4 * ITEMS_MAX))
    await flushing.finish()
    assert [lane for lane, _ in flushing.batches] == list("abababab")


async def test_a_full_lane_refuses_and_leaves_the_others_open():
    flushing = Flushing(queue_items_max=2)
    flushing.put("a", 0)
    await turns()
    flushing.put("a", 1, 2)
    with pytest.raises(Overloaded):
        flushing.put("a", 3)
    flushing.put("b", 1)
    await flushing.finish()
    flushing.put("a", 4)
    await flushing.finish()
    assert [item for lane, batch in flushing.batches for item in batch if lane == "a"] == [0, 1, 2, 4]


async def test_a_queue_that_is_served_too_late_takes_no_more_than_its_next_batch(monkeypatch: pytest.MonkeyPatch):
    now = 0.0
    monkeypatch.setattr(coalesce, "monotonic", lambda: now)
    flushing = Flushing()
    flushing.put("a", 0)
    await turns()
    flushing.put("a", *range(2 * ITEMS_MAX))
    now = 1.5 * WAIT_S_MAX
    assert flushing.coalescer.has_room("a", size=1), "nothing was taken meanwhile: the database is away, not behind"

    await flushing.let_one_pass()
    assert [len(batch) for _, batch in flushing.batches] == [1, ITEMS_MAX]
    assert not flushing.coalescer.has_room("a", size=1)
    assert flushing.coalescer.has_room("b", size=1)
    with pytest.raises(Overloaded):
        flushing.put("a", 1)

    await flushing.let_one_pass()
    flushing.put("a", *range(ITEMS_MAX))
    assert not flushing.coalescer.has_room("a", size=1), "what waits is as much as the next batch takes"
    await flushing.let_one_pass()
    flushing.put("a", *range(2 * ITEMS_MAX))
    await flushing.finish()


async def test_large_items_of_one_lane_leave_room_for_the_others():
    flushing = Flushing(queue_bytes_max=100, waiting_bytes_max=1_000)
    flushing.put("a", 0)
    await turns()
    flushing.put("a", 1, size=200)
    assert not flushing.coalescer.has_room("a", size=1)
    assert flushing.coalescer.has_room("b", size=100)
    flushing.gate.set()
    await flushing.coalescer.drain()
    flushing.put("a", 2, 3, size=50)
    assert not flushing.coalescer.has_room("a", size=1)
    await flushing.finish()
    assert [batch for _, batch in flushing.batches] == [[0], [1], [2, 3]]


async def test_the_bytes_of_all_lanes_together_are_bounded():
    flushing = Flushing(waiting_bytes_max=100)
    flushing.put("a", 0, size=100)
    await turns()
    flushing.put("a", 1, size=60)
    with pytest.raises(Overloaded):
        flushing.put("b", 1, size=41)
    flushing.put("b", 2, size=40)
    assert (flushing.coalescer.waiting_items, flushing.coalescer.waiting_bytes) in {(2, 100), (1, 60)}
    await flushing.finish()
    assert (flushing.coalescer.waiting_items, flushing.coalescer.waiting_bytes) == (0, 0)


async def test_lanes_of_the_past_are_forgotten_also_those_that_were_refused():
    flushing = Flushing(is_open=True, waiting_bytes_max=100)
    for number in range(50):
        flushing.put(f"served-{number}", 1)
        with pytest.raises(Overloaded):
            flushing.put(f"refused-{number}", 1, size=101)
    await flushing.finish()
    assert flushing.coalescer._queues == {}


async def test_draining_waits_for_what_was_queued_while_it_waited():
    flushing = Flushing()
    flushing.put("a", 1)
    draining = asyncio.create_task(flushing.coalescer.drain())
    await turns()
    flushing.put("a", 2)
    flushing.put("b", 1)
    flushing.gate.set()
    await draining
    assert flushing.coalescer.waiting_items == 0
    assert flushing.running.total() == 0
    assert Counter(lane for lane, _ in flushing.batches) == {"a": 2, "b": 1}


async def test_an_item_that_arrives_as_the_last_flushers_end_is_served():
    """A flusher that has left its loop must not count any more, even before the event loop has noticed its end."""
    served: list[str] = []

    async def flush(lane: str, _batch: list[int]) -> None:
        served.append(lane)
        if lane == "a":
            # Runs after this flusher has ended and before any callback of its task.
            asyncio.get_running_loop().call_soon(lambda: coalescer.put("b", 1, size=1))

    coalescer: Coalescer[str, int] = Coalescer(flush, items_max=lambda _: ITEMS_MAX, flushers=1)
    coalescer.put("a", 1, size=1)
    await turns()
    assert served == ["a", "b"]
    assert coalescer.waiting_items == 0


async def test_a_flush_that_fails_leaves_no_queue_waiting():
    served: list[str] = []

    async def flush(lane: str, _batch: list[int]) -> None:
        served.append(lane)
        if lane == "a":
            raise RuntimeError("planted")

    coalescer: Coalescer[str, int] = Coalescer(flush, items_max=lambda _: ITEMS_MAX, flushers=1)
    for lane in ("a", "b", "c"):
        coalescer.put(lane, 1, size=1)
    await coalescer.drain()
    assert served == ["a", "b", "c"]
    assert coalescer.waiting_items == 0


async def test_a_batcher_gives_each_caller_the_result_of_its_own_item():
    batches: list[list[int]] = []

    async def double(_lane: str, batch: list[int]) -> list[int]:
        batches.append(batch)
        await asyncio.sleep(0)
        return [2 * item for item in batch]

    batcher: Batcher[str, int, int] = Batcher(double, items_max=ITEMS_MAX)
    assert await asyncio.gather(*(batcher.submit("a", item) for item in range(5))) == [0, 2, 4, 6, 8]
    assert batches == [[0, 1, 2, 3, 4]]


async def test_a_batcher_gives_every_caller_the_error_except_one_that_was_cancelled():
    gate = asyncio.Event()

    async def fail(_lane: str, _batch: list[int]) -> list[int]:
        await gate.wait()
        raise RuntimeError("planted")

    batcher: Batcher[str, int, int] = Batcher(fail, items_max=ITEMS_MAX)
    callers = [asyncio.create_task(batcher.submit("a", item)) for item in range(3)]
    await turns()
    callers[0].cancel()
    gate.set()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, RuntimeError, RuntimeError]
