"""Questions of analytics over random shops are answered as plain Python finds it in the rows."""

import os
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.analytics.answer_oracle import Oracle, buckets, read_rows
from tests.columns.fed_shop import FedShop
from tests.columns.trees import LARGE

from regulars.analytics import period as analytics
from regulars.analytics.figures import compared_parts
from regulars.analytics.period import Comparison, comparison_of
from regulars.analytics.segment_conditions import cohort_conditions, product_conditions, rfm_conditions
from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import (
    COHORTS_MAX,
    BasketQuestion,
    CohortsQuestion,
    CustomersQuestion,
    Dimension,
    Period,
    ProductGroup,
    ProductKey,
    ProductsQuestion,
    QuestionOf,
    RfmQuestion,
    SalesAnswer,
    SalesQuestion,
)
from regulars.conditions import tree
from regulars.kit.ids import STORE

SIZE, STORE_KEY = ProductKey("property", "size"), ProductKey("store")
KEYS = [ProductKey(), SIZE, ProductKey("property", "fair"), ProductKey("property", "none has it"), STORE_KEY]
NAMES = {"A": "Linen sheet", "B": "Candle"}
SEEDS = int(os.environ.get("REGULARS_TEST_SEEDS", "2"))
# Of each kind, in each shop.
QUESTIONS = 30
# How many rounds of questions there are between two changes of the sales.
CHANGED_EVERY = 10
ZONES = ["Europe/Paris", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]
PEOPLE = [f"p{number}" for number in range(24)]
# Four currencies, most sales in one.
CURRENCIES = ["EUR", "EUR", "EUR", "CHF", "GBP", "USD"]
SEGMENT: dict[str, Any] = {"type": "all", "of": [{"type": "bought", "at_least": 2}]}
SEGMENT_MATCH = tree.All(of=(tree.Bought(at_least=2),))
NO_SEGMENT: dict[str, Any] = {"type": "all", "of": []}


class RandomShop:
    """Sales of three years, some of them in late files, some around midnight and the change of the clock."""

    def __init__(self, shop: FedShop, seed: int) -> None:
        self.shop, self.chance = shop, random.Random(seed)
        self.newcomers = 0
        shop.move_to_zone(ZONES[seed % len(ZONES)])
        # In some shops there are amounts whose sums are beyond doubles.
        self.large = [LARGE] if seed % 3 == 1 else []
        self.sell(70)
        shop.begin_and_build()
        self.sell(40)
        shop.erase(PEOPLE[0])
        shop.drain()
        if seed % 2:
            shop.compact(purge_after=timedelta(0))
        self.sell(20)
        shop.erase(PEOPLE[1])
        shop.drain()
        self.everyone, self.segment = shop.query(NO_SEGMENT), shop.query(SEGMENT)
        self.today = self.everyone.today
        self.read()

    def read(self) -> None:
        self.rows = read_rows(self.shop)
        self.people = {row[0] for row in self.shop.sql("SELECT id FROM profiles WHERE organization_id = %s")}

    def go_on(self) -> None:
        """A few sales, some of them to customers who are new."""
        self.newcomers += 1
        self.sell(4)
        self.shop.drain()
        self.read()

    def sell(self, count: int) -> None:
        pick = self.chance.choice
        newcomers = [f"n{number}" for number in range(self.newcomers)]
        days = [0, 1, 2, 29, 30, 31, 60, 90, 180, 364, 365, 729, 730, 731, 900, self.chance.randrange(1000)]
        for _ in range(count):
            self.shop.sale(
                pick([*PEOPLE, *newcomers, None, None]),
                kind=pick(["PURCHASE", "PURCHASE", "PURCHASE", "RETURN"]),
                amount=pick([0, 500, 1000, 2500, 12_345, *self.large]),
                ago=timedelta(days=pick(days), hours=pick([0, 5, 12, 23]), minutes=pick([0, 31])),
                store=pick(["LYO", "PAR"]),
                currency=pick(CURRENCIES),
                discount=pick([0, 0, 150]),
                tax=pick([None, 0, 99]),
                lines=[self.line() for _ in range(pick([0, 1, 2, 3]))],
            )

    def line(self) -> dict[str, Any]:
        pick = self.chance.choice
        code = pick(["A", "B", "C", "D"])
        named = {"external_id": code, "name": NAMES.get(code)} if code in NAMES else {"external_id": code}
        return {
            "quantity": pick([1, 2, 0.5, 0.125, -1]),
            "total_price_cents": pick([0, 500, 1000, -300, *self.large]),
            **pick([{}, {}, {"unit": "kg"}]),
            "product": pick(
                [
                    None,
                    {**named, "properties": {"size": pick([38, 40.0, "XL", True])}},
                    {**named, "properties": {"size": pick(["38", 40.5]), "fair": True}},
                    {"name": "without a code"},
                ]
            ),
        }

    def groups(self) -> list[ProductGroup]:
        """Groups to look inside."""
        pick = self.chance.choice
        store = ProductGroup(STORE_KEY, "value", STORE.encode(self.shop.stores["PAR"]))
        size = ProductGroup(SIZE, pick(["value", "unset", "no_product"]))
        if size.kind == "value":
            size = ProductGroup(SIZE, "value", pick(["38", "XL", "of nothing"]))
        code = ProductGroup(ProductKey(), "value", pick(["A", "B"]))
        return pick([[], [], [size], [code], [code, size], [store], [store, size]])

    def question(self, make: type[QuestionOf[Any]], **given: Any) -> tuple[Any, Oracle]:
        """A random question, its answer, and the oracle for it."""
        stores = self.chance.choice([None, None, (self.shop.stores["LYO"],), ()])
        query = self.chance.choice([self.everyone, self.segment])
        answer = self.answer(query, make(store_ids=stores, **given))
        members = None if query is self.everyone else self.members()
        oracle = Oracle(self.rows, self.today, members, None if stores is None else set(stores))
        return answer, oracle

    def answer(self, query: SegmentQuery, question: QuestionOf[Any]) -> Any:
        response = self.shop.ask(query, want="answer", question=question)
        assert response.answer is not None, response
        # As it travels.
        return msgspec.msgpack.decode(msgspec.msgpack.encode(response.answer), type=type(response.answer))

    def count(self, match: tree.All) -> int:
        """How many customers a segment with these conditions has."""
        self.shop.stores |= {STORE.encode(it): it for it in self.shop.stores.values()}
        return self.shop.figures(match).total

    def members(self) -> set[UUID]:
        times: dict[UUID, int] = {}
        for row in self.rows:
            if not row.is_return and row.profile_id is not None:
                times[row.profile_id] = times.get(row.profile_id, 0) + 1
        return {who for who, count in times.items() if count >= 2}

    def period(self) -> Period:
        last = self.today - timedelta(days=self.chance.choice([0, 0, 1, 40, 400]))
        return Period(last - timedelta(days=self.chance.choice([0, 6, 30, 364, 729, 1200])), last)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_figure_is_that_of_the_rows(shop, seed):
    random_shop = RandomShop(shop, seed)
    for number in range(QUESTIONS):
        # What the process retains of the questions before must not outlive a sale.
        if number % CHANGED_EVERY == CHANGED_EVERY - 1:
            random_shop.go_on()
        _check_sales(random_shop)
        _check_customers(random_shop)
        _check_cohorts(random_shop)
        _check_rfm(random_shop)
        _check_products(random_shop)
        _check_basket(random_shop)


DIMENSIONS = [
    *map(Dimension, ["day", "week", "month", "store", "country", "newness", "product"]),
    Dimension("property", "size"),
]


def _check_sales(shop: RandomShop) -> None:
    """Sums of tickets, or of lines where a dimension or a filter has products, by up to two dimensions."""
    pick, period = shop.chance.choice, shop.period()
    by = tuple(shop.chance.sample(DIMENSIONS, pick([0, 1, 1, 2, 2])))
    has_lines = any(it.kind in {"product", "property"} for it in by) or pick([False, False, True])
    comparison = comparison_of(
        analytics.Period(period.first, period.last), pick(["none", "weekdays", "before", "dates"])
    )
    days = None if comparison is None else Period(comparison.period.first, comparison.period.last)
    given = {
        "period": period,
        "by": by,
        "comparison": days,
        "compared_parts": {}
        if comparison is None
        else {it: compared_parts(comparison, it) for it in ("day", "week", "month")},
        "lines_in": "EUR" if has_lines else None,
        "filters": tuple(shop.groups()) if has_lines else (),
        "countries": {shop.shop.stores["PAR"]: "FR"},
        "with_customers": True,
    }
    answer, oracle = shop.question(SalesQuestion, **given)
    question = SalesQuestion(**given)
    assert as_rows(answer.rows) == oracle.groups(question, period, {})
    if comparison is None or days is None:
        assert answer.compared == ()
        return
    assert as_rows(answer.compared) == oracle.groups(question, days, comparison_names(comparison))
    if any(it.kind == "product" for it in by):
        assert set(answer.names.items()) <= set(NAMES.items())


def as_rows(rows: Any) -> dict[Any, Any]:
    return {
        (row.keys, currency): (sums, row.customers[currency]) for row in rows for currency, sums in row.sums.items()
    }


def comparison_names(comparison: Comparison) -> dict[tuple[str, date], date]:
    """For each unit and compared day, the first day of the part that it is compared with."""
    return {
        (unit, day): first
        for unit in ("day", "week", "month")
        for first, days in compared_parts(comparison, unit)
        for day in days_of(days.first, days.last)
    }


def _check_products(shop: RandomShop) -> None:
    given = {
        "period": shop.period(),
        "currency": "EUR",
        "by": shop.chance.choice(KEYS),
        "filters": tuple(shop.groups()),
        "comparison": shop.chance.choice([None, shop.period()]),
        "rows_max": shop.chance.choice([1, 2, 1000]),
    }
    answer, oracle = shop.question(ProductsQuestion, **given)
    expected = oracle.products(ProductsQuestion(**given))
    values = [row for row in answer.rows if row.group.kind == "value"]
    for row in answer.rows:
        if row.group.kind != "others":
            assert as_dict(row.figures) == expected[row.group]
    assert answer.groups == len(expected)
    largest = sorted((it["net_cents"] for group, it in expected.items() if group.kind == "value"), reverse=True)
    assert [row.figures.net_cents for row in values] == largest[: given["rows_max"]]
    assert {row.group.kind for row in answer.rows} >= {group.kind for group in expected} - {"value"}
    for name in ("net_cents", "sold_millionths", "returned_millionths"):
        assert sum(getattr(row.figures, name) for row in answer.rows) == getattr(answer.whole, name)
        assert getattr(answer.whole, name) == sum(it[name] for it in expected.values())
    lines = oracle.lines(given["period"], "EUR", given["filters"])
    bought = [line.row for line in lines if not line.row.is_return]
    assert answer.whole.tickets == len({id(row) for row in bought})
    assert answer.identified == len({id(row) for row in bought if row.profile_id is not None or row.is_erased})
    assert answer.whole.customers == len({row.profile_id for row in bought} - {None})
    _check_customers_of_product(shop, oracle, given["period"])
    names = {row.group.value: row.name for row in values}
    assert all(name == NAMES.get(value) for value, name in names.items()) or given["by"].kind != "product"


def _check_customers_of_product(shop: RandomShop, oracle: Oracle, period: Period) -> None:
    """The segment of the page has the customers who bought the product, in any currency or in one."""
    stores = None if oracle.stores is None else sorted(oracle.stores)
    inside = [ProductGroup(ProductKey(), "value", "A")]
    lines = [line for currency in set(CURRENCIES) for line in oracle.lines(period, currency, inside)]
    bought = [line for line in lines if not line.row.is_return and line.row.profile_id is not None]
    spent = {id(line.row): sum(it.cents for it in bought if it.row is line.row) for line in bought}
    for currency in (None, "EUR"):
        match = product_conditions(
            "A", currency, first=period.first, last=period.last, segment_id=None, store_ids=stores
        )
        members = match if oracle.members is None else tree.All(of=(*match.of, *SEGMENT_MATCH.of))
        counted = [it for it in bought if currency is None or (it.row.currency == currency and spent[id(it.row)] >= 0)]
        assert stores == [] or shop.count(members) == len({it.row.profile_id for it in counted})


def _check_basket(shop: RandomShop) -> None:
    given = {"period": shop.period(), "currency": "EUR", "filters": tuple(shop.groups()), "rows_max": 1000}
    answer, oracle = shop.question(BasketQuestion, **given)
    counts, tickets = oracle.basket(BasketQuestion(**given))
    assert ({row.product: row.tickets for row in answer.rows}, answer.tickets) == (dict(counts), tickets)


def days_of(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def _check_customers(shop: RandomShop) -> None:
    period, compared, by = shop.period(), shop.period(), shop.chance.choice(["day", "week", "month"])
    answer, oracle = shop.question(CustomersQuestion, period=period, by=by, comparison=compared)
    for figures in (answer.whole, answer.compared, *answer.buckets):
        assert as_dict(figures) == oracle.customers(figures.first, figures.last)
    counted = [row for row in oracle.counted() if period.first <= row.day <= period.last]
    is_identified = [row.profile_id is not None or row.is_erased for row in counted]
    assert (answer.identified, answer.tickets) == (sum(is_identified), len(counted))
    # Buckets are those of the period in which there can be sales.
    every = buckets(period.first, period.last, by)
    shown = [(it.first, it.last) for it in answer.buckets]
    assert [it for it in every if it in shown] == shown
    for first, last in every:
        if (first, last) not in shown:
            assert not [row for row in counted if first <= row.day <= last]
    counts, middle = oracle.intervals(period)
    assert (
        [(it.first_days, it.last_days, it.count) for it in answer.intervals.counts],
        answer.intervals.median_days,
    ) == (counts, middle)


def _check_cohorts(shop: RandomShop) -> None:
    period = shop.period()
    answer, oracle = shop.question(CohortsQuestion, period=period)
    expected = oracle.cohorts()
    assert len(answer.cohorts) <= COHORTS_MAX
    for cohort in answer.cohorts:
        wanted = expected.pop(cohort.first, None) or {"customers": 0, "months": []}
        assert cohort.customers == wanted["customers"]
        for month, of_month in zip(cohort.months, wanted["months"], strict=bool(wanted["months"])):
            found = (month.bought, month.bought_so_far, month.net_cents, month.net_so_far_cents)
            assert found == of_month
        if cohort.months and oracle.members is None and oracle.stores != set():
            month = shop.chance.choice(cohort.months)
            stores = None if oracle.stores is None else sorted(oracle.stores)
            up_to = bool(month.month) and shop.chance.random() < 0.5
            match = cohort_conditions(cohort.first, month.month, up_to=up_to, segment_id=None, store_ids=stores)
            assert shop.count(match) == (month.bought_so_far if up_to else month.bought)
    left_out = [first for first, cohort in expected.items() if cohort["customers"]]
    assert all(first < period.first.replace(day=1) or first > period.last for first in left_out)


def _check_rfm(shop: RandomShop) -> None:
    currency = shop.chance.choice(["EUR", "CHF"])
    answer, oracle = shop.question(RfmQuestion, currency=currency)
    groups, customers = oracle.rfm(currency)
    assert {it.name: (it.customers, it.net_cents) for it in answer.groups if it.customers} == groups
    assert answer.customers == customers == sum(it.customers for it in answer.groups)
    assert not any(it.customers for it in answer.groups if not it.is_possible)
    group = shop.chance.choice([it for it in answer.groups if it.is_possible])
    stores = None if oracle.stores is None else sorted(oracle.stores)
    if stores != []:
        match = rfm_conditions(group, currency, segment_id=None, store_ids=stores)
        members = match if oracle.members is None else tree.All(of=(*match.of, *SEGMENT_MATCH.of))
        assert shop.count(members) == group.customers


def as_dict(figures: Any) -> dict[str, Any]:
    return {name: getattr(figures, name) for name in figures.__struct_fields__}


def test_an_answer_is_dated_by_the_oldest_change_that_waits(shop):
    shop.sale("ada", at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    shop.begin_and_build()
    shop.drain()
    march = Period(date(2026, 3, 1), date(2026, 3, 31))

    def ask() -> SalesAnswer:
        answer = shop.ask(
            NO_SEGMENT, want="answer", question=SalesQuestion(period=march, by=(Dimension("day"),))
        ).answer
        assert isinstance(answer, SalesAnswer)
        return answer

    before = ask()
    waiting_since = before.as_of - timedelta(minutes=1)
    shop.sale("ada", at=datetime(2026, 3, 2, 12, tzinfo=UTC))
    shop.alter(
        "UPDATE outbox SET created_at = given.at FROM (VALUES (%s::uuid, %s::timestamptz)) AS given (id, at)"
        " WHERE organization_id = given.id",
        waiting_since,
    )
    assert (len(ask().rows), ask().as_of) == (1, waiting_since)
    shop.drain()
    after = ask()
    assert len(after.rows) == 2
    assert after.as_of > before.as_of


def test_a_period_without_sales_and_one_of_all_years_have_answers(shop):
    random_shop = RandomShop(shop, 0)
    before = Period(date(1, 1, 1), date(1900, 1, 1))
    answer = random_shop.answer(random_shop.everyone, CustomersQuestion(period=before, by="day", comparison=before))
    assert (answer.buckets, answer.whole.customers, answer.whole.repeat_rate, answer.tickets) == ((), 0, None, 0)
    assert random_shop.answer(random_shop.everyone, CohortsQuestion(period=before)).cohorts == ()
    ever = Period(date.min, date.max)
    answer = random_shop.answer(random_shop.everyone, CustomersQuestion(period=ever, by="month"))
    assert answer.tickets == len(random_shop.rows)
    assert answer.whole.customers == len({row.profile_id for row in random_shop.rows if not row.is_return} - {None})
    random_shop.shop.sale("p3", at=datetime(1, 1, 1, 12, tzinfo=UTC))
    random_shop.shop.drain()
    response = random_shop.shop.ask(NO_SEGMENT, want="answer", question=CustomersQuestion(period=ever, by="day"))
    assert response.fault == "The period has more than 4,000 rows; choose longer ones or fewer days."
