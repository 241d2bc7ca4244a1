"""What the worker tells segments: sales, customers, consents and texts that changed."""

from collections.abc import Sequence
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.profiles.facts import ProfilesChanged
from regulars.sales.facts import SalesRecorded
from regulars.segments.feed import hear


async def feed_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    await hear.hear_sales(tx, organization_id, facts)


async def feed_profiles(tx: Tx, organization_id: UUID, facts: Sequence[ProfilesChanged]) -> None:
    await hear.hear_profiles(tx, organization_id, facts)


async def feed_consents(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    await hear.hear_consents(tx, organization_id, facts)


async def feed_messages(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    await hear.hear_messages(tx, organization_id, facts)
