"""One value against one comparison: by type, by calendar day, and never an error."""

from datetime import date
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.project import ROOT

from regulars.catalog.model import AttributeType, spell
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, ValueTest, anniversary_in, days_of, holds_on
from regulars.conditions.tree import OfAttribute, When, Window

TEXT, NUMBER, BOOLEAN, DATE, CURRENCY, ENUM = AttributeType
TODAY = date(2026, 11, 15)
PARIS = ZoneInfo("Europe/Paris")


def ask(declared, comparison, value, *wanted, days=None, without_value=None, zone=PARIS, today=TODAY):
    several = comparison in {"any_of", "none_of", "between"}
    asked = OfAttribute(
        key="k",
        comparison=comparison,
        value=wanted[0] if wanted and not several else None,
        values=wanted if several else (),
        days=days,
        without_value=without_value,
    )
    test = ValueTest(asked, declared=declared, allowed_values=("Gold", "Blue"), today=today, zone=zone)
    return test(value)


@pytest.mark.parametrize(
    ("declared", "comparison", "value", "wanted", "answer"),
    [
        (TEXT, "is", "LYON", ("lyon",), True),
        (TEXT, "is", "Cafe\u0301", ("café",), True),
        (TEXT, "is", "cafe", ("café",), False),
        (TEXT, "is", "STRASSE", ("straße",), True),
        (TEXT, "is_not", "Lyon", ("Paris",), True),
        (TEXT, "contains", "Lin lavé", ("LAVÉ",), True),
        (TEXT, "starts_with", "Lin lavé", ("lavé",), False),
        (TEXT, "any_of", "b", ("A", "B"), True),
        (TEXT, "is_set", "", (), True),
        (NUMBER, "is", "1.50", ("1.5",), True),
        (NUMBER, "is_not", "2", ("1.5",), True),
        (NUMBER, "is_not", "two", ("1.5",), None),
        (NUMBER, "less", "-1", ("0",), True),
        (NUMBER, "at_most", "0", ("0",), True),
        (NUMBER, "more", "0", ("0",), False),
        (NUMBER, "at_least", "9007199254740993", ("9007199254740993",), True),
        (NUMBER, "more", "9007199254740993", ("9007199254740992",), True),
        (CURRENCY, "between", "200", ("200", "1500"), True),
        (CURRENCY, "between", "1500.01", ("200", "1500"), False),
        (NUMBER, "is_set", "n/a", (), None),
        (NUMBER, "is_not_set", "n/a", (), None),
        (BOOLEAN, "is", "true", ("true",), True),
        (BOOLEAN, "is", " true", ("false",), False),
        (BOOLEAN, "is", "no", ("false",), None),
        (ENUM, "any_of", "Gold", ("Gold",), True),
        (ENUM, "none_of", "Blue", ("Gold",), True),
        (ENUM, "none_of", "gold", ("Gold",), False),
        (ENUM, "any_of", "GOLD", ("Gold",), True),
        (ENUM, "none_of", "Bronze", ("Gold",), None),
        (ENUM, "is", " Gold ", ("gold",), True),
        (ENUM, "is_not", "Blue", ("GOLD",), True),
        (TEXT, "none_of", " b ", ("A", "B"), False),
        (TEXT, "is", " Lyon", ("lyon  ",), True),
        (TEXT, "starts_with", "  Lin lavé", (" lin ",), True),
        (NUMBER, "is", " 12 ", ("12",), True),
        (DATE, "between", " 2026-11-01", ("2026-10-31T23:30:00Z", "2026-11-02"), True),
        (DATE, "before", "2026-11-14", ("2026-11-15",), True),
        (DATE, "before", "2026-11-15", ("2026-11-15",), False),
        (DATE, "after", "2026-11-15T22:59:59Z", ("2026-11-15",), False),
        (DATE, "after", "2026-11-15T23:00:00Z", ("2026-11-15",), True),
        (DATE, "between", "2026-11-01", ("2026-11-01", "2026-11-02"), True),
        (DATE, "between", "2026-11-03", ("2026-11-01", "2026-11-02"), False),
    ],
)
def test_a_value_is_compared_by_its_type(declared, comparison, value, wanted, answer):
    assert ask(declared, comparison, value, *wanted, without_value=False) is answer


@pytest.mark.parametrize(
    ("comparison", "days", "value", "answer"),
    [
        ("in_last_days", 1, "2026-11-15", True),
        ("in_last_days", 1, "2026-11-14", False),
        ("in_last_days", 7, "2026-11-09", True),
        ("in_last_days", 7, "2026-11-08", False),
        ("in_last_days", 7, "2026-11-16", False),
        ("not_in_last_days", 7, "2026-11-08", True),
        ("not_in_last_days", 7, "2026-11-15", False),
        ("in_next_days", 1, "2026-11-14", False),
        ("in_next_days", 2, "2026-11-16", True),
        ("in_next_days", 2, "2026-11-17", False),
        ("anniversary_in_next_days", 1, "1980-11-15", True),
        ("anniversary_in_next_days", 7, "1980-11-21", True),
        ("anniversary_in_next_days", 7, "1980-11-22", False),
        ("anniversary_in_next_days", 60, "1980-01-03", True),
        ("anniversary_in_next_days", 7, "1980-11-14", False),
    ],
)
def test_n_days_are_n_calendar_days_and_today_is_one_of_them(comparison, days, value, answer):
    assert ask(DATE, comparison, value, days=days, without_value=False) is answer


def test_a_date_without_a_time_is_that_day_everywhere():
    for zone in ("Pacific/Kiritimati", "Pacific/Niue", "UTC"):
        assert ask(DATE, "in_last_days", "2026-11-15", days=1, zone=ZoneInfo(zone)) is True
    assert ask(DATE, "in_last_days", "2026-11-14T12:00:00Z", days=1, zone=ZoneInfo("Pacific/Kiritimati")) is True
    assert ask(DATE, "in_last_days", "2026-11-14T12:00:00Z", days=1, zone=ZoneInfo("UTC")) is False


def test_the_first_and_the_last_moments_there_are_do_no_harm():
    assert ask(DATE, "before", "0001-01-01T00:00:00Z", "2026-01-01", zone=ZoneInfo("America/Bogota")) is True
    assert ask(DATE, "after", "9999-12-31T23:59:59Z", "2026-01-01", zone=ZoneInfo("Asia/Tokyo")) is True


def test_the_29th_of_february_is_the_28th_in_other_years():
    assert anniversary_in(date(1996, 2, 29), 2027) == date(2027, 2, 28)
    assert anniversary_in(date(1996, 2, 29), 2028) == date(2028, 2, 29)
    assert ask(DATE, "anniversary_in_next_days", "1996-02-29", days=1, today=date(2027, 2, 28)) is True
    assert ask(DATE, "anniversary_in_next_days", "1996-02-29", days=1, today=date(2028, 2, 28)) is False
    assert ask(DATE, "anniversary_in_next_days", "1996-02-29", days=1, today=date(2028, 2, 29)) is True


WANTED = {
    NUMBER: ("1", "2"),
    CURRENCY: ("1", "2"),
    DATE: ("2026-01-01", "2026-01-02"),
    ENUM: ("Gold",),
    BOOLEAN: ("true",),
}
PAIRS = [(declared, it) for declared, offered in COMPARISONS_BY_TYPE.items() for it in sorted(offered)]


@pytest.mark.parametrize(("declared", "comparison"), PAIRS)
def test_a_customer_without_a_value_matches_only_where_the_condition_says_so(declared, comparison):
    given = WANTED.get(declared, ("a",))
    for without in (True, False):
        expected = comparison == "is_not_set" or (comparison in NEGATIVE and without)
        assert ask(declared, comparison, None, *given, days=1, without_value=without) is expected


@given(st.sampled_from(PAIRS), st.text(max_size=12))
def test_no_value_is_ever_an_error(offered, value):
    declared, comparison = offered
    answer = ask(declared, comparison, value, *WANTED.get(declared, ("a",)), days=1, without_value=True)
    assert answer in {True, False, None}


@pytest.mark.parametrize(
    ("value", "spelled"),
    [("x", "x"), (True, "true"), (False, "false"), (12, "12"), (1.5, "1.5"), (1e21, "1" + "0" * 21), (1e-7, "0.0000001"), (3.0, "3"), (100.0, "100")],
)  # fmt: skip
def test_properties_are_spelled_in_plain_decimals(value, spelled):
    assert spell(value) == spelled


def test_a_day_or_its_absence_is_held_against_a_comparison():
    ago = When(comparison="not_in_last_days", days=60, without_value=True)
    assert holds_on(ago, None, TODAY)
    assert not holds_on(msgspec.structs.replace(ago, without_value=False), None, TODAY)
    assert not holds_on(ago, date(2026, 9, 17), TODAY)
    assert holds_on(ago, date(2026, 9, 16), TODAY)
    assert not holds_on(When(comparison="before", date=TODAY), None, TODAY)
    assert holds_on(When(comparison="between", from_=TODAY, to=TODAY), TODAY, TODAY)


def test_a_window_has_two_ends():
    assert days_of(None, TODAY) == (date.min, date.max)
    assert days_of(Window(last_days=60), TODAY) == (date(2026, 9, 17), TODAY)
    assert days_of(Window(from_=date(2026, 1, 1), to=date(2026, 1, 31)), TODAY) == (date(2026, 1, 1), date(2026, 1, 31))


def read_operator_table() -> dict[str, tuple[set[str], str]]:
    """Each operator in the docs, with the types that offer it and the answer for a customer without a value."""
    section = (ROOT / "docs" / "conditions.md").read_text().partition("## Operators")[2].partition("\n\n| rule")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line[:3]]
    every = {declared.value.lower() for declared in AttributeType}
    return {
        operator.strip("`"): (every if types == "all" else set(types.split(", ")), without_value)
        for operators, types, _, without_value in rows
        for operator in operators.split(", ")
    }


def test_the_docs_state_the_types_and_the_missing_value_of_every_operator():
    offered = {
        comparison: {declared.value.lower() for declared, offers in COMPARISONS_BY_TYPE.items() if comparison in offers}
        for offers in COMPARISONS_BY_TYPE.values()
        for comparison in offers
    }
    table = read_operator_table()
    assert {operator: types for operator, (types, _) in table.items()} == offered
    for operator, (_, without_value) in table.items():
        is_stated = operator in NEGATIVE
        expected = "as `without_value` says" if is_stated else "yes" if operator == "is_not_set" else "no"
        assert (operator, without_value) == (operator, expected)
