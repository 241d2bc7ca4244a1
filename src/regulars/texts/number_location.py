"""Find the country of a phone number, and all time zones in which its owner may be."""

from functools import cache, lru_cache
from typing import Final, NamedTuple

import phonenumbers
from phonenumbers import timezone as number_zones

from regulars.kit.time_zones import zones_by_country

_UNKNOWN_ZONE: Final = number_zones.UNKNOWN_TIMEZONE
NUMBERS_CACHED_MAX: Final = 16_384
# The mobile numbers that Ofcom reserves for films and examples, 07700 900000 to 900999: the library's tables lack them.
_OFCOM_RESERVED: Final = "+447700900"


class NumberLocation(NamedTuple):
    """`country` is None, and there are no zones, if a number belongs to no country, such as a satellite telephone.

    A mobile number has no region; the caller sets `region` to that of the store where consent was given.
    """

    country: str | None
    zones: tuple[str, ...]
    region: str | None = None


def find_country(phone_number: str) -> str | None:
    """The country of an E.164 number by the library's tables of assigned ranges; None if no table has the number.

    Segment conditions and counts use this function. `locate_number` falls back on the calling code, because sending
    needs a country.
    """
    digits = phone_number.removeprefix("+")
    by_code = _countries_by_calling_code()
    # No calling code is a prefix of another one.
    country = by_code.get(digits[:1]) or by_code.get(digits[:2]) or by_code.get(digits[:3])
    if country is not None:
        return country
    if phone_number.startswith(_OFCOM_RESERVED):
        return "GB"
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone_number, None))
    except phonenumbers.NumberParseException:
        return None


@cache
def _countries_by_calling_code() -> dict[str, str]:
    """The country of each calling code that only one country has: the digits after this code do not matter."""
    return {
        str(code): countries[0]
        for code, countries in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items()
        if len(countries) == 1
    }


@lru_cache(maxsize=NUMBERS_CACHED_MAX)
def locate_number(phone_number: str) -> NumberLocation:
    """Country and zones of an E.164 number; if its zone is unknown, all zones of its country."""
    digits = phone_number.removeprefix("+")
    by_code = _locations_by_calling_code()
    # No calling code is a prefix of another one.
    return (
        by_code.get(digits[:1]) or by_code.get(digits[:2]) or by_code.get(digits[:3]) or locate_by_tables(phone_number)
    )


def locate_by_tables(phone_number: str) -> NumberLocation:
    """The location by the library's tables, which takes a hundred times as long as by the calling code."""
    number = phonenumbers.parse(phone_number, None)
    country = phonenumbers.region_code_for_number(number)
    if country is None and number.country_code is not None:
        # The tables of assigned ranges, which may be outdated, do not have the number: use the main country of its
        # calling code.
        country = phonenumbers.region_code_for_country_code(number.country_code)
    if country not in zones_by_country():
        return NumberLocation(None, ())
    zones = tuple(zone for zone in number_zones.time_zones_for_number(number) if zone != _UNKNOWN_ZONE)
    return NumberLocation(country, zones or zones_by_country()[country])


@cache
def _locations_by_calling_code() -> dict[str, NumberLocation]:
    """The location of each calling code that only one country with one time zone has, such as +33 of France."""
    zones = zones_by_country()
    return {
        str(code): NumberLocation(countries[0], zones[countries[0]])
        for code, countries in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items()
        if len(countries) == 1 and len(zones.get(countries[0], ())) == 1
    }
