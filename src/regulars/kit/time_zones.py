"""Look up time zones by name and by country: every other module asks this one."""

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

UTC_NAME: Final = "UTC"
_MONTHS: Final = range(1, 13)
# The countries of names for which the time zone data has only a zone of another country with the same clocks.
_COUNTRIES_OF_SHARED_ZONES: Final = {
    "Africa/Asmera": "ER",
    "Africa/Timbuktu": "ML",
    "America/Coral_Harbour": "CA",
    "America/Virgin": "VI",
    "Atlantic/Jan_Mayen": "SJ",
    "Iceland": "IS",
    "Pacific/Ponape": "FM",
    "Pacific/Truk": "FM",
    "Pacific/Yap": "FM",
}


@cache
def time_zones() -> tuple[str, ...]:
    """The time zones to choose from; the zone data also has abbreviations such as `EST`."""
    return (*sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/")), UTC_NAME)


@cache
def read_zone(name: str) -> ZoneInfo | None:
    """The time zone with this name; None if the time zone data of this machine does not have it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def find_zone(name: str) -> ZoneInfo:
    """The time zone of an organization; UTC if the time zone data of this machine no longer has the zone that the
    organization chose."""
    return read_zone(name) or ZoneInfo(UTC_NAME)


@cache
def zones_by_country() -> dict[str, tuple[str, ...]]:
    """The zones of each country by its ISO 3166 code, from the table that comes with the time zone data."""
    zones: dict[str, tuple[str, ...]] = {}
    for line in _read_lines("zone.tab"):
        if line and not line.startswith("#"):
            country, _, zone = line.split("\t")[:3]
            zones[country] = (*zones.get(country, ()), zone)
    return zones


def country_of(zone: str) -> str | None:
    """The country of a zone, also by an old name such as `Asia/Calcutta`, which browsers still send."""
    countries = _countries_by_zone()
    return countries.get(zone) or countries.get(_zones_by_old_name().get(zone, ""))


def has_zone(country: str, zone: str) -> bool:
    """Whether the zone is one of the country; true for a country that the table does not have."""
    return country not in zones_by_country() or country_of(zone) == country


def default_zone(country: str, *, year: int) -> str | None:
    """The zone of a country; None if the table does not have it, or if its clocks show several times."""
    zones = zones_by_country().get(country, ())
    return zones[0] if len({_offsets(zone, year) for zone in zones}) == 1 else None


def shows_utc(country: str, *, year: int) -> bool:
    """Whether clocks in a part of the country show UTC in summer and in winter."""
    return any(not any(_offsets(zone, year)) for zone in zones_by_country().get(country, ()))


@cache
def _countries_by_zone() -> dict[str, str]:
    by_zone = {zone: country for country, zones in zones_by_country().items() for zone in zones}
    return by_zone | _COUNTRIES_OF_SHARED_ZONES


@cache
def _zones_by_old_name() -> dict[str, str]:
    """The zones by their other names, from the lines `L zone name` of the source of the time zone data."""
    links = (line.split() for line in _read_lines("tzdata.zi") if line.startswith("L "))
    return {name: zone for _, zone, name in links}


def _read_lines(file: str) -> list[str]:
    return resources.files("tzdata.zoneinfo").joinpath(file).read_text(encoding="utf-8").splitlines()


@cache
def _offsets(zone: str, year: int) -> tuple[timedelta, ...]:
    """How far the clocks of a zone are from UTC in each month of the year."""
    moments = (datetime(year, month, 1, tzinfo=UTC).astimezone(ZoneInfo(zone)) for month in _MONTHS)
    return tuple(moment.utcoffset() or timedelta(0) for moment in moments)
