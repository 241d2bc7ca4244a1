"""Listeners: functions that the worker calls for facts about new sales and about a changed time zone."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.catalog.counts.counting import count_new_rows_soon
from regulars.catalog.counts.first_count import begin_first_count
from regulars.catalog.entries import register_product_keys
from regulars.catalog.model import Catalog
from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.db import Tx
from regulars.organizations.facts import TimeZoneChanged
from regulars.sales.blocks.build import request_builds
from regulars.sales.facts import SalesRecorded
from regulars.sales.totals.count import add_sales
from regulars.sales.totals.fill import recount_if_time_zone_changed

ORGANIZATIONS_CACHED_MAX: Final = 10_000

# Organizations whose products are counted already, so that no statement asks again.
_counted: Final = BoundedCache[UUID, None](ORGANIZATIONS_CACHED_MAX)


async def register_new_product_keys(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Register the new keys of product properties in the product catalog, and with the first sale begin its count."""
    if organization_id not in _counted.entries and not await begin_first_count(tx, organization_id, Catalog.PRODUCTS):
        _counted.add(organization_id, None)
    await register_product_keys(tx, organization_id, {key for fact in facts for key in fact.property_keys})


async def recount_in_time_zone(tx: Tx, organization_id: UUID, _facts: Sequence[TimeZoneChanged]) -> None:
    """Request a recount of the totals, because days begin at other times in the organization's new time zone."""
    await recount_if_time_zone_changed(tx, organization_id)


async def count_new_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Add every new sale to the totals of its hour and day, and have blocks of sales built and products counted. A sale
    is counted once: it is in one fact, and the worker handles a fact once."""
    ids = [sale for fact in facts for sale in fact.sales]
    await add_sales(tx, organization_id, ids)
    await request_builds(tx, organization_id, ids)
    await count_new_rows_soon(tx, organization_id, Catalog.PRODUCTS)
