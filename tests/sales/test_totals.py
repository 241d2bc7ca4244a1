"""Hourly totals: every sale is counted once, by the listener, by a bulk load or by the fill."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from tests.sales.desk import STORE, ticket

from regulars.kit.ids import ByExternalId, new_uuid
from regulars.sales.facts import SalesRecorded
from regulars.sales.jobs import count_new_sales
from regulars.sales.load import load_sales
from regulars.sales.personal import anonymise_sales
from regulars.sales.totals import fill as filling
from regulars.sales.totals.fill import fill_batch, last_id_at, made_at
from regulars.sales.totals.model import Sums, expected_tickets, is_silent
from regulars.sales.totals.reports import filled_until, list_days, read_rhythms, sum_stores
from regulars.stores.find import find_stores
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio
PARIS = ZoneInfo("Europe/Paris")
EVERY_ROW = """
SELECT hour, currency, type, tickets, identified_tickets, amount_cents::bigint, discount_cents::bigint
FROM hourly_totals WHERE organization_id = %s ORDER BY 1, 2, 3
"""
COUNTED_BY_HAND = """
SELECT date_trunc('hour', occurred_at, 'UTC'), currency, type, count(*), count(profile_id),
       sum(total_amount_cents)::bigint, sum(total_discount_cents)::bigint
FROM sales_events WHERE organization_id = %s GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


async def hear(desk):
    """The worker hears what waits, as it would."""
    async with desk.database.transaction() as tx:
        facts = [SalesRecorded(list(map(UUID, map(str, sales)))) for sales in await desk.told()]
        await tx.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
        await count_new_sales(tx, desk.organization_id, facts)


async def begin_fill(desk, *, fence: datetime):
    async with desk.database.transaction() as tx:
        await tx.execute(
            "INSERT INTO hourly_totals_fills (organization_id, fence, walked_to, due_at) VALUES (%s, %s, %s, now())",
            (desk.organization_id, last_id_at(fence), UUID(int=0)),
        )


async def test_the_worker_counts_new_sales():
    assert count_new_sales in LISTENERS[SalesRecorded].values()


async def test_sales_are_counted_in_their_hour_per_store_currency_and_type(desk):
    await desk.record(
        ticket("A", occurred_at="2026-03-01T10:59:59.999Z", profile_id="ada", total_amount_cents=100),
        ticket("B", occurred_at="2026-03-01T11:30:00+01:00", total_amount_cents=50),
        ticket("C", occurred_at="2026-03-01T10:00:00Z", type="RETURN", total_amount_cents=30),
        ticket("D", occurred_at="2026-03-01T11:00:00Z", currency="CHF", total_amount_cents=7),
    )
    await hear(desk)
    ten, eleven = datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC)
    rows = [(*row[:5], row[5]) for row in await desk.rows(EVERY_ROW)]
    assert [row[:6] for row in rows] == [
        (ten, "EUR", "PURCHASE", 2, 1, 150),
        (ten, "EUR", "RETURN", 1, 0, 30),
        (eleven, "CHF", "PURCHASE", 1, 0, 7),
    ]


async def test_amounts_that_no_bigint_holds_are_added_up(desk):
    largest = 2**53 - 1
    sales = [ticket(f"T-{n}", total_amount_cents=largest) for n in range(1100)]
    for start in range(0, 1100, 100):
        await desk.record(*sales[start : start + 100])
    await hear(desk)
    [(total,)] = await desk.rows("SELECT amount_cents FROM hourly_totals WHERE organization_id = %s")
    assert total == largest * 1100


async def test_a_bulk_load_is_counted_like_every_sale(desk):
    async with desk.database.transaction() as tx:
        stores = await find_stores(tx, desk.organization_id, [ByExternalId(STORE)])
        ids = {reference: store.id for reference, store in stores.items()}
        loaded = [ticket("A"), ticket("B", total_amount_cents=5)]
        assert await load_sales(tx, desk.organization_id, loaded, stores=ids, profiles={}) == 2
    await hear(desk)
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_the_fill_and_the_listener_count_every_sale_once(desk, monkeypatch):
    monkeypatch.setattr(filling, "BATCH_SALES", 3)
    monkeypatch.setattr(filling, "BEHIND", timedelta(seconds=-60))
    await desk.record(*(ticket(f"OLD-{n}", profile_id="ada" if n % 2 else None) for n in range(8)))
    fence = datetime.now(UTC)
    await begin_fill(desk, fence=fence)
    await asyncio.sleep(0.005)
    await desk.record(*(ticket(f"NEW-{n}", type="RETURN") for n in range(5)))
    # The facts of the old sales still wait in the outbox: the listener leaves those sales to the fill.
    await hear(desk)
    assert await fill_batch(desk.database, desk.organization_id)
    async with desk.database.reading() as tx:
        assert await filled_until(tx, desk.organization_id) is not None
    assert await fill_batch(desk.database, desk.organization_id)
    assert not await fill_batch(desk.database, desk.organization_id)
    assert not await fill_batch(desk.database, desk.organization_id)
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)
    async with desk.database.reading() as tx:
        assert await filled_until(tx, desk.organization_id) is None


async def test_a_batch_that_fails_is_repeated_and_counts_nothing_twice(desk, monkeypatch):
    monkeypatch.setattr(filling, "BATCH_SALES", 3)
    monkeypatch.setattr(filling, "BEHIND", timedelta(seconds=-60))
    await desk.record(*(ticket(f"OLD-{n}") for n in range(7)))
    await begin_fill(desk, fence=datetime.now(UTC))
    assert await fill_batch(desk.database, desk.organization_id)
    broken = filling.update_fill

    async def crash(*_arguments, **_options):
        raise ConnectionError

    monkeypatch.setattr(filling, "update_fill", crash)
    with pytest.raises(ConnectionError):
        await fill_batch(desk.database, desk.organization_id)
    monkeypatch.setattr(filling, "update_fill", broken)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_the_fill_stays_behind_the_present_and_ends_at_its_fence(desk):
    await desk.record(ticket("A"))
    await begin_fill(desk, fence=datetime.now(UTC) + timedelta(minutes=10))
    assert not await fill_batch(desk.database, desk.organization_id)
    assert await desk.rows(EVERY_ROW) == []
    [(due_at, walked_to)] = await desk.rows(
        "SELECT due_at, walked_to FROM hourly_totals_fills WHERE organization_id = %s"
    )
    assert due_at is not None
    assert made_at(walked_to) < datetime.now(UTC) - timedelta(minutes=1)


async def recount(desk) -> None:
    async with desk.database.transaction() as tx:
        await filling.recount(tx, desk.organization_id)


async def test_a_recount_finds_what_a_worker_left_uncounted_and_keeps_erased_customers(desk, monkeypatch):
    monkeypatch.setattr(filling, "BEHIND", timedelta(seconds=-60))
    await desk.record(*(ticket(f"LOST-{n}", profile_id="ada") for n in range(5)))
    async with desk.database.transaction() as tx:
        await tx.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
    await desk.record(ticket("HEARD", profile_id="eve"))
    await hear(desk)
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
    monkeypatch.setattr(filling, "BEHIND", timedelta(seconds=-60))
    await desk.record(ticket("BEFORE"))
    facts = [SalesRecorded(list(map(UUID, map(str, sales)))) for sales in await desk.told()]
    async with desk.database.transaction() as counting:
        await count_new_sales(counting, desk.organization_id, facts)
        # The worker has counted and not committed: the recount waits for it, and would otherwise count the sale twice.
        recounting = asyncio.create_task(recount(desk))
        await until_waiting(desk, "LOCK TABLE%")
        await counting.execute("DELETE FROM outbox WHERE organization_id = %s", (desk.organization_id,))
    await recounting
    assert await desk.rows(EVERY_ROW) == []
    await desk.record(ticket("BETWEEN"))
    async with desk.database.transaction() as recounting_again:
        await filling.recount(recounting_again, desk.organization_id)
        hearing = asyncio.create_task(hear(desk))
        await until_waiting(desk, "%INSERT INTO hourly_totals%")
    await hearing
    await asyncio.sleep(0.005)
    await desk.record(ticket("AFTER"))
    await hear(desk)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_a_recount_waits_for_a_batch_of_the_fill(desk, monkeypatch):
    monkeypatch.setattr(filling, "BEHIND", timedelta(seconds=-60))
    await desk.record(ticket("A"))
    await begin_fill(desk, fence=datetime.now(UTC))
    add_range = filling.add_range
    recounting = []

    async def recount_before(*arguments, **options):
        recounting.append(asyncio.create_task(recount(desk)))
        await until_waiting(desk, "%hourly_totals_fills%")
        await add_range(*arguments, **options)

    monkeypatch.setattr(filling, "add_range", recount_before)
    # The recount would otherwise keep the batch from the totals, and wait for the row that the batch holds.
    assert not await fill_batch(desk.database, desk.organization_id)
    await recounting[0]
    monkeypatch.setattr(filling, "add_range", add_range)
    while await fill_batch(desk.database, desk.organization_id):
        pass
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def until_waiting(desk, query: str) -> None:
    """Until such a statement waits for a lock."""
    async with await desk.elsewhere() as connection, asyncio.timeout(20):
        await connection.set_autocommit(True)
        asked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        while not (await (await connection.execute(asked, (query,))).fetchall()):
            pass


async def test_days_are_those_of_the_organization_s_zone(desk):
    await desk.record(
        # Half past midnight in Paris, still the day before in UTC.
        ticket("A", occurred_at="2026-03-01T23:30:00Z", total_amount_cents=100),
        ticket("B", occurred_at="2026-03-02T12:00:00Z", total_amount_cents=40, type="RETURN", profile_id="ada"),
        ticket("C", occurred_at="2026-03-02T23:30:00Z", total_amount_cents=9),
    )
    await hear(desk)
    async with desk.database.reading() as tx:
        days = await list_days(tx, desk.organization_id, first=date(2026, 3, 1), last=date(2026, 3, 2), zone=PARIS)
        stores = await sum_stores(tx, desk.organization_id, first=date(2026, 3, 1), last=date(2026, 3, 2), zone=PARIS)
    assert [day.day for day in days] == [date(2026, 3, 1), date(2026, 3, 2)]
    assert days[0].total.sums == {}
    assert days[1].total.sums == {"EUR": Sums(1, 1, 1, 100, 40)}
    assert days[1].total.sums["EUR"].net_cents == 60
    assert [total.sums for total in stores.values()] == [days[1].total.sums]


async def test_a_store_that_stops_sending_in_its_usual_hours_is_silent(desk):
    now = datetime.now(UTC).replace(minute=30, second=0, microsecond=0)
    weeks_ago = [now - timedelta(weeks=n, hours=1) for n in (1, 2, 3, 4)]
    sales = [
        ticket(f"T-{moment:%d}-{n}", occurred_at=(moment + timedelta(seconds=n)).isoformat())
        for moment in weeks_ago
        for n in range(20)
    ]
    await desk.record(*sales)
    await hear(desk)
    [(store_id,)] = await desk.rows("SELECT id FROM stores WHERE organization_id = %s")
    async with desk.database.reading() as tx:
        quiet = await read_rhythms(tx, desk.organization_id, [store_id], now=now, zone=ZoneInfo("UTC"))
    rhythm = quiet[store_id]
    assert sum(rhythm.usual.values()) in (0, 20)  # half past midnight: yesterday's hours say nothing about today
    assert rhythm.tickets_today == 0


def test_silence_is_measured_in_expected_tickets_and_not_in_hours():
    usual = {10: 14.0, 11: 14.0, 12: 14.0}
    noon = datetime(2026, 11, 14, 12, 0, tzinfo=PARIS)
    assert expected_tickets(usual, since=noon.replace(hour=11, minute=30), until=noon) == pytest.approx(7)
    assert is_silent(expected_tickets(usual, since=noon.replace(hour=11, minute=30), until=noon))
    assert not is_silent(expected_tickets(usual, since=noon.replace(hour=11, minute=45), until=noon))
    # Outside its hours a store may be as quiet as it likes.
    assert expected_tickets(usual, since=noon.replace(hour=1), until=noon.replace(hour=9)) == 0


def test_the_time_of_an_id_is_read_back():
    identifier = new_uuid()
    assert identifier <= last_id_at(made_at(identifier))
    assert identifier > last_id_at(made_at(identifier) - timedelta(milliseconds=1))
