"""Whether a fact may start an automation: what every answer says about it, judged once, when the fact is recorded."""

from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

AUTOMATION_WINDOW: Final = timedelta(days=7)

AutomationState = Literal["eligible", "stale_fact", "not_applicable"]


class AutomationOut(msgspec.Struct, frozen=True, gc=False):
    state: AutomationState


def freshness(happened_at: datetime, *, now: datetime) -> AutomationState:
    """What happened exactly seven days ago is still recent enough."""
    return "eligible" if now - happened_at <= AUTOMATION_WINDOW else "stale_fact"
