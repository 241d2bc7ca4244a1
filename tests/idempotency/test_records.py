"""Recall, store and sweep on a real database; the write engine's tests show them at work."""

from datetime import timedelta

import pytest
from tests.support.waiting import until

from regulars.idempotency import records as sweeping
from regulars.idempotency.model import RETENTION, StoredResponse
from regulars.idempotency.records import find_unexpired, store_responses, sweep
from regulars.kit.db import Database
from regulars.kit.ids import new_uuid

pytestmark = pytest.mark.anyio
MILLISECOND = timedelta(milliseconds=1)
HEADERS = ((b"x-one", b"a: b, c"), (b"x-two", b"true"))


def record(key: str, created_at, **changes) -> StoredResponse:
    values = {"fingerprint": b"f" * 32, "status": 201, "body": b"\x00bytes \xc3\xa9", **changes}
    return StoredResponse(key=key, created_at=created_at, **values)


async def keys(database, organization_id) -> list[str]:
    async with database.reading() as tx:
        rows = await tx.fetch(
            "SELECT key FROM idempotency_keys WHERE organization_id = %s ORDER BY 1", (organization_id,)
        )
    return [row[0] for row in rows]


async def test_a_record_is_recalled_as_it_was_stored_and_only_in_its_organization(database, organization_id):
    async with database.transaction() as tx:
        stored = [record("b", tx.now), record("a", tx.now, status=404, body=b""), record("c", tx.now, headers=HEADERS)]
        await store_responses(tx, organization_id, stored)
        await store_responses(tx, organization_id, [])
    async with database.transaction() as tx:
        assert await find_unexpired(tx, organization_id, {"a", "b", "c", "d"}) == {one.key: one for one in stored}
        assert await find_unexpired(tx, new_uuid(), {"a", "b"}) == {}
        assert await find_unexpired(tx, organization_id, set()) == {}


async def test_an_expired_record_makes_room_and_a_younger_one_stays(database, organization_id):
    async with database.transaction() as tx:
        ages = {"expired": RETENTION, "older": RETENTION + timedelta(days=9), "young": RETENTION - MILLISECOND}
        for key, age in ages.items():
            await store_responses(tx, organization_id, [record(key, tx.now - age)])
        assert set(await find_unexpired(tx, organization_id, ages)) == {"young"}
    assert await keys(database, organization_id) == ["young"]


async def test_the_sweep_deletes_all_that_expired_in_small_batches_and_nothing_else(
    database, organization_id, monkeypatch
):
    monkeypatch.setattr(sweeping, "ROWS_PER_TRANSACTION_MAX", 3)
    other = new_uuid()
    async with database.transaction() as tx:
        for number in range(7):
            await store_responses(tx, organization_id, [record(f"old-{number}", tx.now - RETENTION)])
        await store_responses(tx, organization_id, [record("young", tx.now - RETENTION + timedelta(minutes=1))])
        await store_responses(tx, other, [record("old", tx.now - RETENTION)])
    assert await sweep(database, organization_id) == 7
    assert await keys(database, organization_id) == ["young"]
    assert await keys(database, other) == ["old"]
    assert await sweep(database, organization_id) == 0


async def test_what_another_transaction_holds_is_left_to_the_next_sweep(database, organization_id, monkeypatch):
    monkeypatch.setattr(sweeping, "ROWS_PER_SCAN_MAX", 2)
    async with database.transaction() as tx:
        for key in ("a", "b"):
            await store_responses(tx, organization_id, [record(key, tx.now - RETENTION)])
    async with database.transaction() as tx:
        await tx.fetch(
            "SELECT 1 FROM idempotency_keys WHERE organization_id = %s AND key = 'a' FOR UPDATE", (organization_id,)
        )
        assert await sweep(database, organization_id) == 1
        assert await sweep(database, organization_id) == 0
    assert await sweep(database, organization_id) == 1


PLANT = """
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)
    SELECT %s, gen_random_uuid()::text, '\\x00', 201, '\\x00', now() - interval '25 hours' FROM generate_series(1, %s)
"""


async def test_the_work_of_a_sweep_grows_with_what_it_deletes_also_where_statistics_know_nothing(
    database, database_url, organization_id
):
    known, rows = new_uuid(), 6_000
    async with database.connection() as connection:
        await connection.execute("ALTER TABLE idempotency_keys SET (autovacuum_enabled = off)")
        await connection.execute(PLANT, (known, 20_000))
        await connection.execute("ANALYZE idempotency_keys")
        await connection.execute(PLANT, (organization_id, rows))
    before = await rows_read(database)
    sweeper = Database(database_url)
    await sweeper.open()
    assert await sweep(sweeper, organization_id) == rows
    # A connection tells what it has read a moment after it has ended.
    await sweeper.close()

    async def read_since() -> int | None:
        read = await rows_read(database) - before
        return read if read >= rows else None

    assert await until(read_since) <= 5 * rows


async def rows_read(database) -> int:
    async with database.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        cursor = await connection.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'idempotency_keys'"
        )
        (count,) = await cursor.fetchone()
        return count
