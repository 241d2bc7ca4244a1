"""Dates of many customers at once are what the catalog reads one by one."""

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from regulars.catalog.model import AttributeType, day_of, interpret
from regulars.columns.engine.calendar import EPOCH_ORDINAL, NO_DAY, Zone, read_days

ZONES = ["UTC", "Europe/Paris", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"]
YEARS_OF_CHANGES = [1883, 1891, 1892, 1895, 1911, 1918, 1981, 2011, 2024]
ENDS = ["Z", "Z", "+00:00", "+14:00", "-09:30", "+23:59", "-24:00", "+05:60", "z", ".5Z", ".1234567+01:00"]
CHARACTERS = "0123456789-:TZ+٣é"


def spelling(chance: random.Random) -> str:
    """A day or a moment of any year, often at its edges, some with a character that does not belong there."""
    day = date.fromordinal(chance.choice([1, date.max.toordinal(), chance.randint(1, date.max.toordinal())]))
    clock = f"{chance.randint(0, 24):02}:{chance.choice([0, 30, 59, 60]):02}:{chance.choice([0, 59, 60]):02}"
    text = chance.choice([str(day), f"{day}T{clock}{chance.choice(ENDS)}", f"2024-02-29T{clock}Z"])
    where = chance.randrange(len(text))
    wrong = text[:where] + chance.choice(CHARACTERS) + text[where + 1 :]
    return chance.choice([text, text, wrong, "".join(chance.choices(CHARACTERS, k=chance.randint(9, 25)))])


def by_the_catalog(zone: str):
    def read(value: str) -> int:
        found = interpret(AttributeType.DATE, value)
        return day_of(found, ZoneInfo(zone)).toordinal() - EPOCH_ORDINAL if isinstance(found, date) else NO_DAY

    return read


@pytest.mark.parametrize("zone", ZONES)
def test_many_dates_are_read_as_the_catalog_reads_one(zone):
    one_by_one, chance = by_the_catalog(zone), random.Random(zone)
    values = [spelling(chance) for _ in range(1_000)]
    assert read_days([], Zone(zone), one_by_one).tolist() == []
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
