"""What the worker does with facts: events for the endpoints."""

from collections.abc import Sequence
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.profiles.facts import ProfilesChanged
from regulars.webhooks.post import Event, post_events


async def post_profile_events(tx: Tx, organization_id: UUID, facts: Sequence[ProfilesChanged]) -> None:
    events = [
        Event(
            f"profile.{change.change}",
            fact.at,
            bytes(change.shown),
            profile_id=change.id,
            of_erasure=change.change == "deleted",
        )
        for fact in facts
        for change in fact.changes
    ]
    await post_events(tx, organization_id, events)


async def post_subscription_events(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    events = [
        Event(
            f"subscription.{change.outcome}",
            fact.at,
            b'{"subscription":%s,"outcome":"%s"}' % (bytes(change.shown), change.outcome.encode()),
            profile_id=change.profile_id,
            subscription_id=change.id,
            of_erasure=change.by_erasure,
        )
        for fact in facts
        for change in fact.changes
    ]
    await post_events(tx, organization_id, events)
