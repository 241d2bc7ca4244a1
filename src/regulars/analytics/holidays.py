"""Finds the public holidays of periods, in the countries of stores."""

import asyncio
from collections import defaultdict
from collections.abc import Collection
from datetime import date
from uuid import UUID

from regulars.analytics.period import Period
from regulars.kit.db import Tx
from regulars.stores.find import find_addresses
from regulars.texts.public_holidays import holidays_of


async def find_holidays(
    tx: Tx, organization_id: UUID, store_ids: Collection[UUID], periods: Collection[Period]
) -> dict[date, str]:
    """Find the names of the holidays in the periods. A name is followed by its countries, unless all countries of the
    stores have it."""
    addresses = await find_addresses(tx, organization_id, store_ids)
    countries = sorted({address.country_code for address in addresses.values()})
    # The first request for a country computes the calendars of all its regions, so it runs in a thread.
    return await asyncio.to_thread(_compute_holidays, countries, periods)


def _compute_holidays(countries: list[str], periods: Collection[Period]) -> dict[date, str]:
    years = {year for period in periods for year in range(period.first.year, period.last.year + 1)}
    # The names of the holidays of each day, with the countries that have them.
    holidays: dict[date, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for country in countries:
        for year in years:
            for day, name in holidays_of(country, year).items():
                if any(day in period for period in periods):
                    holidays[day][name].append(country)
    return {day: _describe(names, len(countries)) for day, names in sorted(holidays.items())}


def _describe(countries_by_name: dict[str, list[str]], countries_total: int) -> str:
    return ", ".join(
        name if len(countries) == countries_total else f"{name} ({', '.join(countries)})"
        for name, countries in countries_by_name.items()
    )
