"""Guess the country and time zone of a visitor, as defaults in a form."""

from functools import cache
from typing import NamedTuple

import phonenumbers
from babel import Locale
from babel.core import get_global

from regulars.organizations.settings import time_zones

UTC = "UTC"


class Guess(NamedTuple):
    country: str
    time_zone: str


class ZoneChoice(NamedTuple):
    """A time zone as a choice of a form, with its country."""

    name: str
    label: str
    country: str


@cache
def countries() -> tuple[tuple[str, str], ...]:
    """Code and English name of every country that has phone numbers, sorted by name."""
    names = Locale("en").territories
    found = [(code, str(names[code])) for code in phonenumbers.SUPPORTED_REGIONS if code in names]
    return tuple(sorted(found, key=lambda pair: pair[1]))


@cache
def zones() -> tuple[ZoneChoice, ...]:
    territories = get_global("zone_territories")
    return tuple(ZoneChoice(name, name.replace("_", " "), territories.get(name, "")) for name in time_zones())


def guess(accept_language: str) -> Guess:
    """Use the first language of the browser that names a country, as in `fr-CH,fr;q=0.9`. A script in the page knows
    the time zone and corrects both."""
    known = dict(countries())
    for language in accept_language.split(","):
        _, _, country = language.partition(";")[0].strip().upper().partition("-")
        if country in known:
            named = [zone for zone in get_global("territory_zones").get(country, ()) if zone in time_zones()]
            return Guess(country, named[0] if named else UTC)
    return Guess("", UTC)
