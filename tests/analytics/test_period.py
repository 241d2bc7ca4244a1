"""Periods, what they are compared with, and how they are divided."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.analytics.period import (
    COMPARES,
    PRESETS,
    UNITS,
    Period,
    comparison_of,
    parts_of,
    preset_period,
    read_period,
)

TODAY = date(2026, 11, 17)
DAYS = st.dates(date(2001, 1, 1), date(2026, 11, 17))


@pytest.mark.parametrize(
    ("preset", "first"),
    [
        ("7d", "2026-11-11"),
        ("month", "2026-11-01"),
        ("30d", "2026-10-19"),
        ("90d", "2026-08-20"),
        ("12m", "2025-11-18"),
    ],
)
def test_a_preset_ends_today(preset, first):
    assert preset_period(preset, TODAY) == Period(date.fromisoformat(first), TODAY, preset)


def test_a_form_that_repeats_the_days_of_a_preset_keeps_the_preset():
    found, faults = read_period({"period": "7d", "from": "2026-11-11", "to": "2026-11-17"}, TODAY)
    assert (found.preset, faults) == ("7d", {})
    found, faults = read_period({"period": "7d", "from": "2026-11-10", "to": "2026-11-17"}, TODAY)
    assert (found.preset, found.days, faults) == (None, 8, {})


@pytest.mark.parametrize(
    ("first", "last", "field", "words"),
    [
        ("1926-01-01", "2026-01-01", "from", "before 2000-01-01"),
        ("2001-01-01", "2026-01-01", "from", "at most five years"),
        ("2026-11-01", "2026-11-18", "to", "after today, 2026-11-17"),
        ("2026-11-10", "2026-11-01", "from", "begins after its end"),
        ("yesterday", "2026-11-01", "from", "such as 2026-11-16"),
        ("2026-11-01", "9999-99-99", "to", "such as 2026-11-16"),
        ("2026-11-01", "\x00", "to", "such as 2026-11-16"),
        ("0001-01-01", "9999-12-31", "to", "after today"),
    ],
)
def test_a_period_that_cannot_be_shown_is_refused_at_its_field(first, last, field, words):
    period, faults = read_period({"from": first, "to": last}, TODAY)
    assert words in faults[field]
    assert period == preset_period("30d", TODAY)


def test_the_same_weekdays_last_year_are_364_days_back():
    found = comparison_of(Period(date(2026, 11, 1), date(2026, 11, 14)), "weekdays")
    assert found is not None
    assert (found.period.first, found.period.last) == (date(2025, 11, 2), date(2025, 11, 15))
    assert date(2026, 11, 11).weekday() == found.compared_day_of(date(2026, 11, 11)).weekday()


def test_29_february_has_no_same_date_last_year():
    found = comparison_of(Period(date(2024, 2, 1), date(2024, 2, 29)), "dates")
    assert found is not None
    assert found.period == Period(date(2023, 2, 1), date(2023, 2, 28))
    assert found.compared_day_of(date(2024, 2, 29)) is None


def test_29_february_of_the_year_before_belongs_to_the_day_before_it():
    found = comparison_of(Period(date(2025, 2, 1), date(2025, 3, 31)), "dates")
    assert found is not None
    compared = [found.compared_part_of(Period(day, day)) for day in (date(2025, 2, 28), date(2025, 3, 1))]
    assert compared == [Period(date(2024, 2, 28), date(2024, 2, 29)), Period(date(2024, 3, 1), date(2024, 3, 1))]


@given(first=DAYS, days=st.integers(0, 1500), kind=st.sampled_from(COMPARES), unit=st.sampled_from(UNITS))
def test_parts_cover_a_period_once_and_every_compared_day_lies_in_the_compared_period(first, days, kind, unit):
    period = Period(first, first + timedelta(days=days))
    parts = parts_of(period, unit)
    assert [day for part in parts for day in part] == list(period)
    assert all(len({day.month for day in part}) == 1 for part in parts if unit == "month")
    assert all(part.days <= {"day": 1, "week": 7, "month": 31}[unit] for part in parts)
    found = comparison_of(period, kind)
    compared = [] if found is None else [found.compared_part_of(part) for part in parts]
    assert [day for part in compared if part for day in part] == ([] if found is None else list(found.period))
    past = [] if found is None else [found.compared_day_of(day) for day in period]
    assert all(day is None or day in found.period for day in past)
    assert len({day for day in past if day}) == sum(day is not None for day in past)


@given(today=st.dates(date(2001, 3, 1), date(2100, 1, 1)), preset=st.sampled_from(PRESETS))
def test_a_preset_has_no_fault_on_any_day(today, preset):
    period = preset_period(preset, today)
    given_days = {"period": preset, "from": period.first.isoformat(), "to": period.last.isoformat()}
    assert read_period(given_days, today) == (period, {})
    assert period.default_unit in period.units
