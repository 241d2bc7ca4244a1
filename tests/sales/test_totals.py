"""Totals of hours and days: every sale is counted once, by the listener or by a bulk load."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from tests.sales.counting import COUNTED_BY_HAND, EVERY_ROW, count_published
from tests.sales.desk import STORE, ticket

from regulars.kit.db import Tx
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.organizations.facts import TimeZoneChanged
from regulars.sales.jobs import recount_in_time_zone
from regulars.sales.load import load_sales
from regulars.sales.totals import fill as filling
from regulars.sales.totals import progress
from regulars.sales.totals.fill import fill_batch
from regulars.sales.totals.model import Sums, expected_tickets, is_silent
from regulars.sales.totals.progress import last_id_at, made_at
from regulars.sales.totals.reports import read_store_activity, sum_totals
from regulars.stores.find import find_stores

pytestmark = pytest.mark.anyio
PARIS = ZoneInfo("Europe/Paris")


async def test_sales_are_counted_in_their_hour_and_their_day_per_store_and_currency(desk):
    await desk.record(
        ticket("A", occurred_at="2026-03-01T10:59:59.999Z", profile_id="ada", total_amount_cents=100),
        ticket("B", occurred_at="2026-03-01T11:30:00+01:00", total_amount_cents=50),
        ticket("C", occurred_at="2026-03-01T10:00:00Z", type="RETURN", total_amount_cents=30),
        ticket("D", occurred_at="2026-03-01T11:00:00Z", currency="CHF", total_amount_cents=7),
    )
    await count_published(desk)
    day = date(2026, 3, 1)
    assert [row[:9] for row in await desk.rows(EVERY_ROW)] == [
        (False, day, 0, "CHF", 1, 0, 0, 7, 0),
        (False, day, 0, "EUR", 2, 1, 1, 150, 30),
        (True, day, 10, "EUR", 2, 1, 1, 150, 30),
        (True, day, 11, "CHF", 1, 0, 0, 7, 0),
    ]


async def test_amounts_that_no_bigint_holds_are_added_up(desk):
    largest = 2**53 - 1
    sales = [ticket(f"T-{n}", total_amount_cents=largest) for n in range(1100)]
    for start in range(0, 1100, 100):
        await desk.record(*sales[start : start + 100])
    await count_published(desk)
    [(total,)] = await desk.rows("SELECT gross_cents FROM sales_totals WHERE organization_id = %s AND NOT is_hour")
    assert total == largest * 1100


async def test_a_bulk_load_is_counted_like_every_sale(desk):
    async with desk.database.transaction() as tx:
        stores = await find_stores(tx, desk.organization_id, [ByExternalId(STORE)])
        ids = {reference: store.id for reference, store in stores.items()}
        loaded = [ticket("A"), ticket("B", total_amount_cents=5)]
        assert await load_sales(tx, desk.organization_id, loaded, stores=ids, profiles={}) == 2
    await count_published(desk)
    assert await desk.rows(EVERY_ROW) == await desk.rows(COUNTED_BY_HAND)


async def test_days_are_those_of_the_organization_s_zone_and_are_counted_again_in_another(desk, monkeypatch):
    monkeypatch.setattr(filling, "SALE_AGE_MIN", timedelta(seconds=-60))
    await move_to(desk, "Asia/Kolkata")
    await desk.record(
        # Half past midnight in India, still the day before in UTC and in Paris.
        ticket("A", occurred_at="2026-03-01T19:00:00Z", total_amount_cents=100),
        ticket("B", occurred_at="2026-03-02T12:00:00Z", total_amount_cents=40, type="RETURN", profile_id="ada"),
        ticket("C", occurred_at="2026-03-02T19:00:00Z", total_amount_cents=9),
    )
    await count_published(desk)
    second = Sums(1, 1, 1, 100, 40, units=Decimal(1), returned_units=Decimal(1), lines=1)
    days, stores = await read_days(desk, first=date(2026, 3, 1), last=date(2026, 3, 2))
    assert {day: total.sums for day, total in days.items()} == {date(2026, 3, 2): {"EUR": second}}
    assert [total.sums for total in stores.values()] == [{"EUR": second}]

    await move_to(desk, "Europe/Paris")
    async with desk.database.transaction() as tx:
        await recount_in_time_zone(tx, desk.organization_id, [TimeZoneChanged()])
    while await fill_batch(desk.database, desk.organization_id):
        pass
    await desk.record(ticket("D", occurred_at="2026-03-02T23:30:00Z", total_amount_cents=1))
    await count_published(desk)
    days, _ = await read_days(desk, first=date(2026, 3, 1), last=date(2026, 3, 3))
    assert [total.sums["EUR"].net_cents for total in days.values()] == [100, 9 - 40, 1]


async def test_days_of_a_zone_that_the_database_does_not_know_are_those_of_utc(desk):
    await move_to(desk, "Moon/Tranquillity")
    await desk.record(ticket("A", occurred_at="2026-03-01T23:30:00Z", total_amount_cents=100))
    await count_published(desk)
    days, _ = await read_days(desk, first=date(2026, 3, 1), last=date(2026, 3, 1))
    assert days[date(2026, 3, 1)].sums["EUR"].net_cents == 100


async def test_units_count_a_measured_line_once_and_returns_with_either_sign(desk):
    def lines(*given):
        return [{"quantity": quantity, "unit": unit, "total_price_cents": 1} for quantity, unit in given]

    await desk.record(
        ticket("A", total_tax_cents=20, line_items=lines((2, None), (0.25, "kg"), (-1, None))),
        ticket("B", total_tax_cents=5, type="RETURN", line_items=lines((3, None))),
        ticket("C", type="RETURN", line_items=lines((-2, None))),
    )
    await count_published(desk)
    _, stores = await read_days(desk, first=date(2020, 1, 1), last=date(2030, 1, 1))
    [sums] = [total.sums["EUR"] for total in stores.values()]
    assert (sums.units, sums.returned_units, sums.lines, sums.tax_cents) == (2, 5, 3, 15)


def test_rates_of_no_tickets_are_unknown_and_others_follow_their_definitions():
    assert (Sums().ticket_cents, Sums().return_rate, Sums().identified_rate) == (None, None, None)
    sums = Sums(3, 1, 2, 1000, 250, 250, units=Decimal("4.5"))
    assert (sums.net_cents, sums.tickets, sums.ticket_cents, sums.units_per_ticket) == (750, 4, 333, 1.5)
    assert (sums.return_rate, sums.return_rate_by_tickets, sums.discount_rate) == (0.25, 0.25, 0.2)
    assert sums.identified_rate == 0.5
    assert sums + Sums(lines=2, tax_cents=7) == Sums(3, 1, 2, 1000, 250, 250, 7, Decimal("4.5"), lines=2)


async def move_to(desk, zone: str) -> None:
    async with desk.database.transaction() as tx:
        await tx.execute(
            "INSERT INTO organizations (id, name, time_zone, created_at) VALUES (%s, %s, %s, now())"
            " ON CONFLICT (id) DO UPDATE SET time_zone = excluded.time_zone",
            (desk.organization_id, str(desk.organization_id), zone),
        )


async def test_the_zones_of_the_database_are_listed_once_for_each_zone(desk, monkeypatch):
    listed = []
    fetch = Tx.fetch

    async def noted(self, query, params=()):
        if "pg_timezone_names" in str(query):
            listed.append(params[0])
        return await fetch(self, query, params)

    monkeypatch.setattr(Tx, "fetch", noted)
    monkeypatch.setattr(progress, "_KNOWN_ZONES", set())
    found = []
    for zone in ("Asia/Tokyo", "Asia/Tokyo", "Mars/Olympus", "Asia/Tokyo"):
        await move_to(desk, zone)
        async with desk.database.reading() as tx:
            found.append(await progress.find_time_zone(tx, desk.organization_id))
    assert found == ["Asia/Tokyo", "Asia/Tokyo", "UTC", "Asia/Tokyo"]
    assert listed == ["Asia/Tokyo", "Mars/Olympus"]


async def read_days(desk, *, first: date, last: date):
    async with desk.database.reading() as tx:
        days = await sum_totals(tx, desk.organization_id, ("day",), first=first, last=last)
        stores = await sum_totals(tx, desk.organization_id, ("store",), first=first, last=last)
        return {day: total for (day,), total in days.items()}, {store: total for (store,), total in stores.items()}


async def test_a_store_that_stops_sending_in_its_usual_hours_is_silent(desk):
    now = datetime.now(UTC).replace(minute=30, second=0, microsecond=0)
    weeks_ago = [now - timedelta(weeks=n, hours=1) for n in (1, 2, 3, 4)]
    sales = [
        ticket(f"T-{moment:%d}-{n}", occurred_at=(moment + timedelta(seconds=n)).isoformat())
        for moment in weeks_ago
        for n in range(20)
    ]
    await desk.record(*sales)
    await count_published(desk)
    [(store_id,)] = await desk.rows("SELECT id FROM stores WHERE organization_id = %s")
    async with desk.database.reading() as tx:
        quiet = await read_store_activity(tx, desk.organization_id, [store_id], now=now, zone=ZoneInfo("UTC"))
    activity = quiet[store_id]
    assert sum(activity.usual.values()) in (0, 20)  # half past midnight: yesterday's hours say nothing about today
    assert activity.tickets_today == 0


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
