"""Guess the country and time zone of a visitor from their browser's languages, as defaults in a form."""

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
    """Return code and English name of every country that has phone numbers, sorted by name."""
    names = Locale("en").territories
    named_countries = [(code, str(names[code])) for code in phonenumbers.SUPPORTED_REGIONS if code in names]
    return tuple(sorted(named_countries, key=lambda pair: pair[1]))


@cache
def zones() -> tuple[ZoneChoice, ...]:
    territories = get_global("zone_territories")
    return tuple(ZoneChoice(name, name.replace("_", " "), territories.get(name, "")) for name in time_zones())


def guess_location(accept_language: str) -> Guess:
    """Use the first language of the browser that names a country, as in `fr-CH,fr;q=0.9`. A script in the page knows
    the time zone and corrects both."""
    country_names = dict(countries())
    for language in accept_language.split(","):
        _, _, country = language.partition(";")[0].strip().upper().partition("-")
        if country in country_names:
            zones_of_country = [zone for zone in get_global("territory_zones").get(country, ()) if zone in time_zones()]
            return Guess(country, zones_of_country[0] if zones_of_country else UTC)
    return Guess("", UTC)
