"""Recall, store and sweep on a real database; the write engine's tests show them at work."""

from datetime import timedelta

import pytest

from regulars.idempotency import sweep as sweeping
from regulars.idempotency.model import RETENTION, Record
from regulars.idempotency.remember import recall, store
from regulars.idempotency.sweep import sweep
from regulars.kit.ids import new_uuid

pytestmark = pytest.mark.anyio
MILLISECOND = timedelta(milliseconds=1)
HEADERS = ((b"x-one", b"a: b, c"), (b"x-two", b"true"))


def record(key: str, created_at, **changes) -> Record:
    values = {"fingerprint": b"f" * 32, "status": 201, "body": b"\x00bytes \xc3\xa9", **changes}
    return Record(key=key, created_at=created_at, **values)


async def keys(database, organization_id) -> list[str]:
    async with database.reading() as tx:
        rows = await tx.fetch(
            "SELECT key FROM idempotency_keys WHERE organization_id = %s ORDER BY 1", (organization_id,)
        )
    return [row[0] for row in rows]


async def test_a_record_is_recalled_as_it_was_stored_and_only_in_its_organization(database, organization_id):
    async with database.transaction() as tx:
        stored = [record("b", tx.now), record("a", tx.now, status=404, body=b""), record("c", tx.now, headers=HEADERS)]
        await store(tx, organization_id, stored)
        await store(tx, organization_id, [])
    async with database.transaction() as tx:
        assert await recall(tx, organization_id, {"a", "b", "c", "d"}) == {one.key: one for one in stored}
        assert await recall(tx, new_uuid(), {"a", "b"}) == {}
        assert await recall(tx, organization_id, set()) == {}


async def test_an_expired_record_makes_room_and_a_younger_one_stays(database, organization_id):
    async with database.transaction() as tx:
        ages = {"expired": RETENTION, "older": RETENTION + timedelta(days=9), "young": RETENTION - MILLISECOND}
        for key, age in ages.items():
            await store(tx, organization_id, [record(key, tx.now - age)])
        assert set(await recall(tx, organization_id, ages)) == {"young"}
    assert await keys(database, organization_id) == ["young"]


async def test_the_sweep_takes_all_that_expired_in_small_bites_and_nothing_else(database, organization_id, monkeypatch):
    monkeypatch.setattr(sweeping, "ROWS_PER_TRANSACTION_MAX", 3)
    other = new_uuid()
    async with database.transaction() as tx:
        for number in range(7):
            await store(tx, organization_id, [record(f"old-{number}", tx.now - RETENTION)])
        await store(tx, organization_id, [record("young", tx.now - RETENTION + timedelta(minutes=1))])
        await store(tx, other, [record("old", tx.now - RETENTION)])
    assert await sweep(database, organization_id) == 7
    assert await keys(database, organization_id) == ["young"]
    assert await keys(database, other) == ["old"]
    assert await sweep(database, organization_id) == 0
