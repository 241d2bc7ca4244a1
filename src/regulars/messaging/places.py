"""Where a number may be: its country, and every time zone it may lie in."""

from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

import phonenumbers
from phonenumbers import timezone as number_zones

_UNKNOWN_ZONE: Final = number_zones.UNKNOWN_TIMEZONE
NUMBERS_REMEMBERED: Final = 16_384


class Place(NamedTuple):
    """`country` is None, and there are no zones, where a number belongs to no country (a satellite telephone).

    No number of a mobile telephone names its region; `region` comes from the store where consent was given.
    """

    country: str | None
    zones: tuple[str, ...]
    region: str | None = None


@lru_cache(maxsize=NUMBERS_REMEMBERED)
def place_of(phone_number: str) -> Place:
    """Country and zones of an E.164 number; where the zone is unknown, all zones of its country."""
    digits = phone_number.removeprefix("+")
    known = _places_by_calling_code()
    # No calling code is the beginning of another.
    return known.get(digits[:1]) or known.get(digits[:2]) or known.get(digits[:3]) or read_place(phone_number)


def read_place(phone_number: str) -> Place:
    """The same by the tables of number ranges and of zones, which takes some hundred times as long."""
    number = phonenumbers.parse(phone_number, None)
    country = phonenumbers.region_code_for_number(number)
    if country is None and number.country_code is not None:
        # Not in the tables of assigned ranges, which age: the main country of its calling code decides.
        country = phonenumbers.region_code_for_country_code(number.country_code)
    if country not in zones_by_country():
        return Place(None, ())
    zones = tuple(zone for zone in number_zones.time_zones_for_number(number) if zone != _UNKNOWN_ZONE)
    return Place(country, zones or zones_by_country()[country])


@cache
def _places_by_calling_code() -> dict[str, Place]:
    """Calling codes of one country that has one zone, such as France: the rest of the number says nothing more."""
    zones = zones_by_country()
    return {
        str(code): Place(countries[0], zones[countries[0]])
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
