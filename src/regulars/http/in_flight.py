"""Track the writes of the API that have no response yet, and their idempotency keys.

Every write gets a response in time: after its deadline it is refused, even if its batch is running; if it is still in
its queue, it is not run any more.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from uuid import UUID

import msgspec

from regulars.http.problem import problem_response
from regulars.http.request import ApiResponse, EncodeBody, Write
from regulars.idempotency.errors import IdempotencyInProgress
from regulars.idempotency.model import is_stored
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.errors import ApiError, InternalError, Unavailable

# A request gets its response this long after its last byte at the latest.
REQUEST_S = 9.0
CHECK_LATE_EVERY_S = 0.25
# How long a request waits for another request with the same idempotency key.
WAIT_FOR_SAME_KEY_S = 8.0
STORED_NOTE = "This answer is kept for its Idempotency-Key; send a corrected request with a new one."

_log = log.get(__name__)


class WriteOutcome(msgspec.Struct, frozen=True):
    """A response, and whether it may be stored for its idempotency key, for other requests with the key."""

    response: ApiResponse
    is_storable: bool = False


class Pending:
    """A write without a response. `reply` is called once; requests with the same key may wait for the outcome too."""

    __slots__ = ("arrived_at", "completed", "needs_fallback", "outcome", "refusal", "reply", "write")

    def __init__(self, write: Write, refusal: ApiError | None, reply: Callable[[WriteOutcome], None]) -> None:
        self.write = write
        # An error that was found before the write was queued, such as an invalid body. It becomes the response, unless
        # a response is stored for the idempotency key.
        self.refusal = refusal
        self.reply = reply
        self.arrived_at = monotonic()
        self.outcome: WriteOutcome | None = None
        # Whether the fast path was tried and did not handle this write.
        self.needs_fallback = False
        # Created when another request first waits for the outcome, which is rare.
        self.completed: asyncio.Event | None = None

    def complete(self, outcome: WriteOutcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            # Set before `reply`, so that an error in `reply` leaves no other request waiting.
            if self.completed is not None:
                self.completed.set()
            self.reply(outcome)

    async def wait(self, timeout_s: float) -> WriteOutcome | None:
        if self.outcome is None:
            if self.completed is None:
                self.completed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.completed.wait(), timeout_s)
        return self.outcome


class InFlight:
    """All writes of this process without a response."""

    def __init__(self) -> None:
        # A dictionary as an ordered set: the oldest write first.
        self._waiting: dict[Pending, None] = {}
        self._keys: dict[tuple[UUID, str], Pending] = {}
        self._late_timer: asyncio.TimerHandle | None = None

    def add(self, pending: Pending) -> None:
        self._waiting[pending] = None
        if self._late_timer is None:
            self._late_timer = asyncio.get_running_loop().call_later(CHECK_LATE_EVERY_S, self._refuse_late)
        write = pending.write
        if write.key is not None:
            self._keys[write.request.caller.organization_id, write.key] = pending

    def has_key(self, organization_id: UUID, key: str) -> bool:
        return (organization_id, key) in self._keys

    async def wait_for_key(self, write: Write) -> Pending | None:
        """Wait while the key is in flight in this process, without a database connection.

        Return the write whose response was stored for the key, or None if no response was stored.
        """
        key_of_organization = (write.request.caller.organization_id, write.key or "")
        deadline = monotonic() + WAIT_FOR_SAME_KEY_S
        while (earlier := self._keys.get(key_of_organization)) is not None:
            outcome = await earlier.wait(max(0.0, deadline - monotonic()))
            if outcome is None:
                raise in_progress()
            if outcome.is_storable:
                return earlier
        return None

    def oldest_s(self) -> float:
        """Return the age of the oldest write without a response."""
        return next((monotonic() - pending.arrived_at for pending in self._waiting), 0.0)

    def complete(self, outcomes: Sequence[tuple[Pending, WriteOutcome | EncodeBody]], *, status: int = 200) -> None:
        """Respond in the next iteration of the event loop, so that the next batch is sent to the database first.

        `status` is the status of writes that have a function for their body in place of an outcome.
        """
        self._remove([pending for pending, _ in outcomes])
        asyncio.get_running_loop().call_soon(_deliver, outcomes, status)

    def refuse(self, batch: Sequence[Pending], error: ApiError) -> None:
        self.complete([(pending, make_refusal(pending.write, error)) for pending in batch])

    def give_up(self, late: Sequence[Pending]) -> None:
        """Refuse these writes at once; those that are still in their queue are not run any more."""
        self._remove(late)
        _deliver([(pending, make_refusal(pending.write, too_late())) for pending in late])

    def _refuse_late(self) -> None:
        """Refuse the writes that have waited too long, and check again while any write waits."""
        arrived_before = monotonic() - REQUEST_S
        late = list(takewhile(lambda pending: pending.arrived_at <= arrived_before, self._waiting))
        if late:
            _log.warning("writes.late", request_ids=ids_of(late))
            self.give_up(late)
        self._late_timer = (
            asyncio.get_running_loop().call_later(CHECK_LATE_EVERY_S, self._refuse_late) if self._waiting else None
        )

    def _remove(self, completed: Iterable[Pending]) -> None:
        for pending in completed:
            self._waiting.pop(pending, None)
            key_of_organization = (pending.write.request.caller.organization_id, pending.write.key or "")
            # A write that was refused as late has released its key already, and another request may use the key now.
            if pending.write.key is not None and self._keys.get(key_of_organization) is pending:
                del self._keys[key_of_organization]


def make_outcome(write: Write, result: ApiResponse | ApiError) -> WriteOutcome:
    """Make the outcome from the result of the route; it is stored if the write has a key and its status allows it."""
    return _wrap_outcome(write, result, is_storable=write.key is not None and is_stored(result.status))


def make_refusal(write: Write, error: ApiError) -> WriteOutcome:
    """Make a refusal that is not stored, because the same request may be accepted later."""
    return _wrap_outcome(write, error, is_storable=False)


def _wrap_outcome(write: Write, result: ApiResponse | ApiError, *, is_storable: bool) -> WriteOutcome:
    if isinstance(result, ApiResponse):
        return WriteOutcome(with_ignored_fields(write, result), is_storable)
    return WriteOutcome(problem_response(result, write.request, note=STORED_NOTE if is_storable else ""), is_storable)


def with_ignored_fields(write: Write, response: ApiResponse) -> ApiResponse:
    """Add the header that names the ignored fields of the request; it is stored and replayed with the response."""
    if not getattr(write.command, "ignored", ()):
        return response
    return msgspec.structs.replace(response, headers=(*response.headers, *write.extra_headers))


def _deliver(outcomes: Sequence[tuple[Pending, WriteOutcome | EncodeBody]], status: int = 200) -> None:
    for pending, outcome in outcomes:
        try:
            pending.complete(
                outcome if isinstance(outcome, WriteOutcome) else _make_body_outcome(pending.write, status, outcome)
            )
        except Exception:  # noqa: BLE001  # the write is committed, and the other callers need their response
            _log.exception("writes.caller_not_told", request_id=pending.write.request.request_id)


def _make_body_outcome(write: Write, status: int, encode_body: EncodeBody) -> WriteOutcome:
    """Make the outcome of a committed write from the function for its body."""
    try:
        return WriteOutcome(
            with_ignored_fields(write, ApiResponse(status, encode_body())), write.key is not None and is_stored(status)
        )
    except Exception:  # noqa: BLE001  # the caller must get a response, and may retry
        _log.exception("writes.answer_not_made", request_id=write.request.request_id)
        return make_refusal(
            write, InternalError("The request was carried out, but its answer could not be made; send it again.")
        )


def ids_of(batch: Sequence[Pending]) -> list[str]:
    return [pending.write.request.request_id for pending in batch]


def in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress("The first request with this Idempotency-Key has not finished; try again.")


def too_late() -> Unavailable:
    return Unavailable("The request could not be carried out in time; try again.")
