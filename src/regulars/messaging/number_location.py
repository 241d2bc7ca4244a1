"""Where a number may be: its country, and all time zones it may lie in."""

from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

import phonenumbers
from phonenumbers import timezone as number_zones

_UNKNOWN_ZONE: Final = number_zones.UNKNOWN_TIMEZONE
NUMBERS_CACHED: Final = 16_384


class NumberLocation(NamedTuple):
    """`country` is None, and there are no zones, where a number belongs to no country (a satellite telephone).

    A mobile number does not name its region; `region` is that of the store where consent was given.
    """

    country: str | None
    zones: tuple[str, ...]
    region: str | None = None


def find_country(phone_number: str) -> str | None:
    """The country of an E.164 number by the tables of assigned ranges; None where it is in none of them.

    Conditions and counts use it. `locate_number` falls back on the calling code, because a text must have a country.
    """
    digits = phone_number.removeprefix("+")
    by_code = _countries_by_calling_code()
    # No calling code is the beginning of another.
    country = by_code.get(digits[:1]) or by_code.get(digits[:2]) or by_code.get(digits[:3])
    if country is not None:
        return country
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone_number, None))
    except phonenumbers.NumberParseException:
        return None


@cache
def _countries_by_calling_code() -> dict[str, str]:
    """Calling codes of one country: the rest of the number adds nothing."""
    return {
        str(code): countries[0]
        for code, countries in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items()
        if len(countries) == 1
    }


@lru_cache(maxsize=NUMBERS_CACHED)
def locate_number(phone_number: str) -> NumberLocation:
    """Country and zones of an E.164 number; where the zone is unknown, all zones of its country."""
    digits = phone_number.removeprefix("+")
    by_code = _locations_by_calling_code()
    # No calling code is the beginning of another.
    return (
        by_code.get(digits[:1]) or by_code.get(digits[:2]) or by_code.get(digits[:3]) or locate_by_tables(phone_number)
    )


def locate_by_tables(phone_number: str) -> NumberLocation:
    """The same from the tables of number ranges and zones, which takes about a hundred times as long."""
    number = phonenumbers.parse(phone_number, None)
    country = phonenumbers.region_code_for_number(number)
    if country is None and number.country_code is not None:
        # Not in the tables of assigned ranges, which age: the main country of its calling code decides.
        country = phonenumbers.region_code_for_country_code(number.country_code)
    if country not in zones_by_country():
        return NumberLocation(None, ())
    zones = tuple(zone for zone in number_zones.time_zones_for_number(number) if zone != _UNKNOWN_ZONE)
    return NumberLocation(country, zones or zones_by_country()[country])


@cache
def _locations_by_calling_code() -> dict[str, NumberLocation]:
    """Calling codes of one country with one zone, such as France: the rest of the number adds nothing."""
    zones = zones_by_country()
    return {
        str(code): NumberLocation(countries[0], zones[countries[0]])
        for code, countries in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items()
        if len(countries) == 1 and len(zones.get(countries[0], ())) == 1
    }


@cache
def zones_by_country() -> dict[str, tuple[str, ...]]:
    """ISO 3166 code to its zones, from the table that comes with the time zone data."""
    table = resources.files("tzdata.zoneinfo").joinpath("zone.tab").read_text(encoding="utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in table.splitlines():
        if line and not line.startswith("#"):
            country, _, zone = line.split("\t")[:3]
            found[country] = (*found.get(country, ()), zone)
    return found
