"""Which facts are recorded for endpoints: an endpoint registers its interest and withdraws it when it is disabled."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.profiles.facts import ProfilesChanged
from regulars.webhooks.model import MESSAGE_EVENTS, PROFILE_EVENTS, SUBSCRIPTION_EVENTS
from regulars.work.facts import Fact
from regulars.work.outbox import register_interest, withdraw_interest

FACTS: Final[Mapping[type[Fact], Sequence[str]]] = {
    ProfilesChanged: PROFILE_EVENTS,
    SubscriptionsChanged: SUBSCRIPTION_EVENTS,
    MessagesChanged: MESSAGE_EVENTS,
}
# Whether an enabled endpoint receives events of this family, chosen by the family's name or an event's.
HAS_ENDPOINT_FOR_SALES: Final = """
EXISTS (
    SELECT FROM webhook_endpoints WHERE organization_id = %(organization_id)s AND state = 'enabled'
    AND event_types && ARRAY['sales_event.*', 'sales_event.recorded']
)
"""
HAS_ENDPOINT_FOR_MESSAGES: Final = """
EXISTS (
    SELECT FROM webhook_endpoints WHERE organization_id = %(organization_id)s AND state = 'enabled'
    AND event_types && ARRAY['message.*', 'message.sent', 'message.delivered', 'message.failed', 'message.received']
)
"""


async def register_interests(tx: Tx, organization_id: UUID, endpoint_id: UUID, events: frozenset[str]) -> None:
    """Have the facts recorded that its events are made from."""
    for fact, made in FACTS.items():
        if events.intersection(made):
            await register_interest(tx, organization_id, fact, needed_by=f"webhook {endpoint_id}")


async def withdraw_interests(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> None:
    for fact in FACTS:
        await withdraw_interest(tx, organization_id, fact, needed_by=f"webhook {endpoint_id}")
