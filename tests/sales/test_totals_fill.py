"""The fill and the recount of totals beside workers that count: every sale is counted once."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from tests.sales.counting import COUNTED_BY_HAND, EVERY_ROW, begin_fill, count_in_own_transaction, count_published
from tests.sales.desk import STORE, Desk, ticket
from tests.support.waiting import until_locked

from regulars.kit.ids import new_uuid
from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import count_new_sales
from regulars.sales.personal import anonymise_sales
from regulars.sales.totals import fill as filling
from regulars.sales.totals import progress
from regulars.sales.totals.fill import fill_batch
from regulars.sales.totals.progress import made_at
from regulars.sales.totals.reports import totals_counted_until

pytestmark = pytest.mark.anyio


async def test_the_fill_and_the_listener_count_every_sale_once(desk, monkeypatch):
    monkeypatch.setattr(filling, "BATCH_SALES", 3)
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    await desk.record(*(ticket(f"OLD-{n}", profile_id="ada" if n % 2 else None) for n in range(8)))
    fence = datetime.now(UTC)
    await begin_fill(desk, fence=fence)
    await asyncio.sleep(0.005)
    await desk.record(*(ticket(f"NEW-{n}", type="RETURN") for n in range(5)))
    # The facts of the old sales still wait in the outbox: the listener leaves those sales to the fill.
    await count_published(desk)
    assert await fill_batch(desk.database, desk.organization_id)
    async with desk.database.reading() as tx:
        assert await totals_counted_until(tx, desk.organization_id) is not None
    assert await fill_batch(desk.database, desk.organization_id)
    assert not await fill_batch(desk.database, desk.organization_id)
    assert not await fill_batch(desk.database, desk.organization_id)
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)
    async with desk.database.reading() as tx:
        assert await totals_counted_until(tx, desk.organization_id) is None


async def test_a_batch_that_fails_is_repeated_and_counts_nothing_twice(desk, monkeypatch):
    monkeypatch.setattr(filling, "BATCH_SALES", 3)
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    await desk.record(*(ticket(f"OLD-{n}") for n in range(7)))
    await begin_fill(desk, fence=datetime.now(UTC))
    assert await fill_batch(desk.database, desk.organization_id)
    broken = progress.update_fill

    async def crash(*_arguments, **_options):
        raise ConnectionError

    monkeypatch.setattr(progress, "update_fill", crash)
    with pytest.raises(ConnectionError):
        await fill_batch(desk.database, desk.organization_id)
    monkeypatch.setattr(progress, "update_fill", broken)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_the_fill_stays_behind_the_present_and_ends_at_its_fence(desk):
    await desk.record(ticket("A"))
    await begin_fill(desk, fence=datetime.now(UTC) + timedelta(minutes=10))
    assert not await fill_batch(desk.database, desk.organization_id)
    assert await desk.rows(EVERY_ROW) == []
    async with desk.database.reading() as tx:
        fill = await progress.find_fill(tx, desk.organization_id)
    assert fill.due_at is not None
    assert made_at(fill.walked_to) < datetime.now(UTC) - timedelta(minutes=1)


async def recount(desk) -> None:
    async with desk.database.transaction() as tx:
        await filling.recount(tx, desk.organization_id)


async def test_a_recount_finds_what_a_worker_left_uncounted_and_keeps_erased_customers(desk, monkeypatch):
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    await desk.record(*(ticket(f"LOST-{n}", profile_id="ada") for n in range(5)))
    async with desk.database.transaction() as tx:
        await tx.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
    await desk.record(ticket("HEARD", profile_id="eve"))
    await count_published(desk)
    assert await desk.rows(EVERY_ROW) != await desk.rows(COUNTED_BY_HAND)
    by_hand = await desk.rows(COUNTED_BY_HAND)
    async with desk.database.transaction() as tx:
        customers = await tx.fetch("SELECT id FROM profiles WHERE organization_id = %s", (desk.organization_id,))
        await anonymise_sales(tx, desk.organization_id, [row[0] for row in customers])
    await recount(desk)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == by_hand


async def test_a_recount_beside_a_busy_worker_counts_every_sale_once(desk, monkeypatch):
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    await desk.record(ticket("BEFORE"))
    facts = [SalesRecorded(list(map(UUID, map(str, sales)))) for sales in await desk.published_sales()]
    async with desk.database.transaction() as counting:
        await count_new_sales(counting, desk.organization_id, facts)
        # The worker has counted and not committed: the recount waits for it, and would otherwise count the sale twice.
        recounting = asyncio.create_task(recount(desk))
        await until_locked(desk.database, "sales_totals")
        await counting.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
    await recounting
    assert await desk.rows(EVERY_ROW) == []
    await desk.record(ticket("BETWEEN"))
    async with desk.database.transaction() as recounting_again:
        await filling.recount(recounting_again, desk.organization_id)
        counting = asyncio.create_task(count_published(desk))
        await until_locked(desk.database, "FOR KEY SHARE")
    await counting
    await asyncio.sleep(0.005)
    await desk.record(ticket("AFTER"))
    await count_published(desk)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_a_recount_and_a_batch_of_the_fill_hold_up_no_other_worker(desk):
    await desk.record(ticket("A"))
    other = Desk(desk.database, new_uuid())
    await other.open_store(STORE)
    await other.record(ticket("B"))
    async with desk.database.transaction() as recounting:
        await filling.recount(recounting, desk.organization_id)
        await count_published(other)
    assert await other.rows(EVERY_ROW) == await other.rows(COUNTED_BY_HAND)
    async with desk.database.transaction() as filling_batch:
        assert await progress.lock_fill_if_free(filling_batch, desk.organization_id)
        await count_published(desk)


async def test_the_fill_takes_a_batch_while_a_worker_counts(desk):
    await begin_fill(desk, fence=datetime.now(UTC))
    async with desk.database.transaction() as counting:
        await count_new_sales(counting, desk.organization_id, [])
        async with desk.database.transaction() as filling_batch:
            assert await progress.lock_fill_if_free(filling_batch, desk.organization_id)


async def test_the_first_sales_of_an_organization_are_counted_by_two_workers(desk):
    await desk.record(ticket("A"))
    [[first]] = await desk.published_sales()
    await desk.record(ticket("B"))
    [_, [second]] = await desk.published_sales()
    async with desk.database.transaction() as counting:
        await count_new_sales(counting, desk.organization_id, [SalesRecorded([UUID(str(first))])])
        beside = asyncio.create_task(count_in_own_transaction(desk, UUID(str(second))))
        await until_locked(desk.database, "INSERT INTO sales_totals_fills")
    await beside
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_recounts_beside_two_counting_workers_count_every_sale_once(desk, monkeypatch):
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    recorded: asyncio.Queue[UUID | None] = asyncio.Queue()

    async def work() -> None:
        while (sale := await recorded.get()) is not None:
            await count_in_own_transaction(desk, sale)

    workers = [asyncio.create_task(work()) for _ in range(2)]
    for number in range(60):
        await desk.record(ticket(f"T-{number}", type="RETURN" if number % 3 else "PURCHASE"))
        [[sale]] = await desk.published_sales()
        async with desk.database.transaction() as tx:
            await tx.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
        recorded.put_nowait(UUID(str(sale)))
        if number % 7 == 3:
            await recount(desk)
    for _ in workers:
        recorded.put_nowait(None)
    await asyncio.gather(*workers)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_a_recount_waits_for_a_batch_of_the_fill(desk, monkeypatch):
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    await desk.record(ticket("A"))
    await begin_fill(desk, fence=datetime.now(UTC))
    add_range = filling.add_range
    recounting = []

    async def recount_before(*arguments, **options):
        recounting.append(asyncio.create_task(recount(desk)))
        await until_locked(desk.database, "sales_totals_fills")
        await add_range(*arguments, **options)

    monkeypatch.setattr(filling, "add_range", recount_before)
    # The recount would otherwise keep the batch from the totals, and wait for the row that the batch holds.
    assert not await fill_batch(desk.database, desk.organization_id)
    await recounting[0]
    monkeypatch.setattr(filling, "add_range", add_range)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)
