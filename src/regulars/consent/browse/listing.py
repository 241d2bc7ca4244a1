"""The list of subscriptions, the newest first, out of a bounded stretch."""

from typing import Final
from uuid import UUID

from regulars.consent.browse import queries
from regulars.consent.browse.model import SubscriptionLine
from regulars.consent.find import find_subscription, list_subscriptions
from regulars.consent.model import Status
from regulars.consent.phone import read_if_number
from regulars.consent.subscription import Subscription
from regulars.kit.db import Tx
from regulars.kit.ids import SUBSCRIPTION
from regulars.kit.keyset import PageRequest, PageRows

# How many rows are looked at for one page of a rare filter; then the reader decides whether to look further.
LOOKED_AT_MAX: Final = 20_000
PER_CUSTOMER_MAX: Final = 20
# A withdrawn number of an erased person: only its keyed hash is stored.
DO_NOT_CONTACT: Final = "DO_NOT_CONTACT"


async def list_newest(
    tx: Tx,
    organization_id: UUID,
    page: PageRequest,
    *,
    status: str | None = None,
    source: str | None = None,
    is_weak: bool = False,
) -> PageRows[SubscriptionLine]:
    """`status` is one of a subscription, or `DO_NOT_CONTACT`; a withdrawn number that was erased is only the latter."""
    is_erased = None if status is None or status == Status.SUBSCRIBED else status == DO_NOT_CONTACT
    return await queries.list_newest_subscriptions(
        tx,
        organization_id,
        page,
        status=Status.UNSUBSCRIBED.value if is_erased else status,
        source=source,
        is_weak=is_weak,
        is_erased=is_erased,
        rows_max=LOOKED_AT_MAX,
    )


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
