"""A write between its arrival and its answer."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from regulars.http.route import Answer, Write
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError


class Outcome(msgspec.Struct, frozen=True):
    """An answer, and whether it is the one stored for its key, so that others with the key may have it."""

    answer: Answer
    stored: bool = False


class Pending:
    """A write on its way. `reply` is called once, with its outcome; others with the same key may wait for it too."""

    __slots__ = ("arrived_at", "outcome", "refusal", "reply", "waited_for", "write")

    def __init__(self, write: Write, refusal: ApiError | None, reply: Callable[[Outcome], None]) -> None:
        self.write = write
        self.refusal = refusal
        self.reply = reply
        self.arrived_at = monotonic()
        self.outcome: Outcome | None = None
        # Made when somebody first waits, which is rare.
        self.waited_for: asyncio.Event | None = None

    def settle(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.reply(outcome)
            if self.waited_for is not None:
                self.waited_for.set()

    async def wait(self, timeout_s: float) -> Outcome | None:
        if self.outcome is None:
            if self.waited_for is None:
                self.waited_for = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.waited_for.wait(), timeout_s)
        return self.outcome
