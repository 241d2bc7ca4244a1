"""What the worker does with new sales."""

from collections.abc import Sequence
from uuid import UUID

from regulars.catalog.register import register_product_keys
from regulars.kit.db import Tx
from regulars.sales import queries
from regulars.sales.facts import SalesRecorded


async def register_new_product_keys(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Every property key on a line is in the product catalog soon after its first use."""
    sale_ids = [sale_id for fact in facts for sale_id in fact.sales]
    await register_product_keys(tx, organization_id, await queries.list_property_keys(tx, organization_id, sale_ids))


async def unlink_erased_profiles(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Make a sale anonymous whose customer was erased while it was being written.

    The hot path neither locks the profile nor has a foreign key to it, so an erasure may commit between its look and
    its insert. This runs after the commit of every sale, sees the erasure, and leaves no reference to nobody.
    """
    sale_ids = [sale_id for fact in facts for sale_id in fact.sales]
    await queries.unlink_missing_profiles(tx, organization_id, sale_ids)
