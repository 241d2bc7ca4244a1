"""Read subscriptions and their histories."""

from collections.abc import Sequence
from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.model import Entry, Status
from regulars.consent.queries import SubscriptionRow
from regulars.consent.subscription import Subscription, subscription_of
from regulars.kit.changes import Since
from regulars.kit.db import Tx


async def find_subscription(tx: Tx, organization_id: UUID, subscription_id: UUID) -> Subscription | None:
    row = await queries.find_subscription(tx, organization_id, subscription_id)
    return None if row is None else subscription_in(row)


async def list_subscriptions(
    tx: Tx,
    organization_id: UUID,
    *,
    secret: bytes,
    phone_number: str | None = None,
    profile_id: UUID | None = None,
    status: Status | None = None,
    after: UUID | None = None,
    since: Since | None = None,
    limit: int,
) -> list[Subscription]:
    """Subscriptions in the order of their creation, or of their last change.

    A number is found by its hash, also after it was erased.
    """
    rows = await queries.list_subscriptions(
        tx,
        organization_id,
        number_hash=None if phone_number is None else chain.hash_number(secret, phone_number),
        profile_id=profile_id,
        status=None if status is None else status.value,
        after=after,
        since=since,
        limit=limit,
    )
    return [subscription_in(row) for row in rows]


async def find_by_hash(tx: Tx, organization_id: UUID, number_hash: bytes) -> Subscription | None:
    """The subscription of a number that is known by its hash."""
    rows = await queries.list_subscriptions(tx, organization_id, number_hash=number_hash, limit=1)
    return subscription_in(rows[0]) if rows else None


async def list_history(
    tx: Tx, organization_id: UUID, subscription_id: UUID, *, after: int, limit: int
) -> Sequence[Entry]:
    """Entries of the ledger, oldest first, from the one after `after` on."""
    return await queries.list_entries(tx, organization_id, subscription_id, after=after, limit=limit)


def subscription_in(row: SubscriptionRow) -> Subscription:
    state = row.head.state
    if state is None:
        raise AssertionError("no committed head is without an entry")
    names = {state.profile_id: row.profile_external_id, state.store_id: row.store_external_id}
    known = {linked: name for linked, name in names.items() if linked is not None and name is not None}
    return subscription_of(row.head, state, known)
