"""Many values at once are judged as one value is: the quick ways of the columns beside the test that explain asks."""

import random
from datetime import date
from decimal import Decimal
from itertools import combinations_with_replacement
from zoneinfo import ZoneInfo

import msgspec
import pytest

from regulars.catalog.model import AttributeType
from regulars.columns.engine import coded_values
from regulars.columns.engine.coded_values import LoadProgress, ParsedValues
from regulars.columns.engine.numbers import Numbers
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE, SEVERAL_VALUES, ValueTest
from regulars.conditions.tree import OfAttribute

ZONE = "Europe/Paris"
LEAP, OTHER_YEAR = date(2028, 2, 28), date(2026, 2, 21)
TEXTS = ["Gold", "gold", "GOLD", "Été", "été", "straße", "STRASSE", "", "o", "x old", "true", "1"]
NUMBERS = [
    "0", "-0", "0.0", "-0.000000", "1", "1.0", "01", "-01.50", "-1.5", "1.5", "1.500000", "1.5000000", "1.5000001", "-1.5000001",
    "1.4999999", "0.000001", "0.0000001", "-0.0000001", "999999999999", "-999999999999.999999", "999999999999.9999999",
    "1000000000000", "9223372036854.775807", "9223372036854.775808", "-9223372036854.775808", "0" * 30 + "1.5",
    "1" * 60, "-" + "9" * 60 + ".5",
]  # fmt: skip
NO_NUMBERS = ["", "-", ".", "-.5", ".5", "5.", "+1", "1e3", " 1", "1 ", "1,5", "1.5.0", "--1", "1-", "١", "１", "²", "x", "1\n", "1\0"]  # fmt: skip
DATES = [
    "2026-02-21", "2026-02-22", "2026-02-28", "2026-03-01", "2027-02-28", "2028-02-29", "1992-02-29", "1992-02-28", "1992-03-01",
    "2026-02-14", "2026-02-20", "0001-01-01", "9999-12-31", "2028-02-28T23:30:00Z", "2026-02-21T23:30:00Z",
]  # fmt: skip
NO_DATES = ["", "2026-02-29", "2026-13-01", "soon", "20260221", "2026-2-21"]
ALLOWED = ("Gold", "1")
VALUES = [*TEXTS, *NUMBERS, *NO_NUMBERS, *DATES, *NO_DATES]
CONSTANTS = {
    AttributeType.TEXT: [text for text in TEXTS if text],
    AttributeType.NUMBER: NUMBERS,
    AttributeType.CURRENCY: NUMBERS,
    AttributeType.DATE: [text for text in DATES if "T" not in text],
    AttributeType.BOOLEAN: ["true", "false"],
    AttributeType.ENUM: list(ALLOWED),
}


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    """However few they are, they take the way that is made for many."""
    monkeypatch.setattr(coded_values, "VECTORIZED_VALUES_MIN", 1)


def comparisons(declared: AttributeType, comparison: str) -> list[OfAttribute]:
    """With all constants that there are."""
    constants = CONSTANTS[declared]
    common: dict[str, object] = {"key": "k", "comparison": comparison}
    if comparison in NEGATIVE:
        common["without_value"] = True
    if comparison == "between":
        ends = sorted(constants, key=str if declared is AttributeType.DATE else Decimal)
        return [OfAttribute(**common, values=pair) for pair in combinations_with_replacement(ends, 2)]
    if comparison in SEVERAL_VALUES:
        return [OfAttribute(**common, values=tuple(constants[:count])) for count in (1, 2)]
    if comparison in ONE_VALUE:
        return [OfAttribute(**common, value=constant) for constant in constants]
    if comparison in OF_DAYS:
        return [OfAttribute(**common, days=days) for days in (1, 2, 7, 8, 365, 366, 3_650)]
    return [OfAttribute(**common)]


@pytest.mark.parametrize(
    ("declared", "comparison"),
    [(declared, it) for declared in AttributeType for it in sorted(COMPARISONS_BY_TYPE[declared])],
)
def test_many_values_are_judged_as_each_of_them_is(declared, comparison):
    read = ParsedValues(declared, ALLOWED, ZONE)
    for today in (OTHER_YEAR, LEAP):
        for query in comparisons(declared, comparison):
            assert evaluate(read, query, VALUES, today) == one_by_one(declared, query, VALUES, today), query


@pytest.mark.parametrize("declared", AttributeType)
def test_values_that_come_later_are_judged_with_the_others(declared):
    for comparison in sorted(COMPARISONS_BY_TYPE[declared]):
        read, query = ParsedValues(declared, ALLOWED, ZONE), comparisons(declared, comparison)[0]
        for count in (1, 40, 40, len(VALUES)):
            some = VALUES[:count]
            assert evaluate(read, query, some, LEAP) == one_by_one(declared, query, some, LEAP), query


def any_value(chance: random.Random) -> str:
    """Mostly a number."""
    digits = "".join(chance.choices("0123456789", k=24))
    number = chance.choice(["", "-"]) + digits[: chance.randint(1, 15)] + chance.choice(["", "." + digits[-9:]])
    text = "".join(chance.choices("0189-+.e x١é\0", k=chance.randint(0, 6)))
    return chance.choice([number, number, text, *chance.sample([*NUMBERS, *NO_NUMBERS], 2)])


@pytest.mark.parametrize("seed", range(4))
def test_any_numbers_are_compared_exactly(seed):
    """Constants are taken from the values, so that what is equal is asked for."""
    chance = random.Random(seed)
    values = list({any_value(chance): None for _ in range(60)})
    readable = [value for value in values if one_by_one(AttributeType.NUMBER, IS_SET, [value], LEAP) == [True]]
    for constant in [*chance.sample(readable, 8), *chance.sample(NUMBERS, 4)]:
        for comparison in sorted(ONE_VALUE.intersection(COMPARISONS_BY_TYPE[AttributeType.NUMBER])):
            query = OfAttribute(key="k", comparison=comparison, value=constant, without_value=False)
            read = ParsedValues(AttributeType.NUMBER, (), ZONE)
            assert evaluate(read, query, values, LEAP) == one_by_one(AttributeType.NUMBER, query, values, LEAP)


@pytest.mark.parametrize("declared", [AttributeType.DATE, AttributeType.NUMBER, AttributeType.CURRENCY])
@pytest.mark.parametrize("comparison", ["is_set", "is_not_set", "between"])
def test_a_value_is_read_once_whatever_is_asked(declared, comparison):
    read, values, [query, *_] = ParsedValues(declared, (), ZONE), list(VALUES), comparisons(declared, comparison)
    for more, unread in (([], len(values)), ([], 0), (["one more"], 1)):
        values += more
        reading = LoadProgress()
        read.truth(query, values, LEAP, reading)
        assert (reading.total, reading.done) == (unread, unread)


def test_numbers_of_usual_length_never_ask_the_catalog():
    def is_number(value: str) -> bool:
        raise AssertionError(value)

    numbers = Numbers()
    numbers.add(["9" * 18 + "." + "9" * 18, "-" + "0" * 18 + ".5", "-0"], is_number)
    numbers.add(["7"], is_number)
    above = OfAttribute(key="k", comparison="more", value="-0.5000000000000000000000000000001")
    assert numbers.compare(above, is_number).tolist() == [True, True, True, True]
    above_half = msgspec.structs.replace(above, value="-0.5")
    assert numbers.compare(above_half, is_number).tolist() == [True, False, True, True]


IS_SET = OfAttribute(key="k", comparison="is_set")


def evaluate(read: ParsedValues, query: OfAttribute, values: list[str], today: date) -> list[bool | None]:
    marks = {1: True, 0: False, -1: None}
    return [marks[mark] for mark in read.truth(query, values, today).tolist()]


def one_by_one(declared: AttributeType, query: OfAttribute, values: list[str], today: date) -> list[bool | None]:
    test = ValueTest(query, declared=declared, allowed_values=ALLOWED, today=today, zone=ZoneInfo(ZONE))
    return [test(value) for value in values]
