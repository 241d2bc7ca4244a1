"""Public holidays of a country and of its regions, and which region a store lies in."""

import asyncio
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from typing import Final
from uuid import UUID

import holidays

from regulars.kit.db import Tx
from regulars.stores.find import find_addresses_in
from regulars.stores.model import Address

_YEAR: Final = timedelta(days=365)
# Otherwise the names are in the language of the server's locale.
_LANGUAGE: Final = "en_US"
# Federal holidays only: holidays of single states do not bind senders of texts.
_COUNTRYWIDE_ONLY: Final = frozenset({"US"})
# A holiday in this share of a country's regions counts as national: Good Friday is a holiday in 24 of 26 Swiss cantons,
# but in no Swiss law.
_MOST_REGIONS: Final = 2 / 3
# Departments with holidays of their own, by the beginning of the postal code.
_FRENCH_DEPARTMENTS: Final = {"57": "57", "67": "6AE", "68": "6AE"}
NamedDays = list[tuple[date, str]]


@dataclass(frozen=True, slots=True)
class ClosedDays:
    """The holidays of the next twelve months with their names; `regions` has those that differ, by region."""

    everywhere: NamedDays
    regions: dict[str, "RegionDays"]


@dataclass(frozen=True, slots=True)
class RegionDays:
    closed: NamedDays
    # Holidays of most regions, but not of this one.
    opened: NamedDays


@lru_cache(maxsize=4_096)
def holidays_of(country: str, year: int, region: str | None = None) -> dict[date, str]:
    """Public holidays in a year with their names: national ones, and those of the region where it is known.

    Where the region is unknown, those of most regions: the patron saints of towns would close 86 working days in Italy.
    """
    try:
        national = holidays.country_holidays(country, years=year, language=_LANGUAGE)
    except NotImplementedError:
        return {}
    found = dict(national.items())
    regions = () if country in _COUNTRYWIDE_ONLY else national.subdivisions
    if region in regions:
        found = {**holidays.country_holidays(country, subdiv=region, years=year, language=_LANGUAGE), **found}
    elif regions:
        regions_by_day = Counter[date]()
        names: dict[date, str] = {}
        for each in regions:
            own = holidays.country_holidays(country, subdiv=each, years=year, language=_LANGUAGE)
            regions_by_day.update(own.keys())
            names = {**own, **names}
        found |= {day: names[day] for day, count in regions_by_day.items() if count >= _MOST_REGIONS * len(regions)}
    return dict(sorted(found.items()))


def coming_holidays(country: str, today: date, region: str | None = None) -> list[tuple[date, str]]:
    """Those of the next twelve months with their names."""
    found = {**holidays_of(country, today.year, region), **holidays_of(country, today.year + 1, region)}
    return sorted((day, name) for day, name in found.items() if today <= day < today + _YEAR)


async def find_closed_days(tx: Tx, organization_id: UUID, country: str, *, today: date) -> ClosedDays:
    """Regions are those of the organization's stores: a number's region is that of the store where it consented."""
    addresses = await find_addresses_in(tx, organization_id, country)
    regions = {region for address in addresses if (region := region_of(address)) is not None}
    # The first request for a country computes the calendars of all its regions, so it runs in a thread.
    return await asyncio.to_thread(_closed_days, country, sorted(regions), today)


def _closed_days(country: str, regions: list[str], today: date) -> ClosedDays:
    everywhere = coming_holidays(country, today)
    usual = {day for day, _ in everywhere}
    found: dict[str, RegionDays] = {}
    for region in regions:
        own = coming_holidays(country, today, region)
        days = {day for day, _ in own}
        closed = [(day, name) for day, name in own if day not in usual]
        opened = [(day, name) for day, name in everywhere if day not in days]
        if closed or opened:
            found[name_region(country, region)] = RegionDays(closed, opened)
    return ClosedDays(everywhere, found)


def region_of(address: Address) -> str | None:
    """The region of a store, by the name or code of its region or department; in France also by the postal code."""
    names = _names(address.country_code)
    for area in (address.administrative_area2, address.administrative_area1):
        found = names.get(_normalize(area)) if area else None
        if found is not None:
            return found
    if address.country_code == "FR":
        return _FRENCH_DEPARTMENTS.get(address.postal_code[:2])
    return None


def name_region(country: str, region: str) -> str:
    """The name of a region; its code where the calendar has no name for it."""
    aliases = _aliases(country)
    return next((name for name, code in aliases.items() if code == region and len(name) > len(code)), region)


@cache
def _names(country: str) -> dict[str, str]:
    try:
        codes = holidays.country_holidays(country).subdivisions
    except NotImplementedError:
        return {}
    return {_normalize(name): code for name, code in {**{code: code for code in codes}, **_aliases(country)}.items()}


def _aliases(country: str) -> dict[str, str]:
    try:
        calendar = holidays.country_holidays(country)
    except NotImplementedError:
        return {}
    return dict(getattr(calendar, "subdivisions_aliases", {}))


def _normalize(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(it for it in decomposed if it.isalnum()).casefold()
