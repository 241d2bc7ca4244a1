"""Writes between their arrival and their answer: which keys are in flight, and who is told what.

Nobody waits for ever: a write without an answer is refused when its time is over, whatever became of its batch, and one
that still stood in its queue then is not run any more.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from uuid import UUID

import msgspec

from regulars.http.problem import problem_answer
from regulars.http.route import Answer, MakeBody, Write
from regulars.idempotency.errors import IdempotencyInProgress
from regulars.idempotency.model import is_kept
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError, InternalError, Unavailable

# A request has its answer this long after its last byte, whatever happens.
REQUEST_S = 9.0
LOOK_FOR_LATE_EVERY_S = 0.25
WAIT_FOR_SAME_KEY_S = 8.0
KEPT_NOTE = "This answer is kept for its Idempotency-Key; send a corrected request with a new one."

_log = log.get(__name__)


class Outcome(msgspec.Struct, frozen=True):
    """An answer, and whether it is the one stored for its key, so that others with the key may have it."""

    answer: Answer
    stored: bool = False


class Pending:
    """A write on its way. `reply` is called once, with its outcome; others with the same key may wait for it too."""

    __slots__ = ("arrived_at", "is_for_the_careful_way", "outcome", "refusal", "reply", "waited_for", "write")

    def __init__(self, write: Write, refusal: ApiError | None, reply: Callable[[Outcome], None]) -> None:
        self.write = write
        self.refusal = refusal
        self.reply = reply
        self.arrived_at = monotonic()
        self.outcome: Outcome | None = None
        # Whether the quick way has been tried and left it over.
        self.is_for_the_careful_way = False
        # Made when somebody first waits, which is rare.
        self.waited_for: asyncio.Event | None = None

    def settle(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            # First, so that they are not left waiting where the caller cannot be told.
            if self.waited_for is not None:
                self.waited_for.set()
            self.reply(outcome)

    async def wait(self, timeout_s: float) -> Outcome | None:
        if self.outcome is None:
            if self.waited_for is None:
                self.waited_for = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.waited_for.wait(), timeout_s)
        return self.outcome


class InFlight:
    """All that have no answer yet. One per process."""

    def __init__(self) -> None:
        # The oldest first.
        self._open: dict[Pending, None] = {}
        self._keys: dict[tuple[UUID, str], Pending] = {}
        self._watch: asyncio.TimerHandle | None = None

    def add(self, pending: Pending) -> None:
        self._open[pending] = None
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(LOOK_FOR_LATE_EVERY_S, self._refuse_late)
        write = pending.write
        if write.key is not None:
            self._keys[write.request.caller.organization_id, write.key] = pending

    def has_key(self, organization_id: UUID, key: str) -> bool:
        return (organization_id, key) in self._keys

    async def wait_for_key(self, write: Write) -> Pending | None:
        """While the key is in flight in this process, wait here and not on a database connection: for the one whose
        answer was stored, or for nobody if none was."""
        slot = (write.request.caller.organization_id, write.key or "")
        deadline = monotonic() + WAIT_FOR_SAME_KEY_S
        while (running := self._keys.get(slot)) is not None:
            outcome = await running.wait(max(0.0, deadline - monotonic()))
            if outcome is None:
                raise in_progress()
            if outcome.stored:
                return running
        return None

    def oldest_s(self) -> float:
        """For how long the oldest write without an answer has been waiting."""
        return next((monotonic() - pending.arrived_at for pending in self._open), 0.0)

    def settle(self, outcomes: Sequence[tuple[Pending, Outcome | MakeBody]], *, status: int = 200) -> None:
        """Answer soon, not now: the next batch is then on its way to the database before the callers are told.

        The status is that of all whose body is still to be made.
        """
        self._let_go([pending for pending, _ in outcomes])
        asyncio.get_running_loop().call_soon(_tell, outcomes, status)

    def refuse(self, batch: Sequence[Pending], error: ApiError) -> None:
        self.settle([(pending, refused(pending.write, error)) for pending in batch])

    def give_up(self, late: Sequence[Pending]) -> None:
        """Refuse at once: where they still stand in their queue, they are not run any more."""
        self._let_go(late)
        _tell([(pending, refused(pending.write, too_late())) for pending in late])

    def _refuse_late(self) -> None:
        """Refuse what has waited too long, and look again as long as anything waits."""
        before = monotonic() - REQUEST_S
        late = list(takewhile(lambda pending: pending.arrived_at <= before, self._open))
        if late:
            _log.warning("writes.late", request_ids=ids_of(late))
            self.give_up(late)
        self._watch = (
            asyncio.get_running_loop().call_later(LOOK_FOR_LATE_EVERY_S, self._refuse_late) if self._open else None
        )

    def _let_go(self, settled: Iterable[Pending]) -> None:
        for pending in settled:
            self._open.pop(pending, None)
            slot = (pending.write.request.caller.organization_id, pending.write.key or "")
            # A late one has made room: the key may be in flight again, for another request.
            if pending.write.key is not None and self._keys.get(slot) is pending:
                del self._keys[slot]


def decided(write: Write, result: Answer | ApiError) -> Outcome:
    """What the operation decided, and whether it is kept for the write's key."""
    return _wrapped(write, result, stored=write.key is not None and is_kept(result.status))


def refused(write: Write, error: ApiError) -> Outcome:
    """A refusal that decides nothing: the same request may be taken when it comes again."""
    return _wrapped(write, error, stored=False)


def _wrapped(write: Write, result: Answer | ApiError, *, stored: bool) -> Outcome:
    if isinstance(result, Answer):
        return Outcome(noted(write, result), stored)
    return Outcome(problem_answer(result, write.request, note=KEPT_NOTE if stored else ""), stored)


def noted(write: Write, answer: Answer) -> Answer:
    """The answer with what it says about its request, which is seldom anything; it is stored and replayed with it."""
    if not getattr(write.command, "ignored", ()):
        return answer
    return msgspec.structs.replace(answer, headers=(*answer.headers, *write.notes))


def _tell(outcomes: Sequence[tuple[Pending, Outcome | MakeBody]], status: int = 200) -> None:
    for pending, outcome in outcomes:
        try:
            pending.settle(outcome if isinstance(outcome, Outcome) else _made(pending.write, status, outcome))
        except Exception:  # noqa: BLE001  # the write is committed, and the other callers are to be told too
            _log.exception("writes.caller_not_told", request_id=pending.write.request.request_id)


def _made(write: Write, status: int, make_body: MakeBody) -> Outcome:
    """The answer to a write that is committed."""
    try:
        return Outcome(noted(write, Answer(status, make_body())), write.key is not None and is_kept(status))
    except Exception:  # noqa: BLE001  # the caller must hear something, and may ask again
        _log.exception("writes.answer_not_made", request_id=write.request.request_id)
        return refused(
            write, InternalError("The request was carried out, but its answer could not be made; send it again.")
        )


def ids_of(batch: Sequence[Pending]) -> list[str]:
    return [pending.write.request.request_id for pending in batch]


def in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress("The first request with this Idempotency-Key has not finished; try again.")


def too_late() -> Unavailable:
    return Unavailable("The request could not be carried out in time; try again.")
