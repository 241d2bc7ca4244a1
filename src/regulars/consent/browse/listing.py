"""The list of subscriptions, the newest first, out of a bounded stretch."""

from typing import Final, NamedTuple
from uuid import UUID

from regulars.consent.browse import queries
from regulars.consent.browse.model import SubscriptionLine
from regulars.consent.find import find_subscription, list_subscriptions
from regulars.consent.phone import read_if_number
from regulars.consent.subscription import Subscription
from regulars.kit.db import Tx
from regulars.kit.ids import SUBSCRIPTION

# How many rows are looked at for one page of a rare filter; then the reader decides whether to look further.
LOOKED_AT_MAX: Final = 20_000
PER_CUSTOMER_MAX: Final = 20


class Stretch(NamedTuple):
    """What was found, and where the look ended if it ended before the list did."""

    lines: list[SubscriptionLine]
    ended_at: tuple[str, ...] | None


async def list_newest(
    tx: Tx,
    organization_id: UUID,
    *,
    status: str | None = None,
    source: str | None = None,
    is_weak: bool = False,
    beyond: tuple[str, ...] | None,
    is_backward: bool = False,
    limit: int,
) -> Stretch:
    position = None if beyond is None else UUID(beyond[0])
    lines = await queries.list_newest_subscriptions(
        tx,
        organization_id,
        status=status,
        source=source,
        is_weak=is_weak,
        beyond=position,
        is_backward=is_backward,
        looked_at_max=LOOKED_AT_MAX,
        limit=limit,
    )
    if len(lines) >= limit or is_backward or (source is None and not is_weak):
        return Stretch(lines, None)
    ended_at = await queries.find_end_of_window(
        tx, organization_id, status=status, beyond=position, looked_at_max=LOOKED_AT_MAX
    )
    return Stretch(lines, None if ended_at is None else (str(ended_at),))


async def search_subscription(
    tx: Tx, organization_id: UUID, text: str, *, secret: bytes, sees_personal: bool
) -> Subscription | None:
    """The subscription of an exact id or number; whoever sees no personal data cannot try out numbers."""
    identifier = SUBSCRIPTION.decode(text)
    if identifier is not None:
        return await find_subscription(tx, organization_id, identifier)
    if not sees_personal:
        return None
    number = read_if_number(text)
    if number is None:
        return None
    found = await list_subscriptions(tx, organization_id, secret=secret, phone_number=number, limit=1)
    return found[0] if found else None


async def list_of_customer(tx: Tx, organization_id: UUID, profile_id: UUID, *, secret: bytes) -> list[Subscription]:
    """The numbers linked to a customer."""
    return await list_subscriptions(tx, organization_id, secret=secret, profile_id=profile_id, limit=PER_CUSTOMER_MAX)
