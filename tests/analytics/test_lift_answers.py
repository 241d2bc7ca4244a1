"""Sums of two groups over random shops are those that plain Python finds in the rows."""

import os
import random
import struct
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.analytics.answer_oracle import read_rows
from tests.columns.fed_shop import FedShop
from tests.sales.test_returned_lines import search

from regulars.columns.questions import ArmPeople, LiftAnswer, LiftQuestion, Period
from regulars.experiments.sums import ArmSums
from regulars.sales.returned_lines import CustomerSale

SEEDS = int(os.environ.get("REGULARS_TEST_SEEDS", "2"))
QUESTIONS = 6
ZONES = ["Europe/Paris", "Asia/Kolkata", "America/New_York"]
PEOPLE = [f"p{number}" for number in range(16)]
ALL: dict[str, Any] = {"type": "all", "of": []}
PRODUCTS = ["A", "B", "C", None]


class RandomShop:
    def __init__(self, shop: FedShop, seed: int) -> None:
        self.shop, self.chance = shop, random.Random(seed)
        shop.move_to_zone(ZONES[seed % len(ZONES)])
        self.people = {name: shop.customer(name) for name in PEOPLE}
        self.sell(70)
        shop.begin_and_build()
        self.sell(40)
        shop.erase(PEOPLE[0])
        shop.drain()
        self.today = shop.query(ALL).today
        self.rows = [row for row in read_rows(shop) if row.profile_id is not None]
        self.returned = {name: cents for person in PEOPLE for name, cents in self._find_returned(person).items()}

    def _find_returned(self, name: str) -> dict[str, int]:
        """What came back of each purchase of a customer, by ticket."""
        return search(
            [
                CustomerSale(
                    row.external_id,
                    int(row.at.timestamp() * 1_000_000),
                    row.external_id,
                    row.is_return,
                    row.currency,
                    row.amount,
                    [(code_of(line), line["total_price_cents"]) for line in row.lines],
                )
                for row in self.rows
                if row.profile_id == self.people[name]
            ]
        )[0]

    def sell(self, count: int) -> None:
        pick = self.chance.choice
        days = [0, 1, 2, 3, 20, 29, 30, 31, 32, 45, 60, 61, 200, 365, 366, 400]
        for _ in range(count):
            lines = [
                {"total_price_cents": pick([0, 500, 900, 1000]), "product": code and {"external_id": code}}
                for code in (pick(PRODUCTS) for _ in range(pick([1, 1, 2])))
            ]
            self.shop.sale(
                pick(PEOPLE),
                kind=pick(["PURCHASE", "PURCHASE", "RETURN"]),
                amount=pick([0, 700, 1000, 2500]),
                ago=timedelta(days=pick(days), hours=pick([0, 5, 23]), minutes=pick([0, 31])),
                currency=pick(["EUR", "EUR", "CHF"]),
                lines=lines,
            )

    def ask(self, question: LiftQuestion) -> LiftAnswer:
        response = self.shop.ask(ALL, want="answer", question=question)
        assert isinstance(response.answer, LiftAnswer), response
        return response.answer

    def spend(self, person: UUID, first: date, last: date) -> dict[str, tuple[int, bool]]:
        """By currency: the net of the purchases in a window, and that there are any."""
        spent: dict[str, tuple[int, bool]] = {}
        for row in self.rows:
            if row.profile_id == person and not row.is_return and first <= row.day <= last:
                net = max(0, row.amount - self.returned.get(row.external_id, 0))
                spent[row.currency] = (spent.get(row.currency, (0, True))[0] + net, True)
        return spent

    def before(self, person: UUID, day: date, currency: str) -> int:
        return sum(
            row.net
            for row in self.rows
            if row.profile_id == person and row.currency == currency and day - timedelta(days=365) <= row.day < day
        )

    def sums(self, group: list[tuple[UUID, date, date, date]], currency: str) -> ArmSums:
        """For people with their windows and the day before which earlier spend counts."""
        values = [
            (*self.spend(person, first, last).get(currency, (0, False)), self.before(person, day, currency))
            for person, first, last, day in group
        ]
        return ArmSums(
            len(values),
            sum(bought for _, bought, _ in values),
            sum(spend for spend, _, _ in values),
            float(sum(spend**2 for spend, _, _ in values)),
            sum(before for _, _, before in values),
            float(sum(before**2 for _, _, before in values)),
            float(sum(spend * before for spend, _, before in values)),
        )


def code_of(line: dict[str, Any]) -> str | None:
    return (line.get("product") or {}).get("external_id")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_sums_of_both_groups_are_those_of_their_rows(shop, seed):
    random_shop = RandomShop(shop, seed)
    chance, today = random_shop.chance, random_shop.today
    currencies = set()
    for number in range(QUESTIONS):
        names = chance.sample(PEOPLE, 14)
        first = today - timedelta(days=chance.choice([3, 31, 61, 200]))
        last = first + timedelta(days=chance.choice([0, 3, 30]))
        frozen_on = first - timedelta(days=chance.choice([0, 1]))
        has_own = bool(number % 2)
        own = {name: first + timedelta(days=chance.choice([0, 1, 5])) if has_own else first for name in names}
        people, groups = [], []
        for some in (names[:9], names[9:]):
            ids = b"".join(random_shop.people[name].bytes for name in some) + uuid4().bytes
            days = [(own[name] - date(1970, 1, 1)).days for name in some] + [0]
            people.append(ArmPeople(ids, struct.pack(f"<{len(days)}i", *days) if has_own else b""))
            groups.append(
                [
                    (random_shop.people[name], own[name], own[name] + timedelta(days=7), own[name])
                    if has_own
                    else (random_shop.people[name], first, last, frozen_on)
                    for name in some
                    if name != PEOPLE[0]
                ]
            )
        window = Period(first, first + timedelta(days=12)) if has_own else Period(first, last)
        answer = random_shop.ask(
            LiftQuestion(treated=people[0], held_out=people[1], window=window, frozen_on=frozen_on, own_days=7)
        )
        assert (answer.treated, answer.held_out) == tuple(map(len, groups))
        found = {it.currency: (it.treated, it.held_out) for it in answer.sums}
        for currency in ("EUR", "CHF"):
            expected = tuple(random_shop.sums(group, currency) for group in groups)
            if any(arm.buyers for arm in expected):
                assert found.pop(currency) == expected
                currencies.add(currency)
        assert not found
    assert currencies == {"EUR", "CHF"}


def test_the_bootstrap_is_about_the_interval_of_the_verdict(shop):
    names = [f"b{number}" for number in range(40)]
    people = [shop.customer(name) for name in names]
    for number, name in enumerate(names):
        if number % 4:
            shop.sale(name, amount=1000 + 10 * number)
    shop.begin_and_build()
    shop.drain()
    today = shop.query(ALL).today
    arms = [ArmPeople(b"".join(it.bytes for it in some)) for some in (people[:20], people[20:])]
    question = LiftQuestion(treated=arms[0], held_out=arms[1], window=Period(today, today), frozen_on=today)
    response = shop.ask(ALL, want="answer", question=question)
    [sums] = response.answer.sums
    low, high = sums.bootstrap
    difference = sums.treated.spend_cents / 20 - sums.held_out.spend_cents / 20
    assert low < difference < high
    assert high - low < 1500


def test_a_group_with_half_an_id_is_refused(shop):
    shop.begin_and_build()
    day = datetime.combine(date(2026, 1, 1), time(), UTC).date()
    question = LiftQuestion(treated=ArmPeople(b"x" * 15), held_out=ArmPeople(), window=Period(day, day), frozen_on=day)
    assert "Each customer" in (shop.ask(ALL, want="answer", question=question).fault or "")
