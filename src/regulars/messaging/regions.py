"""Which region of a country a store lies in, as the calendar of public holidays names regions."""

import unicodedata
from functools import cache
from typing import Final

import holidays

from regulars.stores.model import Address

# Departments with holidays of their own, by the beginning of the postal code.
_FRENCH_DEPARTMENTS: Final = {"57": "57", "67": "6AE", "68": "6AE"}


def region_of(address: Address) -> str | None:
    """By its region or department, by name or code; in France by the postal code too. None where neither is known."""
    names = _names(address.country_code)
    for area in (address.administrative_area2, address.administrative_area1):
        found = names.get(_fold(area)) if area else None
        if found is not None:
            return found
    if address.country_code == "FR":
        return _FRENCH_DEPARTMENTS.get(address.postal_code[:2])
    return None


def name_region(country: str, region: str) -> str:
    """What people call a region; its code where the calendar has no name for it."""
    aliases = _aliases(country)
    return next((name for name, code in aliases.items() if code == region and len(name) > len(code)), region)


@cache
def _names(country: str) -> dict[str, str]:
    try:
        codes = holidays.country_holidays(country).subdivisions
    except NotImplementedError:
        return {}
    return {_fold(name): code for name, code in {**{code: code for code in codes}, **_aliases(country)}.items()}


def _aliases(country: str) -> dict[str, str]:
    try:
        known = holidays.country_holidays(country)
    except NotImplementedError:
        return {}
    return dict(getattr(known, "subdivisions_aliases", {}))


def _fold(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(it for it in decomposed if it.isalnum()).casefold()
