"""Register which facts (recorded events) an endpoint needs; facts that no listener needs are not recorded."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.profiles.facts import ProfilesChanged
from regulars.texts.facts import MessagesChanged
from regulars.webhooks.model import MESSAGE_EVENTS, PROFILE_EVENTS, SUBSCRIPTION_EVENTS
from regulars.work.facts import Fact
from regulars.work.outbox import register_interest, withdraw_interest

EVENTS_BY_FACT: Final[Mapping[type[Fact], Sequence[str]]] = {
    ProfilesChanged: PROFILE_EVENTS,
    SubscriptionsChanged: SUBSCRIPTION_EVENTS,
    MessagesChanged: MESSAGE_EVENTS,
}
# SQL conditions: whether an enabled endpoint of the organization receives any event about sales, or about texts.
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
    """Request that the facts behind these events are recorded."""
    for fact, event_types in EVENTS_BY_FACT.items():
        if events.intersection(event_types):
            await register_interest(tx, organization_id, fact, needed_by=f"webhook {endpoint_id}")


async def withdraw_interests(tx: Tx, organization_id: UUID, endpoint_id: UUID) -> None:
    for fact in EVENTS_BY_FACT:
        await withdraw_interest(tx, organization_id, fact, needed_by=f"webhook {endpoint_id}")
