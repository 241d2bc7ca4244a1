import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import msgspec
import phonenumbers
import pytest
from tests.support.database_fixtures import SECRET
from tests.support.drain_queues import drain

from regulars.demo import load
from regulars.demo.chain import COUNTRIES
from regulars.demo.load import (
    DemoPlan,
    create_light,
    load_demo,
    load_shops,
    load_tickets,
    organization_has_data,
    record_tickets,
)
from regulars.demo.people import count_customers, make_consents, make_customers, make_profiles
from regulars.demo.tickets import RECALL_DAYS, RECALLED_DAYS_AGO, days_until, make_tickets, tickets_per_day
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import ByExternalId
from regulars.profiles.write import upsert_profiles
from regulars.sales.decode import decode_sale
from regulars.sales.load import load_sales
from regulars.sales.model import Sale
from regulars.texts.number_location import find_country
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio

LAST_DAY = date(2026, 6, 30)
SALES = 600
COAT, LINEN = b"Wool coat", b"Linen shirt"

# Everything but canonical ids and the time of loading, which differ between any two loads.
SALES_ROWS = """
SELECT e.external_id, e.type, e.occurred_at, s.external_id, p.external_id, e.currency, e.total_amount_cents,
       e.total_discount_cents, e.total_tax_cents, e.source, e.payments::text, e.loyalty::text, e.metadata::text,
       e.line_items::text
FROM sales_events e
JOIN stores s ON s.organization_id = e.organization_id AND s.id = e.store_id
LEFT JOIN profiles p ON p.organization_id = e.organization_id AND p.id = e.profile_id
WHERE e.organization_id = %s ORDER BY e.external_id
"""
PROFILE_ROWS = """
SELECT external_id, phone_number, phone_reachable, first_name, last_name, attributes
FROM profiles WHERE organization_id = %s ORDER BY external_id
"""
KEY_ROWS = "SELECT key, type FROM product_properties WHERE organization_id = %s ORDER BY key"


def people(sales=SALES):
    return make_customers(1, count_customers(sales))


def tickets(seed=1, sales=SALES):
    return make_tickets(seed, people(sales), count=sales, last_day=LAST_DAY)


async def rows_of(database, organization_id):
    async with database.connection() as connection:
        return [
            await (await connection.execute(query, (organization_id,))).fetchall()
            for query in (SALES_ROWS, PROFILE_ROWS, KEY_ROWS)
        ]


async def prepare(database, organization_id):
    await load_shops(database, organization_id, lambda *_: None)
    async with database.transaction() as tx:
        await upsert_profiles(tx, organization_id, list(make_profiles(1, people())))


async def test_bulk_loading_leaves_the_rows_that_the_use_case_leaves(database):
    one_by_one, in_bulk = uuid4(), uuid4()
    for organization_id in (one_by_one, in_bulk):
        await prepare(database, organization_id)
    await record_tickets(database, one_by_one, tickets(), lambda *_: None)
    await drain(database, one_by_one, LISTENERS)
    light = await create_light(database, in_bulk, people())
    await load_tickets(database, in_bulk, tickets(), people(), light, progress=lambda *_: None)
    assert await drain(database, in_bulk, LISTENERS) == 1
    expected, found = await rows_of(database, one_by_one), await rows_of(database, in_bulk)
    assert [len(rows) for rows in expected] == [SALES, len(expected[1]), 5]
    assert found == expected


async def test_bulk_loading_keeps_hostile_text_and_empty_fields(database, organization_id):
    await prepare(database, organization_id)
    sale = Sale(
        external_id="a\\b:1",
        type="PURCHASE",
        occurred_at=datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
        store=ByExternalId("PAR-OPERA"),
        profile=None,
        currency="EUR",
        total_amount_cents=1,
        total_discount_cents=0,
        total_tax_cents=None,
        source="tab\tand\nline\\N",
        payments=b'{"a":"\\\\ \\t \\u00e9 \\N"}'.replace(b"\\N", b"\\n"),
        loyalty=None,
        metadata=None,
        line_items=b'[{"quantity":1}]',
    )
    async with database.transaction() as tx:
        stores = {ByExternalId("PAR-OPERA"): uuid4()}
        assert await load_sales(tx, organization_id, [sale], stores=stores, profiles={}) == 1
        query = (
            "SELECT external_id, source, payments::text, loyalty, total_tax_cents, occurred_at FROM sales_events"
            " WHERE organization_id = %s"
        )
        rows = await tx.fetch(query, (organization_id,))
    assert rows == [(sale.external_id, sale.source, sale.payments.decode(), None, None, sale.occurred_at)]


async def test_the_whole_demo_loads_and_loading_it_again_adds_nothing(database, organization_id, monkeypatch):
    monkeypatch.setattr(load, "COPY_ROWS", 250)
    story = DemoPlan(seed=7, sales=SALES, customers=60, last_day=LAST_DAY)
    async with database.transaction() as tx:
        assert not await organization_has_data(tx, organization_id)
    reported: Counter[str] = Counter()
    for _ in range(2):
        await load_demo(
            database, organization_id, story, secret=SECRET, progress=lambda part, n: reported.update({part: n})
        )
    assert reported["tickets"] == 2 * SALES
    async with database.transaction() as tx:
        assert await organization_has_data(tx, organization_id)
        count = "SELECT count(*), count(DISTINCT store_id) FROM sales_events WHERE organization_id = %s"
        assert await tx.fetch(count, (organization_id,)) == [(SALES, 27)]
        status = "SELECT DISTINCT status FROM subscriptions WHERE organization_id = %s ORDER BY status"
        assert await tx.fetch(status, (organization_id,)) == [("SUBSCRIBED",), ("UNSUBSCRIBED",)]


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    assert list(tickets()) == list(tickets())
    assert list(tickets(seed=2)) != list(tickets())
    assert list(make_profiles(1, people())) == list(make_profiles(1, people()))
    assert make_consents(1, people(), LAST_DAY) == make_consents(1, people(), LAST_DAY)


@pytest.mark.parametrize("count", [1, 7, 5000])
def test_exactly_the_wanted_number_of_tickets_is_made_and_none_in_the_future(count):
    made = list(tickets(sales=count))
    assert len(made) == count
    assert len({sale.external_id for sale in made}) == count
    assert all(sale.occurred_at < datetime(2026, 6, 30, tzinfo=UTC) for sale in made)
    assert [sale.occurred_at.date() for sale in made] == sorted(sale.occurred_at.date() for sale in made)


def test_the_demo_has_seasons_weekends_opening_hours_returns_and_anonymous_tickets():
    made = list(tickets(sales=20_000))
    months = Counter(sale.occurred_at.month for sale in made)
    weekdays = Counter(sale.occurred_at.weekday() for sale in made)
    assert months[12] > 2 * months[8]
    assert weekdays[5] > 2 * weekdays[0]
    assert {sale.occurred_at.hour for sale in made} == set(range(10, 20))
    assert 0.02 < sum(sale.type == "RETURN" for sale in made) / len(made) < 0.06
    assert 0.25 < sum(sale.profile is None for sale in made) / len(made) < 0.35
    assert {sale.currency for sale in made} == {"EUR", "GBP", "CHF"}


def test_the_two_years_have_a_new_shop_a_recall_and_new_customers_in_every_month():
    made = list(tickets(sales=40_000))
    days = days_until(LAST_DAY - timedelta(days=1))
    bristol = [sale.occurred_at.date() for sale in made if sale.store == ByExternalId("BRS-CABOT")]
    assert days[360] <= min(bristol) < days[367]
    assert all(sale.occurred_at.weekday() != 6 for sale in made if sale.currency == "EUR")

    recall = days[-RECALLED_DAYS_AGO]
    sneakers = [sale for sale in made if b"Leather sneakers" in sale.line_items]
    returned = Counter(sale.occurred_at.date() >= recall for sale in sneakers if sale.type == "RETURN")
    assert returned[True] > 3 * returned[False] / len(days) * RECALLED_DAYS_AGO
    stopped = [recall + timedelta(days=day) for day in range(RECALL_DAYS)]
    assert not any(sale.type == "PURCHASE" and sale.occurred_at.date() in stopped for sale in sneakers)

    months = {
        name: Counter(sale.occurred_at.month for sale in made if name in sale.line_items) for name in (COAT, LINEN)
    }
    assert months[COAT][12] > 5 * months[COAT][7]
    assert months[LINEN][7] > 3 * months[LINEN][12]

    first: dict[object, date] = {}
    for sale in made:
        if sale.profile is not None:
            first.setdefault(sale.profile, sale.occurred_at.date())
    assert min(Counter((day.year, day.month) for day in first.values()).values()) > 10
    assert len(first) > 0.9 * count_customers(40_000)


def test_every_ticket_is_one_that_the_api_would_read_the_same_way():
    for sale in tickets():
        wire = {
            name: getattr(sale, name)
            for name in (
                "external_id",
                "type",
                "currency",
                "source",
                "total_amount_cents",
                "total_discount_cents",
                "total_tax_cents",
            )
        }
        body = {
            **wire,
            "occurred_at": format_timestamp(sale.occurred_at),
            "store_id": sale.store.external_id,
            "profile_id": sale.profile and sale.profile.external_id,
            "payments": msgspec.Raw(sale.payments),
            "line_items": msgspec.Raw(sale.line_items),
        }
        assert decode_sale(msgspec.json.encode(body)) == sale


def test_days_share_the_tickets_without_losing_any():
    days = days_until(LAST_DAY)
    assert days[-1] == LAST_DAY
    assert sum(tickets_per_day(days, 12_345)) == 12_345


def test_no_demo_number_can_belong_to_a_person_and_none_is_given_twice():
    """Numbers are reserved by their country, or assigned to no operator; country conditions find them."""
    customers = [customer for customer in make_customers(1, 20_000) if customer.phone_number]
    numbers = [customer.phone_number for customer in customers]
    assert len(set(numbers)) == len(numbers)
    reserved = tuple(block.prefix for country in COUNTRIES.values() for block in country.numbers[:-1])
    for customer in customers[:3000]:
        parsed = phonenumbers.parse(customer.phone_number)
        assert phonenumbers.is_possible_number(parsed)
        assert customer.phone_number.startswith(reserved) or not phonenumbers.is_valid_number(parsed)
        assert find_country(customer.phone_number) == customer.shop.country


def test_british_customers_have_the_numbers_that_ofcom_reserves():
    british = [c.phone_number for c in make_customers(1, 2_500) if c.phone_number and c.shop.country == "GB"]
    assert len(british) > 300
    assert all(re.fullmatch(r"\+447700900\d{3}", number) for number in british)
