"""The ledger of one number as a page shows it."""

from uuid import UUID

from regulars.consent.browse import queries
from regulars.consent.model import Entry
from regulars.kit.db import Tx


async def list_last_entries(tx: Tx, organization_id: UUID, subscription_id: UUID, *, limit: int) -> list[Entry]:
    """The entries that arrived last, the oldest of them first."""
    found = await queries.list_last_entries(tx, organization_id, subscription_id, limit=limit)
    return found[::-1]


async def find_statuses(tx: Tx, organization_id: UUID, profile_ids: list[UUID]) -> dict[UUID, str]:
    """SUBSCRIBED where any number linked to the customer is, else UNSUBSCRIBED; who was never asked is absent."""
    found: dict[UUID, str] = {}
    for profile_id, status in await queries.find_statuses(tx, organization_id, profile_ids) if profile_ids else []:
        found[profile_id] = min(status, found.get(profile_id, status))
    return found
