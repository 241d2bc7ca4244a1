"""Queues that are flushed together: what a turn takes, who waits for whom, and what it leaves over."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.support.waiting import until

from regulars.kit import coalesce
from regulars.kit.coalesce import BATCH_BYTES_MAX, SHARED_ITEMS_MAX, Coalescer

pytestmark = pytest.mark.anyio


class Flushing:
    """Queues with a capital letter are shared; each turn, and each batch alone, waits at its gate."""

    def __init__(self) -> None:
        self.turns: list[dict[str, list[int]]] = []
        self.alone: list[tuple[str, list[int]]] = []
        self.left: dict[str, list[int]] = {}
        self.gates: list[asyncio.Event] = []
        self.coalescer: Coalescer[str, int] = Coalescer(
            self._flush,
            items_max=lambda _: 256,
            shared_as=lambda key: "capital" if key.isupper() else None,
            flush_together=self._flush_together,
        )

    async def _flush(self, key: str, batch: list[int]) -> None:
        self.alone.append((key, batch))

    async def _flush_together(self, turn: Sequence[tuple[str, list[int]]]) -> list[list[int]]:
        self.turns.append(dict(turn))
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        return [self.left.pop(key, []) for key, _ in turn]

    def put(self, key: str, *items: int, size: int = 1) -> None:
        for item in items:
            self.coalescer.put(key, item, size=size)

    async def until_turns(self, count: int) -> None:
        # More often than the shortest LONG_BATCH_S of these tests.
        await until(lambda: len(self.turns) >= count, every_s=0.005)

    async def finish(self) -> None:
        draining = asyncio.create_task(self.coalescer.drain())
        async with asyncio.timeout(60):
            while not draining.done():
                for gate in self.gates:
                    gate.set()
                await asyncio.sleep(0)
        assert self.coalescer.waiting_items == 0
        assert self.coalescer._queues == {}


@pytest.fixture
def flushing(monkeypatch):
    # Long enough that no turn is long by accident.
    monkeypatch.setattr(coalesce, "LONG_BATCH_S", 60.0)
    return Flushing()


async def test_what_arrives_during_a_turn_is_the_next_one_whichever_queue_it_is_for(flushing):
    flushing.put("A", 1)
    await flushing.until_turns(1)
    flushing.put("B", 2)
    flushing.put("A", 3)
    flushing.put("C", 4)
    flushing.put("B", 5)
    await asyncio.sleep(0)
    assert len(flushing.turns) == 1
    await flushing.finish()
    # `A` had its batch in flight and stands behind those that came meanwhile.
    assert flushing.turns == [{"A": [1]}, {"B": [2, 5], "C": [4], "A": [3]}]


async def test_queues_that_are_not_shared_do_not_wait_for_those_that_are(flushing):
    flushing.put("A", 1)
    await flushing.until_turns(1)
    flushing.put("b", 2)
    await until(lambda: flushing.alone == [("b", [2])])
    assert len(flushing.turns) == 1
    await flushing.finish()


async def test_a_turn_is_bounded_and_a_large_queue_comes_alone(flushing):
    flushing.put("A", 0)
    await flushing.until_turns(1)
    flushing.put("B", 1)
    flushing.put("C", *range(2 * SHARED_ITEMS_MAX))
    flushing.put("D", 2, size=BATCH_BYTES_MAX)
    flushing.put("E", 3, size=BATCH_BYTES_MAX)
    await flushing.finish()
    assert [sorted(turn) for turn in flushing.turns] == [["A"], ["B"], ["C"], ["D"], ["E"]]


async def test_what_a_turn_leaves_over_is_flushed_alone_before_anything_else_of_its_queue(flushing):
    flushing.left = {"B": [2]}
    flushing.put("A", 1)
    flushing.put("B", 2)
    await flushing.until_turns(1)
    flushing.put("B", 3)
    await flushing.finish()
    assert flushing.turns == [{"A": [1], "B": [2]}, {"B": [3]}]
    assert flushing.alone == [("B", [2])]


async def test_another_turn_begins_beside_one_that_takes_long(flushing, monkeypatch):
    monkeypatch.setattr(coalesce, "LONG_BATCH_S", 0.02)
    flushing.put("A", 1)
    await flushing.until_turns(1)
    flushing.put("B", 2)
    await flushing.until_turns(2)
    assert flushing.turns == [{"A": [1]}, {"B": [2]}]
    await flushing.finish()


async def test_while_one_takes_long_the_others_follow_each_other_at_once(flushing, monkeypatch):
    monkeypatch.setattr(coalesce, "LONG_BATCH_S", 0.02)
    flushing.put("A", 1)
    await flushing.until_turns(1)
    flushing.put("B", 2)
    await flushing.until_turns(2)
    monkeypatch.setattr(coalesce, "LONG_BATCH_S", 60.0)
    flushing.put("C", 3)
    flushing.gates[1].set()
    await flushing.until_turns(3)
    flushing.gates[2].set()
    await asyncio.sleep(0.01)
    flushing.put("D", 4)
    await flushing.until_turns(4)
    assert flushing.turns == [{"A": [1]}, {"B": [2]}, {"C": [3]}, {"D": [4]}]
    await flushing.finish()


async def test_a_turn_that_fails_delays_no_other_queue(flushing, monkeypatch):
    broken: list[object] = []

    async def break_it(turn: Sequence[tuple[str, list[int]]]) -> list[list[int]]:
        broken.append(turn)
        monkeypatch.setattr(flushing.coalescer, "_flush_together", flushing._flush_together)
        raise RuntimeError(f"{len(turn)} are lost")

    monkeypatch.setattr(flushing.coalescer, "_flush_together", break_it)
    flushing.put("A", 1)
    await until(lambda: broken)
    flushing.put("B", 2)
    await flushing.until_turns(1)
    await flushing.finish()
    assert flushing.turns == [{"B": [2]}]
