from datetime import UTC, datetime, timedelta

import pytest

from regulars.messaging.hours import Rule, Window, holidays_of, next_opening
from regulars.messaging.places import place_of
from regulars.messaging.rules import Cap, default_rule, looser_caps, looser_than_default

PARIS = "+33612345678"
BERLIN = "+491701234567"
ZURICH = "+41791234567"
NEW_YORK, LOS_ANGELES, HONOLULU = "+12125551234", "+14155550000", "+18085550000"
NO_ZONE = "+12005551234"


def opening(number: str, moment: str):
    country, zones = place_of(number)
    return next_opening(default_rule(country), country, zones, datetime.fromisoformat(moment).astimezone(UTC))


@pytest.mark.parametrize(
    ("number", "moment", "opens"),
    [
        # An ordinary Monday in Paris, before, within and after the hours.
        (PARIS, "2026-11-16T07:59:59+01:00", "2026-11-16T08:00+01:00"),
        (PARIS, "2026-11-16T12:00:00+01:00", "2026-11-16T12:00+01:00"),
        (PARIS, "2026-11-16T20:00:00+01:00", "2026-11-17T08:00+01:00"),
        # Sunday, and the Saturday before it after closing time.
        (PARIS, "2026-11-15T10:00:00+01:00", "2026-11-16T08:00+01:00"),
        (PARIS, "2026-11-14T20:30:00+01:00", "2026-11-16T08:00+01:00"),
        # Clocks go back on 25 October and forward on 29 March; eight o'clock stays eight o'clock.
        (PARIS, "2026-10-24T21:00:00+02:00", "2026-10-26T08:00+01:00"),
        (PARIS, "2026-03-28T21:00:00+01:00", "2026-03-30T08:00+02:00"),
        # Christmas and, in Alsace, the day after; 27 December 2026 is a Sunday.
        (PARIS, "2026-12-25T10:00:00+01:00", "2026-12-28T08:00+01:00"),
        # Good Friday is a holiday in Alsace, Easter Monday everywhere.
        (PARIS, "2026-04-02T20:00:00+02:00", "2026-04-04T08:00+02:00"),
        (PARIS, "2026-04-05T12:00:00+02:00", "2026-04-07T08:00+02:00"),
        (BERLIN, "2026-04-03T12:00:00+02:00", "2026-04-04T08:00+02:00"),
        (BERLIN, "2026-12-24T20:00:00+01:00", "2026-12-28T08:00+01:00"),
        # Corpus Christi is a holiday in some states only: the number does not say in which one it is.
        (BERLIN, "2026-06-04T12:00:00+02:00", "2026-06-05T08:00+02:00"),
        (ZURICH, "2026-08-01T12:00:00+02:00", "2026-08-03T08:00+02:00"),
        (ZURICH, "2026-12-26T12:00:00+01:00", "2026-12-28T08:00+01:00"),
        # Thanksgiving, and three area codes on an ordinary Monday.
        (NEW_YORK, "2026-11-26T12:00:00-05:00", "2026-11-27T10:00-05:00"),
        (NEW_YORK, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-05:00"),
        (LOS_ANGELES, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-08:00"),
        (HONOLULU, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-10:00"),
        (NEW_YORK, "2026-11-21T17:00:00-05:00", "2026-11-23T10:00-05:00"),
        # Somewhere in the United States: it opens when the last zone opens, in Hawaii.
        (NO_ZONE, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-10:00"),
    ],
)
def test_a_text_waits_for_the_next_opening_of_its_number(number, moment, opens):
    assert opening(number, moment).at == datetime.fromisoformat(opens)


def test_it_says_when_the_hours_end():
    assert opening(PARIS, "2026-11-16T12:00:00+01:00").closes_at == datetime.fromisoformat("2026-11-16T20:00+01:00")
    assert opening(NO_ZONE, "2026-11-16T15:30:00-05:00").closes_at == datetime.fromisoformat("2026-11-16T18:00-05:00")


def test_a_number_that_may_lie_in_zones_that_are_never_open_together_finds_no_opening():
    assert opening("+18005551234", "2026-11-16T12:00:00-05:00").at is None


def test_a_number_of_no_country_has_no_zone():
    assert place_of("+881612345678") == (None, ())


def test_nothing_opens_after_96_hours():
    closed = Rule(days=(None,) * 6 + (Window(480, 1200),))
    monday = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert next_opening(closed, "FR", ("Europe/Paris",), monday).at is None
    assert next_opening(closed, "FR", ("Europe/Paris",), monday + timedelta(days=2)).at is not None


def test_holidays_are_those_of_all_regions_but_only_federal_ones_in_the_united_states():
    assert "2026-12-26" in {day.isoformat() for day in holidays_of("FR", 2026)}
    assert len(holidays_of("US", 2026)) < 15


def test_a_looser_rule_is_named():
    sunday = Rule(days=(Window(420, 1260), *[Window(480, 1200)] * 6), on_holidays=True)
    assert looser_than_default("FR", sunday) == [
        "Monday is open from 8:00 to 20:00 by default in FR.",
        "Sunday is closed by default in FR.",
        "No text is sent on public holidays by default in FR.",
    ]
    assert looser_than_default("FR", default_rule("FR")) == []


def test_a_looser_cap_is_named():
    assert looser_caps((Cap(1, 24), Cap(4, 720))) == []
    assert looser_caps((Cap(1, 24),)) == ["The default is at most 4 in 720 hours to one number."]
    assert len(looser_caps((Cap(3, 24), Cap(9, 720)))) == 2
