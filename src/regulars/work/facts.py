"""A fact: something that happened, in the past tense, told to the rooms above in the transaction that made it true."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from regulars.kit.db import Tx


class Fact(msgspec.Struct, frozen=True):
    """Base of every fact; a subclass names its `topic` once and for all, because rows with it wait in databases."""

    topic: ClassVar[str]
    # Whether it is recorded only for organizations in which somebody registered interest (`interest.py`).
    on_interest: ClassVar[bool] = False


# A listener gets all facts of its topic that were taken together, in their order, and works in the transaction that
# removes them: its own writes and the removal commit together, so each fact takes effect exactly once. It must not
# talk to the network.
Listener = Callable[[Tx, UUID, Sequence[Any]], Awaitable[None]]
# The listeners of each fact by their names. A name is stable, because a fact that a listener failed on waits under it.
Listeners = Mapping[type[Fact], Mapping[str, Listener]]
