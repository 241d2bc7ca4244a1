"""Turns that gather: an organization that had one a moment ago waits, and one that had none does not."""

import asyncio

import pytest

from regulars.kit.ids import new_uuid
from regulars.work import loop
from regulars.work.loop import _Ring

pytestmark = pytest.mark.anyio

ONE, OTHER = new_uuid(), new_uuid()


async def serve(ring: _Ring, *, has_more: bool = False) -> object:
    async with asyncio.timeout(60):
        organization_id = await ring.next()
    ring.release(organization_id, has_more=has_more)
    return organization_id


async def test_one_that_had_its_turn_waits_and_others_do_not(monkeypatch):
    monkeypatch.setattr(loop, "DELAY_S", 3600.0)
    monkeypatch.setattr(loop, "DELAY_S_MAX", 3600.0)
    ring = _Ring(delays_passes=True)
    ring.add(ONE)
    assert await serve(ring) == ONE
    ring.add(ONE)
    ring.add(OTHER)
    assert await serve(ring) == OTHER
    assert ring._waiting.empty()


async def test_one_with_a_backlog_goes_on(monkeypatch):
    monkeypatch.setattr(loop, "DELAY_S", 3600.0)
    monkeypatch.setattr(loop, "DELAY_S_MAX", 3600.0)
    ring = _Ring(delays_passes=True)
    ring.add(ONE)
    for _ in range(3):
        assert await serve(ring, has_more=True) == ONE


async def test_the_wait_ends_and_what_was_served_long_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(loop, "DELAY_S", 0.01)
    monkeypatch.setattr(loop, "DELAY_S_MAX", 0.02)
    ring = _Ring(delays_passes=True)
    for _ in range(3):
        ring.add(ONE)
        assert await serve(ring) == ONE
    await asyncio.sleep(0.05)
    ring.add(OTHER)
    assert await serve(ring) == OTHER
    assert list(ring._served) == [OTHER]


async def test_other_queues_do_not_wait(monkeypatch):
    monkeypatch.setattr(loop, "DELAY_S", 3600.0)
    ring = _Ring(delays_passes=False)
    for _ in range(3):
        ring.add(ONE)
        assert await serve(ring) == ONE
