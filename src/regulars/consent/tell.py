"""Tell the rooms above which subscriptions changed, where somebody waits for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from regulars.consent.facts import SubscriptionChange, SubscriptionsChanged
from regulars.consent.model import Event, OptIn, OptOut, Outcome, State, opt_in_automation
from regulars.consent.queries import HeadRow
from regulars.consent.subscription import find_names, show_subscription, subscription_of
from regulars.kit.db import Tx
from regulars.work import outbox
from regulars.work.facts import AutomationState

CHANGES = {Outcome.CREATED, Outcome.RESUBSCRIBED, Outcome.UPDATED, Outcome.UNSUBSCRIBED}


class Appended(NamedTuple):
    """An event on the ledger, what came of it, and the head that it left behind."""

    head: HeadRow
    state: State
    outcome: Outcome
    event: Event
    was_erased: bool

    @property
    def is_change(self) -> bool:
        """Whether anything that the API shows is different now; an erasure takes the number off what is withdrawn."""
        return self.outcome in CHANGES or (self.is_erasure and not self.was_erased)

    @property
    def is_erasure(self) -> bool:
        return isinstance(self.event, OptOut) and self.event.erases


async def tell_changed(tx: Tx, organization_id: UUID, appended: Sequence[Appended]) -> None:
    """Record what changed something, in the order of the events."""
    changes = [one for one in appended if one.is_change]
    if not changes or not await outbox.has_interest(tx, organization_id, SubscriptionsChanged):
        return
    names = await find_names(tx, organization_id, [one.state for one in changes])
    told = [_told(one, names, now=tx.now) for one in changes]
    await outbox.record(tx, organization_id, [SubscriptionsChanged(tx.now, tuple(told))])


def _told(one: Appended, names: Mapping[UUID, str], *, now: datetime) -> SubscriptionChange:
    subscription = subscription_of(one.head, one.state, names)
    automation: AutomationState = "not_applicable"
    if isinstance(one.event, OptIn):
        automation = opt_in_automation(one.outcome, consented_at=one.event.claimed_at, now=now)
    return SubscriptionChange(
        id=one.head.id,
        sequence=one.head.entry_count,
        outcome=(Outcome.UNSUBSCRIBED if one.is_erasure else one.outcome).value,
        automation=automation,
        profile_id=None if subscription.profile is None else subscription.profile.id,
        shown=msgspec.Raw(msgspec.json.encode(show_subscription(subscription))),
        by_erasure=one.is_erasure,
    )
