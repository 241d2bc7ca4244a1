"""Find the public holidays of a country and its regions, on which no texts are sent, and the region of a store."""

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
from regulars.stores.find import find_addresses_in_country
from regulars.stores.model import Address

_YEAR: Final = timedelta(days=365)
# The language of the holidays' names; by default it would depend on the server's locale.
_LANGUAGE: Final = "en_US"
# Countries where only federal holidays count, because holidays of single states do not apply to texts.
_COUNTRYWIDE_ONLY: Final = frozenset({"US"})
# A day that is a holiday in at least this fraction of a country's regions counts as national: Good Friday is a holiday
# in 24 of 26 Swiss cantons, but not by federal law.
_NATIONAL_FRACTION: Final = 2 / 3
# French departments with additional holidays, by the first two digits of the postal code.
_FRENCH_DEPARTMENTS: Final = {"57": "57", "67": "6AE", "68": "6AE"}
NamedDays = list[tuple[date, str]]


@dataclass(frozen=True, slots=True)
class ClosedDays:
    """The holidays of the next twelve months with their names: those that count in the whole country, and by region the
    differences from them."""

    everywhere: NamedDays
    regions: dict[str, "RegionDays"]


@dataclass(frozen=True, slots=True)
class RegionDays:
    # Days that are holidays in this region, but not in most regions.
    closed: NamedDays
    # Days that are holidays in most regions, but not in this region.
    opened: NamedDays


@lru_cache(maxsize=4_096)
def holidays_of(country: str, year: int, region: str | None = None) -> dict[date, str]:
    """Public holidays of a year with their names: national holidays, and those of the region if it is known.

    If the region is unknown, a day counts if it is a holiday in most regions. If one region were enough, the patron
    saints of Italian towns would close 86 working days.
    """
    try:
        national = holidays.country_holidays(country, years=year, language=_LANGUAGE)
    except NotImplementedError:
        return {}
    days = dict(national.items())
    regions = () if country in _COUNTRYWIDE_ONLY else national.subdivisions
    if region in regions:
        days = {**holidays.country_holidays(country, subdiv=region, years=year, language=_LANGUAGE), **days}
    elif regions:
        regions_by_day = Counter[date]()
        names: dict[date, str] = {}
        for other_region in regions:
            regional = holidays.country_holidays(country, subdiv=other_region, years=year, language=_LANGUAGE)
            regions_by_day.update(regional.keys())
            names = {**regional, **names}
        days |= {day: names[day] for day, count in regions_by_day.items() if count >= _NATIONAL_FRACTION * len(regions)}
    return dict(sorted(days.items()))


def coming_holidays(country: str, today: date, region: str | None = None) -> list[tuple[date, str]]:
    """The holidays of the next twelve months with their names."""
    days = {**holidays_of(country, today.year, region), **holidays_of(country, today.year + 1, region)}
    return sorted((day, name) for day, name in days.items() if today <= day < today + _YEAR)


async def find_closed_days(tx: Tx, organization_id: UUID, country: str, *, today: date) -> ClosedDays:
    """The holidays of a country and of the regions in which the organization has stores. A phone number belongs to the
    region of the store where consent was given."""
    addresses = await find_addresses_in_country(tx, organization_id, country)
    regions = {region for address in addresses if (region := region_of(address)) is not None}
    # The first request for a country computes the calendars of all its regions, so it runs in a thread.
    return await asyncio.to_thread(_closed_days, country, sorted(regions), today)


def _closed_days(country: str, regions: list[str], today: date) -> ClosedDays:
    everywhere = coming_holidays(country, today)
    national_days = {day for day, _ in everywhere}
    by_region: dict[str, RegionDays] = {}
    for region in regions:
        regional = coming_holidays(country, today, region)
        days = {day for day, _ in regional}
        closed = [(day, name) for day, name in regional if day not in national_days]
        opened = [(day, name) for day, name in everywhere if day not in days]
        if closed or opened:
            by_region[name_region(country, region)] = RegionDays(closed, opened)
    return ClosedDays(everywhere, by_region)


def region_of(address: Address) -> str | None:
    """The region of a store, by the name or code of its region or department; in France also by the postal code."""
    codes = _region_codes(address.country_code)
    for area in (address.administrative_area2, address.administrative_area1):
        region = codes.get(_normalize(area)) if area else None
        if region is not None:
            return region
    if address.country_code == "FR":
        return _FRENCH_DEPARTMENTS.get(address.postal_code[:2])
    return None


def name_region(country: str, region: str) -> str:
    """The name of a region; its code if the calendar has no name for it."""
    aliases = _aliases(country)
    return next((name for name, code in aliases.items() if code == region and len(name) > len(code)), region)


@cache
def _region_codes(country: str) -> dict[str, str]:
    """The code of each region by its normalized name and by its normalized code."""
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


# Cached, because a campaign normalizes the names of the same few regions for each of its recipients.
@lru_cache(maxsize=4_096)
def _normalize(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(character for character in decomposed if character.isalnum()).casefold()
