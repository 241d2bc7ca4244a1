"""Questions of analytics over random shops are answered as plain Python finds it in the rows."""

import os
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.segments.answer_oracle import Oracle, buckets, read_rows
from tests.segments.fed_shop import FedShop

from regulars.analytics.segment_conditions import cohort_conditions, rfm_conditions
from regulars.conditions import tree
from regulars.kit.ids import STORE
from regulars.segments.analysis.questions import (
    COHORTS_MAX,
    CohortsQuestion,
    CustomersQuestion,
    Period,
    QuestionOf,
    RfmQuestion,
)

SEEDS = int(os.environ.get("REGULARS_TEST_SEEDS", "2"))
QUESTIONS = 40
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
        shop.move_to(ZONES[seed % len(ZONES)])
        self.sell(70)
        shop.begin()
        shop.build()
        self.sell(40)
        shop.erase(PEOPLE[0])
        shop.drain()
        if seed % 2:
            shop.compact(purge_after=timedelta(0))
        self.sell(20)
        shop.erase(PEOPLE[1])
        shop.drain()
        self.today = shop.query(NO_SEGMENT).today
        self.rows = read_rows(shop)
        self.people = {row[0] for row in shop.sql("SELECT id FROM profiles WHERE organization_id = %s")}

    def sell(self, count: int) -> None:
        pick = self.chance.choice
        days = [0, 1, 2, 29, 30, 31, 60, 90, 180, 364, 365, 729, 730, 731, 900, self.chance.randrange(1000)]
        for _ in range(count):
            self.shop.sale(
                pick([*PEOPLE, None, None]),
                kind=pick(["PURCHASE", "PURCHASE", "PURCHASE", "RETURN"]),
                amount=pick([0, 500, 1000, 2500, 12_345]),
                ago=timedelta(days=pick(days), hours=pick([0, 5, 12, 23]), minutes=pick([0, 31])),
                store=pick(["LYO", "PAR"]),
                currency=pick(CURRENCIES),
            )

    def question(self, make: type[QuestionOf[Any]], **given: Any) -> tuple[Any, Oracle]:
        """A random question, its answer, and the oracle for it."""
        stores = self.chance.choice([None, None, (self.shop.stores["LYO"],), ()])
        match = self.chance.choice([NO_SEGMENT, SEGMENT])
        answer = self.answer(match, make(store_ids=stores, **given))
        members = None if match is NO_SEGMENT else self.members()
        oracle = Oracle(self.rows, self.today, members, None if stores is None else set(stores))
        return answer, oracle

    def answer(self, match: Any, question: QuestionOf[Any]) -> Any:
        response = self.shop.ask(match, want="answer", question=question)
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


@pytest.fixture(params=range(SEEDS))
def random_shop(request, shop):
    return RandomShop(shop, request.param)


def test_customers_cohorts_and_groups_are_those_of_the_rows(random_shop):
    for _ in range(QUESTIONS):
        _check_customers(random_shop)
        _check_cohorts(random_shop)
        _check_rfm(random_shop)


def _check_customers(shop: RandomShop) -> None:
    period, compared, by = shop.period(), shop.period(), shop.chance.choice(["day", "week", "month"])
    answer, oracle = shop.question(CustomersQuestion, period=period, by=by, comparison=compared)
    for figures in (answer.whole, answer.compared, *answer.buckets):
        assert as_dict(figures) == oracle.customers(figures.first, figures.last)
    counted = [row for row in oracle.counted() if period.first <= row.day <= period.last]
    if oracle.members is not None:
        assert answer.identified == answer.tickets == len(counted)
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
            match = cohort_conditions(cohort.first, month.month, segment_id=None, store_ids=stores)
            assert shop.count(match) == month.bought
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


def test_a_period_without_sales_and_one_of_all_years_have_answers(random_shop):
    before = Period(date(1, 1, 1), date(1900, 1, 1))
    answer = random_shop.answer(NO_SEGMENT, CustomersQuestion(period=before, by="day", comparison=before))
    assert (answer.buckets, answer.whole.customers, answer.whole.repeat_rate, answer.tickets) == ((), 0, None, 0)
    assert random_shop.answer(NO_SEGMENT, CohortsQuestion(period=before)).cohorts == ()
    ever = Period(date.min, date.max)
    answer = random_shop.answer(NO_SEGMENT, CustomersQuestion(period=ever, by="month"))
    assert answer.whole.customers == len({row.profile_id for row in random_shop.rows if not row.is_return} - {None})
    random_shop.shop.sale("p3", at=datetime(1, 1, 1, 12, tzinfo=UTC))
    random_shop.shop.drain()
    response = random_shop.shop.ask(NO_SEGMENT, want="answer", question=CustomersQuestion(period=ever, by="day"))
    assert response.fault == "The period has more than 4,000 rows; choose longer ones or fewer days."
