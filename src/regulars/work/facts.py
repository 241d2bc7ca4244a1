"""The base class of facts: events that are recorded for listeners, in the same transaction as the change they describe.

Whether an event may start an automation is decided once, when it is recorded; the API returns it as `automation.state`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, LiteralString, TypeVar
from uuid import UUID

import msgspec

from regulars.kit.db import Tx

# An older event starts no automation.
AUTOMATION_WINDOW: Final = timedelta(days=7)

AutomationState = Literal["eligible", "stale_fact", "not_applicable"]


class Fact(msgspec.Struct, frozen=True):
    """Base of every fact. The `topic` of a subclass never changes, because rows with it wait in databases."""

    topic: ClassVar[str]
    # Whether the fact is recorded only for organizations for which a module has called `outbox.register_interest`.
    on_interest: ClassVar[bool] = False


# A listener gets all facts of its topic that were taken from the outbox together, in their order. It runs in the
# transaction that deletes them from the outbox, so each fact takes effect exactly once. It must not call the network.
Listener = Callable[[Tx, UUID, Sequence[Any]], Awaitable[None]]
# The listeners of each fact by name. A name never changes, because facts that a listener failed on are stored with its
# name.
Listeners = Mapping[type[Fact], Mapping[str, Listener]]

L = TypeVar("L", bound=Listener)


def needed_if(condition: LiteralString) -> Callable[[L], L]:
    """Decorate a listener that is called only if this SQL condition on `%(organization_id)s` holds. Facts that come
    while it does not hold are lost to the listener, also those that cannot be decoded.

    The conditions of all listeners are evaluated in the statement that takes the facts, so a listener that is not
    needed costs no round trip.
    """

    def decorate(listener: L) -> L:
        listener.needed_if = condition  # type: ignore[attr-defined]  # a function takes attributes
        return listener

    return decorate


def find_condition(listener: Listener) -> LiteralString | None:
    """Return the SQL condition of `needed_if`; None for a listener that is always called."""
    return getattr(listener, "needed_if", None)


class AutomationOut(msgspec.Struct, frozen=True, gc=False):
    state: AutomationState


def eligibility_of(happened_at: datetime, *, now: datetime) -> AutomationState:
    """Decide whether an event is recent enough to start automations; one of exactly seven days ago still is."""
    return "eligible" if now - happened_at <= AUTOMATION_WINDOW else "stale_fact"
