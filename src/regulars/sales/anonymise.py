"""Take a person out of the sales: the sales stay, so no total moves."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.sales import queries


async def anonymise_sales(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, references: Collection[str] = ()
) -> None:
    """Take the people out of their sales, and delete the ticket collisions on those or naming the `references`."""
    unlinked = await queries.unlink_profiles(tx, organization_id, profile_ids)
    if unlinked:
        await queries.delete_collisions(tx, organization_id, unlinked)
        await queries.forget_notes(tx, organization_id, unlinked)
    if references:
        await queries.delete_collisions_that_name(tx, organization_id, references)
