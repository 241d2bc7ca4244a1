"""The public holidays of a country as they are observed: everywhere, and for customers of stores in single regions."""

import asyncio
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.hours import coming_holidays
from regulars.messaging.regions import name_region, region_of
from regulars.stores.find import find_addresses_in

NamedDays = list[tuple[date, str]]


@dataclass(frozen=True, slots=True)
class ClosedDays:
    """Those of the next twelve months with their names; `regions` has for each of them what it keeps otherwise."""

    everywhere: NamedDays
    regions: dict[str, "RegionDays"]


@dataclass(frozen=True, slots=True)
class RegionDays:
    closed: NamedDays
    # Observed by most regions, and not by this one.
    opened: NamedDays


async def find_closed_days(tx: Tx, organization_id: UUID, country: str, *, today: date) -> ClosedDays:
    """Regions are those of the organization's own stores: a number's region is that of the store where it consented."""
    addresses = await find_addresses_in(tx, organization_id, country)
    regions = {region for address in addresses if (region := region_of(address)) is not None}
    # The first look at a country reads the calendars of all its regions.
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
