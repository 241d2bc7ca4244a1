from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from regulars.kit.clock import (
    DatabaseClock,
    format_timestamp,
    is_in_future,
    monotonic,
    parse_timestamp,
    start_of_last_days,
    truncate_to_milliseconds,
)

HOUR = timedelta(hours=1)

READ = {
    "2024-05-01T14:30:00Z": "2024-05-01T14:30:00.000Z",
    "2024-05-01t14:30:00z": "2024-05-01T14:30:00.000Z",
    "2024-05-01T14:30:00+02:00": "2024-05-01T12:30:00.000Z",
    "2024-05-01T14:30:00-00:00": "2024-05-01T14:30:00.000Z",
    "2024-12-31T23:59:59-23:59": "2025-01-01T23:58:59.000Z",
    "2024-02-29T00:00:00Z": "2024-02-29T00:00:00.000Z",
    "2024-05-01T14:30:00.1Z": "2024-05-01T14:30:00.100Z",
    "2024-05-01T14:30:00.1234Z": "2024-05-01T14:30:00.123Z",
    "2024-05-01T14:30:00.123456789Z": "2024-05-01T14:30:00.123Z",
    "2024-05-01T14:30:59.9999999Z": "2024-05-01T14:30:59.999Z",
    "1969-12-31T23:59:59.9999+00:00": "1969-12-31T23:59:59.999Z",
    "2024-05-01T14:30:00." + "9" * 500 + "Z": "2024-05-01T14:30:00.999Z",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00.000Z",
    "0001-01-01T00:00:00-01:00": "0001-01-01T01:00:00.000Z",
    "9999-12-31T23:59:59.999Z": "9999-12-31T23:59:59.999Z",
    # What Java's OffsetDateTime writes at a full minute.
    "2024-05-01T14:30Z": "2024-05-01T14:30:00.000Z",
    "2024-05-01T14:30+02:00": "2024-05-01T12:30:00.000Z",
    "2024-05-01T14:30:00,5Z": "2024-05-01T14:30:00.500Z",
    "2024-05-01T14:30:00,1239+02": "2024-05-01T12:30:00.123Z",
    "2024-05-01T14:30:00+0200": "2024-05-01T12:30:00.000Z",
    "2024-05-01T14:30:00-0530": "2024-05-01T20:00:00.000Z",
    "2024-05-01T14:30:00+02": "2024-05-01T12:30:00.000Z",
    "2024-05-01T14:30:00-2359": "2024-05-02T14:29:00.000Z",
    "20240501T143000Z": "2024-05-01T14:30:00.000Z",
    "20240501T1430Z": "2024-05-01T14:30:00.000Z",
    "20240501t143000.25+0200": "2024-05-01T12:30:00.250Z",
    "20240501T143000+02:00": "2024-05-01T12:30:00.000Z",
    "2024-05-01T24:00:00Z": "2024-05-02T00:00:00.000Z",
    "2024-12-31T24:00Z": "2025-01-01T00:00:00.000Z",
    "2024-05-01T24:00:00.000+02:00": "2024-05-01T22:00:00.000Z",
    "9999-12-31T24:00:00+02:00": "9999-12-31T22:00:00.000Z",
    "2016-12-31T23:59:60Z": "2016-12-31T23:59:59.999Z",
    "2017-01-01T00:59:60.5+01:00": "2016-12-31T23:59:59.999Z",
    "2024-05-01T14:30:60Z": "2024-05-01T14:30:59.999Z",
}
REFUSED = [
    "",
    "2024-05-01",
    "2024-05-01T14:30:00",
    "2024-05-01 14:30:00Z",
    "2024-05-01T14:30:00 Z",
    "2024-05-01T14:30:00Z ",
    "2024-05-01T14:30:00Z\n",
    "2024-05-01T14:30:00.Z",
    "2024-05-01T14:30:00+02:00:00",
    "2024-05-01T14:30:00+99:00",
    "2024-05-01T14:30:00+24:00",
    "2024-05-01T14:30:00+02:60",
    "2024-05-01T14:30:00.0+02:60",
    "2024-05-01T14:60:00Z",
    "2024-02-30T00:00:00Z",
    "2023-02-29T00:00:00+00:00",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "10000-01-01T00:00:00Z",
    "-2024-05-01T14:30:00Z",
    "2024-W18-3T14:30:00Z",
    "2024-122T14:30:00Z",
    "２０２４-05-01T14:30:00Z",
    "2024-05-01T14:30:0٣Z",
    "2024-05-01T14:30:00+0٢:00",
    "2024-05-01T1 :30:00Z",
    "2024-05-01T14:30:-1Z",
    "2024-05-01T14:30:00+ 2:00",
    "1714573800",
    "20240501",
    "2024-05-01T14:30",
    "20240501T143000",
    "2024-05-01T14Z",
    "2024-05-01T14.5Z",
    "2024-05-01T14:30.5Z",
    "2024-05-01T14:30:00,Z",
    "2024-05-01T14:30:00+2",
    "2024-05-01T14:30:00+020",
    "2024-05-01T14:30:00+2400",
    "2024-05-01T14:30:00+24",
    "2024-05-01T14:30:00+02:",
    "20240501T14:30:00Z",
    "2024-05-01T143000Z",
    "2024-0501T14:30:00Z",
    "202405-01T14:30:00Z",
    "2024-05-01T24:00:01Z",
    "2024-05-01T24:00:00.0001Z",
    "2024-05-01T24:00:60Z",
    "2024-05-01T24:01:00Z",
    "2024-05-01T25:00:00Z",
    "2024-05-01T14:30:61Z",
    "9999-12-31T24:00:00Z",
]


@pytest.mark.parametrize(("text", "expected"), READ.items())
def test_it_reads_iso_8601_as_utc_and_never_rounds(text, expected):
    moment = parse_timestamp(text)
    assert moment.utcoffset() == timedelta()
    assert format_timestamp(moment) == expected
    assert parse_timestamp(expected) == moment


@pytest.mark.parametrize("text", REFUSED)
def test_it_refuses_anything_else(text):
    with pytest.raises(ValueError, match=r"^\S"):
        parse_timestamp(text)


def test_the_quick_and_the_thorough_reading_agree():
    for hour, minute, second in ((0, 0, 0), (23, 59, 59), (12, 30, 1)):
        for offset in ("+00:00", "-00:30", "+14:00", "-23:59"):
            whole = f"2024-02-29T{hour:02}:{minute:02}:{second:02}"
            assert parse_timestamp(whole + offset) == parse_timestamp(f"{whole}.0{offset}")
            assert parse_timestamp(whole + "Z") == parse_timestamp(f"{whole}.000000Z")


def test_truncation_keeps_the_zone_and_drops_what_is_below_a_millisecond():
    zone = timezone(timedelta(hours=2))
    moment = datetime(2024, 5, 1, 14, 30, 0, 999_999, tzinfo=zone)
    assert truncate_to_milliseconds(moment) == datetime(2024, 5, 1, 14, 30, 0, 999_000, tzinfo=zone)
    before_the_epoch = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert truncate_to_milliseconds(before_the_epoch).microsecond == 999_000


def test_the_tolerance_itself_is_not_the_future_yet():
    now, tolerance = datetime(2026, 3, 10, 12, 0, tzinfo=UTC), timedelta(seconds=30)
    offsets = (timedelta(days=-7), timedelta(), tolerance, tolerance + timedelta(milliseconds=1))
    lie_ahead = [is_in_future(now + offset, now=now, tolerance=tolerance) for offset in offsets]
    assert lie_ahead == [False, False, False, True]


def hours_ahead(clock: DatabaseClock) -> object:
    return pytest.approx((clock.estimate_now() - datetime.now(UTC)) / HOUR, abs=0.1)


def test_the_database_s_clock_is_known_from_a_quick_answer():
    clock = DatabaseClock()
    assert not clock.is_fresh()
    for hours in (5, -5):
        clock.set(datetime.now(UTC) + hours * HOUR, queried_at=monotonic())
        assert hours_ahead(clock) == hours


def test_an_answer_that_took_long_leaves_a_clock_that_fits_it():
    clock = DatabaseClock()
    clock.set(datetime.now(UTC) + 5 * HOUR, queried_at=monotonic())
    # It was that much less half an hour ago.
    clock.set(datetime.now(UTC) + 4.5 * HOUR, queried_at=monotonic() - 3600)
    assert hours_ahead(clock) == 5


@pytest.mark.parametrize(("answered", "known"), [(6, 6), (3, 4)])
def test_an_answer_that_took_long_corrects_a_clock_that_does_not_fit_it(answered, known):
    clock = DatabaseClock()
    clock.set(datetime.now(UTC) + 5 * HOUR, queried_at=monotonic())
    clock.set(datetime.now(UTC) + answered * HOUR, queried_at=monotonic() - 3600)
    assert hours_ahead(clock) == known


def test_the_last_days_begin_at_a_local_midnight_and_today_is_one_of_them():
    paris = ZoneInfo("Europe/Paris")
    now = datetime(2026, 10, 26, 0, 30, tzinfo=UTC)
    assert start_of_last_days(1, now, paris) == datetime(2026, 10, 25, 23, 0, tzinfo=UTC)
    # The clocks went back the day before, so two days begin 25 hours earlier.
    assert start_of_last_days(2, now, paris) == datetime(2026, 10, 24, 22, 0, tzinfo=UTC)
