"""The fields of forms for the country and the time zone of an organization: their choices, and the first guess."""

from functools import cache
from typing import Final, NamedTuple

import phonenumbers
from babel import Locale

from regulars.kit.time_zones import UTC_NAME, country_of, default_zone, time_zones
from regulars.organizations.settings import ForeignZone
from regulars.web.form import FormRefused, FormState
from regulars.web.format import country_name

# The choice that leaves the time zone to the country.
OF_COUNTRY: Final = ""
FIELD: Final = "time_zone"


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
    return tuple(ZoneChoice(name, name.replace("_", " "), country_of(name) or "") for name in time_zones())


def guess_country(accept_language: str) -> str:
    """The country of the first language of the browser that names one, as in `fr-CH,fr;q=0.9`; empty if there is none.
    A script in the page knows the time zone and corrects it."""
    country_names = dict(countries())
    for language in accept_language.split(","):
        _, _, country = language.partition(";")[0].strip().upper().partition("-")
        if country in country_names:
            return country
    return ""


def read_zone_of_country(form: FormState, country: str, *, year: int) -> str:
    """The time zone of a form, which may leave it to the country; refuses to guess one of several."""
    zone = form.choice(FIELD, {OF_COUNTRY, *time_zones()})
    if zone != OF_COUNTRY:
        return zone
    found = default_zone(country, year=year)
    if found is None:
        no_single = f"Choose one: {country_name(country)} has no single time zone."
        form.refuse(FIELD, no_single if country else "Choose one, or a country.")
    return found or UTC_NAME


def refuse_zone(form: FormState, error: ForeignZone) -> FormRefused:
    sentence = f"{country_name(error.country)} does not have this time zone; choose one of its own, or UTC."
    return form.refusal(FIELD, sentence)
