"""The ledger of one number as a page shows it."""

from typing import NamedTuple
from uuid import UUID

from regulars.consent.browse import queries
from regulars.consent.model import Entry
from regulars.kit.db import Tx


async def list_last_entries(tx: Tx, organization_id: UUID, subscription_id: UUID, *, limit: int) -> list[Entry]:
    """The entries that arrived last, the oldest of them first."""
    found = await queries.list_last_entries(tx, organization_id, subscription_id, limit=limit)
    return found[::-1]


class Standing(NamedTuple):
    """How a customer stands with consent, and the number that says so; an erased one is None."""

    status: str
    phone_number: str | None


async def find_standings(tx: Tx, organization_id: UUID, profile_ids: list[UUID]) -> dict[UUID, Standing]:
    """SUBSCRIBED where any number linked to the customer is, else UNSUBSCRIBED; who was never asked is absent."""
    found: dict[UUID, Standing] = {}
    rows = await queries.find_statuses(tx, organization_id, profile_ids) if profile_ids else []
    for profile_id, status, phone_number in rows:
        if profile_id not in found or status < found[profile_id].status:
            found[profile_id] = Standing(status, phone_number)
    return found
