"""What the worker does with new sales."""

from collections.abc import Sequence
from uuid import UUID

from regulars.catalog.entries import register_product_keys
from regulars.kit.db import Tx
from regulars.sales.facts import SalesRecorded
from regulars.sales.totals.fill import count_sales


async def register_new_product_keys(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Every property key on a line is in the product catalog soon after its first use."""
    await register_product_keys(tx, organization_id, {key for fact in facts for key in fact.property_keys})


async def count_new_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Every new sale is in the hourly totals; it is told in one fact, and a fact takes effect once."""
    await count_sales(tx, organization_id, [sale for fact in facts for sale in fact.sales])
