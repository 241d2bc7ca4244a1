"""Public holidays of a period in the countries of the stores."""

from datetime import date

from regulars.analytics.holidays import _compute_holidays
from regulars.analytics.period import Period

NOVEMBER = Period(date(2026, 11, 1), date(2026, 11, 14))
YEAR_BEFORE = Period(date(2025, 11, 2), date(2025, 11, 15))


def test_a_holiday_of_all_countries_has_no_country_and_others_name_theirs():
    assert _compute_holidays(["FR"], [NOVEMBER]) == {
        date(2026, 11, 1): "All Saints' Day",
        date(2026, 11, 11): "Armistice Day",
    }
    found = _compute_holidays(["BE", "DE", "FR"], [NOVEMBER, YEAR_BEFORE])
    assert found[date(2026, 11, 11)] == found[date(2025, 11, 11)] == "Armistice Day (BE, FR)"


def test_a_country_without_a_calendar_has_no_holidays():
    assert _compute_holidays(["XX"], [NOVEMBER]) == {}
