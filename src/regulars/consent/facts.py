"""The facts of consent: events that are recorded for listeners in the modules that import it."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec

from regulars.work.facts import Fact


class SubscriptionChange(msgspec.Struct, frozen=True):
    """One entry of the ledger that changed a subscription, with the subscription as the API showed it right after."""

    id: UUID
    # The number of the entry in the subscription's ledger.
    sequence: int
    outcome: str
    # Whether automations may act on it, decided when it was recorded: the same value as in the response.
    automation: str
    profile_id: UUID | None
    shown: msgspec.Raw
    # An erasure made it a do-not-contact entry; `shown` has no number.
    by_erasure: bool = False


class SubscriptionsChanged(Fact, frozen=True):
    """Consents were given, changed or withdrawn; outcomes that changed nothing are not in it."""

    topic: ClassVar[str] = "subscriptions.changed"
    on_interest: ClassVar[bool] = True

    # The time of the transaction that changed them.
    at: datetime
    changes: tuple[SubscriptionChange, ...]
