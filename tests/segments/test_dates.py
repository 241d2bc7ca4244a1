"""Dates of many customers at once are what the catalog reads one by one."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regulars.catalog.model import AttributeType, day_of, interpret
from regulars.segments.analysis.engine.calendar import EPOCH_ORDINAL, NO_DAY, Zone, read_days

ZONES = ["UTC", "Europe/Paris", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"]
YEARS_OF_CHANGES = [1883, 1891, 1892, 1895, 1911, 1918, 1981, 2011, 2024]
YEARS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))  # noqa: DTZ001  # the zone is written behind
SPELLINGS = st.one_of(
    st.dates().map(str),
    st.builds("{:%H:%M:%S}Z".format, YEARS).map("2024-02-29T".__add__),
    st.builds(
        lambda moment, end: f"{moment.isoformat(timespec='seconds')}{end}",
        YEARS,
        st.sampled_from(
            ["Z", "+00:00", "+14:00", "-09:30", "+23:59", "-24:00", "+05:60", "z", ".5Z", ".1234567+01:00"]
        ),
    ),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?", fullmatch=True),
    st.text("0123456789-:TZ+٣é", min_size=9, max_size=25),
)


def by_the_catalog(zone: str):
    def read(value: str) -> int:
        found = interpret(AttributeType.DATE, value)
        return day_of(found, ZoneInfo(zone)).toordinal() - EPOCH_ORDINAL if isinstance(found, date) else NO_DAY

    return read


@settings(max_examples=60, deadline=None)
@given(st.lists(SPELLINGS, max_size=30), st.sampled_from(ZONES))
def test_many_dates_are_read_as_the_catalog_reads_one(values, zone):
    one_by_one = by_the_catalog(zone)
    assert read_days(values, Zone(zone), one_by_one).tolist() == [one_by_one(value) for value in values]


def test_the_usual_spelling_never_asks_the_catalog():
    def ask(value: str) -> int:
        raise AssertionError(value)

    values = ["2024-02-29", "2024-02-29T23:15:00Z", "2024-02-29T23:15:00-05:30", "1912-06-30T00:00:00+01:00"]
    found = read_days(values, Zone("Europe/Paris"), ask)
    assert [str(date.fromordinal(day + EPOCH_ORDINAL)) for day in found.tolist()] == [
        "2024-02-29",
        "2024-03-01",
        "2024-03-01",
        "1912-06-29",
    ]


@pytest.mark.parametrize("zone", ["Europe/Paris", "Pacific/Apia", "America/New_York", "Australia/Lord_Howe"])
def test_days_are_those_of_the_zone_around_every_change_of_its_offset(zone):
    """Also where it changed within a minute that is not round, or left out a day."""
    days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day) for year in YEARS_OF_CHANGES for day in range(366)]
    moments = [day for day in days if _offset(day, zone) != _offset(day + timedelta(days=1), zone)]
    moments = [moment + timedelta(seconds=step) for moment in moments for step in range(0, 86_400, 601)]
    seconds = np.array([int(moment.timestamp()) for moment in moments])
    expected = [moment.astimezone(ZoneInfo(zone)).date().toordinal() - EPOCH_ORDINAL for moment in moments]
    assert Zone(zone).days(seconds).tolist() == expected


def _offset(moment: datetime, zone: str) -> timedelta | None:
    return moment.astimezone(ZoneInfo(zone)).utcoffset()
