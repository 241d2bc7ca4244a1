"""A fact: something that happened, in the past tense, told to the rooms above in the transaction that made it true."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from regulars.kit.db import Tx


class Fact(msgspec.Struct, frozen=True):
    """Base of every fact; a subclass names its `topic` once and for all, because rows with it wait in databases."""

    topic: ClassVar[str]


# A listener gets every fact of one outbox row and works in the transaction that removes the row: its own writes and
# the removal commit together, so each fact takes effect exactly once. It must not talk to the network.
Listener = Callable[[Tx, UUID, Sequence[Any]], Awaitable[None]]
Listeners = Mapping[type[Fact], Sequence[Listener]]
