"""A fact: something that happened, recorded in the transaction that made it true, for listeners in rooms above.

Whether a fact may start an automation is decided once, when it is recorded; the API returns it as `automation.state`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, LiteralString, TypeVar
from uuid import UUID

import msgspec

from regulars.kit.db import Tx

AUTOMATION_WINDOW: Final = timedelta(days=7)

AutomationState = Literal["eligible", "stale_fact", "not_applicable"]


class Fact(msgspec.Struct, frozen=True):
    """Base of every fact. The `topic` of a subclass never changes, because rows with it wait in databases."""

    topic: ClassVar[str]
    # Whether it is recorded only for organizations in which a room registered interest (`outbox.register_interest`).
    on_interest: ClassVar[bool] = False


# A listener gets all facts of its topic that were taken together, in their order, and works in the transaction that
# removes them: its own writes and the removal commit together, so each fact takes effect exactly once. It must not
# call the network.
Listener = Callable[[Tx, UUID, Sequence[Any]], Awaitable[None]]
# The listeners of each fact by their names. A name is stable, because a fact that a listener failed on waits under it.
Listeners = Mapping[type[Fact], Mapping[str, Listener]]

L = TypeVar("L", bound=Listener)


def needed_if(condition: LiteralString) -> Callable[[L], L]:
    """Call the listener only for organizations for which this SQL condition on `%(organization_id)s` holds.

    The conditions of all listeners are evaluated in one statement, so an organization that uses none of them costs one
    round trip instead of one for each listener.
    """

    def mark(listener: L) -> L:
        listener.needed_if = condition  # type: ignore[attr-defined]  # a function takes attributes
        return listener

    return mark


def find_condition(listener: Listener) -> LiteralString | None:
    """The SQL condition of `needed_if`; None for a listener that is always called."""
    return getattr(listener, "needed_if", None)


class AutomationOut(msgspec.Struct, frozen=True, gc=False):
    state: AutomationState


def freshness(happened_at: datetime, *, now: datetime) -> AutomationState:
    """What happened exactly seven days ago is still recent enough."""
    return "eligible" if now - happened_at <= AUTOMATION_WINDOW else "stale_fact"
