"""The event that records changes of subscriptions (the consent of phone numbers) for listeners in other packages."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec

from regulars.work.facts import Fact


class SubscriptionChange(msgspec.Struct, frozen=True):
    """One consent or withdrawal that changed a subscription."""

    # The id of the subscription.
    id: UUID
    # The position of the consent or withdrawal in the subscription's ledger.
    sequence: int
    outcome: str
    # Whether journeys may start on this change: `automation.state` of the API response.
    automation: str
    profile_id: UUID | None
    # The subscription right after the change, as JSON in the form of the API.
    shown: msgspec.Raw
    # Whether consent was withdrawn because the person was erased; `shown` then has no phone number.
    by_erasure: bool = False


class SubscriptionsChanged(Fact, frozen=True):
    """Consents were given, changed or withdrawn; recorded only if a listener is interested (`on_interest`)."""

    topic: ClassVar[str] = "subscriptions.changed"
    on_interest: ClassVar[bool] = True

    # The time of the transaction that changed the subscriptions.
    at: datetime
    changes: tuple[SubscriptionChange, ...]
