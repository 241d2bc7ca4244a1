"""How a write runs: coalesced with its neighbours, once per idempotency key, in one transaction with its record.

A batch recalls the keys it knows, runs the list use case on the rest, encodes the answers, stores them and commits;
only then does anyone get an answer. If the batch fails for a reason that can lie in one of its items, it is halved
until only the guilty one fails.

Nobody waits for ever: a write without an answer is refused when its time is over, whatever became of its batch, and one
that still stood in its queue then is not run any more.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from uuid import UUID

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    FeatureNotSupported,
    InvalidSqlStatementName,
    LockNotAvailable,
    QueryCanceled,
    UniqueViolation,
)

from regulars.http.large_bodies import LARGE_BYTES, LargeBodies
from regulars.http.pending import Outcome, Pending
from regulars.http.problem import problem_answer
from regulars.http.replay import KeyInUseError, as_replay, conflict, decided, known_outcome, store_new
from regulars.http.route import Answer, MakeAnswer, Mutation, Quick, Request, Write
from regulars.idempotency.errors import IdempotencyInProgress
from regulars.idempotency.model import PRIMARY_KEY, fingerprint
from regulars.idempotency.remember import recall
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.coalesce import Coalescer, Overloaded
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable
from regulars.kit.metrics import PROCESS
from regulars.kit.writable import trouble

# A request has its answer this long after its last byte, whatever happens.
REQUEST_S = 9.0
LOOK_FOR_LATE_EVERY_S = 0.25
WAIT_FOR_SAME_KEY_S = 8.0
ASK_AGAIN_AFTER_S = 0.05
TRIES_MAX = 3
BATCH_S_MAX = 5.0
ALONE_S = 1.0
QUEUES_ALONE_MAX = 10_000

# Others were in the way; the item itself may be sound.
_CONTENTION = (DeadlockDetected, LockNotAvailable, QueryCanceled, UniqueViolation)

_log = log.get(__name__)


# The organization, the operation, and one of the queues it has for that organization.
QueueKey = tuple[UUID, str, int]


class Writes:
    """One per process."""

    def __init__(
        self,
        database: Database,
        routes: Sequence[Mutation],
        *,
        quick: Mapping[str, Quick],
        erased: ApiError,
        trouble: Callable[[BaseException], str] = trouble,
    ) -> None:
        self._database = database
        self._routes = {route.operation_id: route for route in routes}
        self._quick = quick
        # What a retry is told whose kept answer spoke of somebody who was erased since.
        self._erased = erased
        self._trouble = trouble
        self._in_flight: dict[tuple[UUID, str], Pending] = {}
        # All that have no answer yet, the oldest first.
        self._open: dict[Pending, None] = {}
        self._watch: asyncio.TimerHandle | None = None
        self._large = LargeBodies()
        self._arrivals = 0
        self._batch_sizes = {name: PROCESS.batches(name) for name in self._routes}
        self._alone_until: dict[QueueKey, float] = {}
        self.coalescer: Coalescer[QueueKey, Pending] = Coalescer(self._flush, items_max=self._writes_per_batch)

    async def submit(
        self,
        route: Mutation,
        request: Request,
        *,
        target: bytes,
        key: str | None,
        refusal: ApiError | None = None,
        charge: Callable[[int], None],
    ) -> Answer:
        """Run one write. `refusal` is what the request was already found guilty of, if anything."""
        async with self._large.admitted(len(request.body)):
            command = None
            if refusal is None:
                try:
                    is_large = len(request.body) > LARGE_BYTES
                    command = await self._large.decode(route.prepare, request) if is_large else route.prepare(request)
                except ApiError as error:
                    refusal = error
            if refusal is None and route.cost is not None:
                charge(route.cost(command) - 1)
            if key is None:
                if refusal is not None:
                    raise refusal
                return (await self._enqueue(route, Write(request, command), None)).answer
            is_ingest_only = request.caller.is_ingest_only
            mark = fingerprint(route.method, target, request.body, is_ingest_only=is_ingest_only)
            write = Write(request, command, key, mark)
            earlier = await self._wait_for_same_key(write)
            if earlier is not None:
                return earlier
            return (await self._enqueue(route, write, refusal)).answer

    async def _wait_for_same_key(self, write: Write) -> Answer | None:
        """While the key is in flight in this process, wait for its answer here and not on a database connection."""
        slot = (write.request.caller.organization_id, write.key or "")
        deadline = monotonic() + WAIT_FOR_SAME_KEY_S
        while (running := self._in_flight.get(slot)) is not None:
            outcome = await running.wait(max(0.0, deadline - monotonic()))
            if outcome is None:
                raise _in_progress()
            if outcome.stored:
                if running.write.fingerprint != write.fingerprint:
                    raise conflict()
                return as_replay(outcome.answer)
        return None

    async def _enqueue(self, route: Mutation, write: Write, refusal: ApiError | None) -> Outcome:
        arrived: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def reply(outcome: Outcome) -> None:
            if not arrived.done():
                arrived.set_result(outcome)

        pending = Pending(write, refusal, reply)
        try:
            self._put(route, pending)
        except Overloaded:
            raise _overloaded() from None
        try:
            return await arrived
        except asyncio.CancelledError:
            # Its caller has been told that it is late: where it still stands in its queue, it is not run any more.
            self._let_go([pending])
            pending.settle(Outcome(problem_answer(too_late(), write.request.request_id)))
            raise

    def can_take(self, route: Mutation, request: Request, key: str | None) -> bool:
        """Whether `submit_now` may be called for such a write in this very moment."""
        organization_id = request.caller.organization_id
        if key is not None and (organization_id, key) in self._in_flight:
            return False
        return self.coalescer.has_room(self._queue_key(route, organization_id), size=len(request.body))

    def submit_now(self, route: Mutation, write: Write, reply: Callable[[Outcome], None]) -> None:
        """Queue a valid write without waiting for anything."""
        self._put(route, Pending(write, None, reply))

    def _put(self, route: Mutation, pending: Pending) -> None:
        write = pending.write
        organization_id = write.request.caller.organization_id
        self.coalescer.put(self._queue_key(route, organization_id), pending, size=len(write.request.body))
        self._arrivals += 1
        self._open[pending] = None
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(LOOK_FOR_LATE_EVERY_S, self._refuse_late)
        if write.key is not None:
            self._in_flight[organization_id, write.key] = pending

    def _queue_key(self, route: Mutation, organization_id: UUID) -> QueueKey:
        """The queue that the next write of this kind goes to."""
        return organization_id, route.operation_id, self._arrivals % route.parallel_batches

    def oldest_s(self) -> float:
        """For how long the oldest write without an answer has been waiting."""
        return next((monotonic() - pending.arrived_at for pending in self._open), 0.0)

    def _refuse_late(self) -> None:
        """Refuse what has waited too long, and look again as long as anything waits."""
        before = monotonic() - REQUEST_S
        late = list(takewhile(lambda pending: pending.arrived_at <= before, self._open))
        if late:
            _log.warning("writes.late", request_ids=_ids_of(late))
            self._let_go(late)
            _tell([(p, Outcome(problem_answer(too_late(), p.write.request.request_id))) for p in late])
        self._watch = (
            asyncio.get_running_loop().call_later(LOOK_FOR_LATE_EVERY_S, self._refuse_late) if self._open else None
        )

    def _let_go(self, settled: Iterable[Pending]) -> None:
        for pending in settled:
            self._open.pop(pending, None)
            slot = (pending.write.request.caller.organization_id, pending.write.key or "")
            # A late one has made room: the key may be in flight again, for another request.
            if pending.write.key is not None and self._in_flight.get(slot) is pending:
                del self._in_flight[slot]

    def _refuse(self, batch: Sequence[Pending], error: ApiError) -> None:
        self._settle([(p, Outcome(problem_answer(error, p.write.request.request_id))) for p in batch])

    def _settle(self, outcomes: Sequence[tuple[Pending, Outcome | MakeAnswer]]) -> None:
        """Answer soon, not now: the next batch is then on its way to the database before the callers are told."""
        self._let_go(pending for pending, _ in outcomes)
        asyncio.get_running_loop().call_soon(_tell, outcomes)

    async def _flush(self, queue_key: QueueKey, batch: list[Pending]) -> None:
        _, name, _ = queue_key
        batch = [pending for pending in batch if pending.outcome is None]
        self._batch_sizes[name].observe(len(batch))
        try:
            quick = self._quick.get(name)
            if quick is not None:
                batch = await self._try_quick(quick, queue_key, batch)
            if batch:
                await self._run_carefully(queue_key, batch)
        except CONNECTION_ERRORS as error:
            # Whether the commit happened is unknown: the caller's retry converges through the unique keys.
            _log.warning(
                "writes.database_unavailable", operation=name, error=type(error).__name__, request_ids=_ids_of(batch)
            )
            self._refuse(batch, Unavailable(self._trouble(error)))
        except Exception:  # noqa: BLE001  # whatever happened, every waiting caller gets an answer
            _log.exception("writes.failed", operation=name, request_ids=_ids_of(batch))
            self._refuse(batch, InternalError("The request could not be carried out; nothing was written."))

    def _writes_per_batch(self, queue_key: QueueKey) -> int:
        if self._alone_until.get(queue_key, 0.0) > monotonic():
            return 1
        return self._routes[queue_key[1]].writes_per_batch_max

    async def _try_quick(self, quick: Quick, queue_key: QueueKey, batch: list[Pending]) -> list[Pending]:
        """Answer what one statement can decide; give back the rest."""
        able = [pending for pending in batch if pending.refusal is None]
        rest = [pending for pending in batch if pending.refusal is not None]
        if not able:
            return rest
        try:
            answers = await quick(queue_key[0], [pending.write for pending in able])
        except (psycopg.DataError, psycopg.IntegrityError, DeadlockDetected, LockNotAvailable):
            # The statement wrote nothing; the careful path finds out why.
            if len(able) == 1 or not self._routes[queue_key[1]].tries_alone:
                return batch
            # Where requests come again, more will: their neighbours had better not share a statement with them.
            if len(self._alone_until) >= QUEUES_ALONE_MAX:
                self._alone_until.clear()
            self._alone_until[queue_key] = monotonic() + ALONE_S
            for pending in able:
                if await self._try_quick(quick, queue_key, [pending]):
                    # Now, and not with the rest: those that came after it must not overtake it.
                    await self._run_carefully(queue_key, [pending])
            return rest
        written: list[tuple[Pending, MakeAnswer]] = []
        for pending, answer in zip(able, answers, strict=True):
            if answer is None:
                rest.append(pending)
            else:
                written.append((pending, answer))
        self._settle(written)
        return rest

    async def _run_carefully(self, queue_key: QueueKey, batch: list[Pending]) -> None:
        await self._run(self._routes[queue_key[1]], queue_key[0], batch, until=monotonic() + BATCH_S_MAX)

    async def _run(
        self, route: Mutation, organization_id: UUID, batch: list[Pending], *, until: float, tries: int = 1
    ) -> None:
        try:
            outcomes = await self._run_in_one_transaction(route, organization_id, batch)
        except Exception as error:
            if isinstance(error, CONNECTION_ERRORS) and not isinstance(error, _CONTENTION):
                raise
            if tries < TRIES_MAX and monotonic() < until and _may_pass(error, is_alone=len(batch) == 1):
                return await self._run(route, organization_id, batch, until=until, tries=tries + 1)
            # One item's fault must not become its neighbours'.
            return await self._halve(route, organization_id, batch, error, until=until)
        self._settle(list(zip(batch, outcomes, strict=True)))
        return None

    async def _halve(
        self, route: Mutation, organization_id: UUID, batch: list[Pending], error: Exception, *, until: float
    ) -> None:
        if len(batch) == 1 and isinstance(error, KeyInUseError):
            return self._queue_again(route, batch[0])
        if len(batch) == 1:
            return self._refuse(batch, _as_refusal(error, batch[0].write, route))
        if monotonic() > until or isinstance(error, QueryCanceled):
            # Every half may wait as long as the whole did: those behind this batch must not pay for that.
            return self._refuse(batch, _busy())
        middle = len(batch) // 2
        await self._run(route, organization_id, batch[:middle], until=until)
        await self._run(route, organization_id, batch[middle:], until=until)
        return None

    def _queue_again(self, route: Mutation, pending: Pending) -> None:
        """Ask again a little later, and again until its wait is over; nothing waits on a connection meanwhile."""
        if monotonic() - pending.arrived_at >= WAIT_FOR_SAME_KEY_S:
            self._refuse([pending], _in_progress())
        else:
            asyncio.get_running_loop().call_later(ASK_AGAIN_AFTER_S, self._put_again, route, pending)

    def _put_again(self, route: Mutation, pending: Pending) -> None:
        try:
            if pending.outcome is None:
                self._put(route, pending)
        except Overloaded:
            self._refuse([pending], _overloaded())

    async def _run_in_one_transaction(
        self, route: Mutation, organization_id: UUID, batch: list[Pending]
    ) -> list[Outcome]:
        async with self._database.transaction() as tx:
            records = await recall(tx, organization_id, {p.write.key for p in batch if p.write.key is not None})
            outcomes: list[Outcome | None] = [known_outcome(p, records, erased=self._erased) for p in batch]
            fresh = [i for i, p in enumerate(batch) if outcomes[i] is None and p.refusal is None]
            results = await route.run(tx, organization_id, [batch[i].write for i in fresh]) if fresh else ()
            for i, result in zip(fresh, results, strict=True):
                outcomes[i] = decided(batch[i].write, result)
            settled = [
                outcome if outcome is not None else decided(p.write, _required(p.refusal))
                for p, outcome in zip(batch, outcomes, strict=True)
            ]
            await store_new(tx, organization_id, batch, settled, records)
        return settled


def _may_pass(error: Exception, *, is_alone: bool) -> bool:
    """Whether the same batch, run again, may well succeed."""
    if isinstance(error, UniqueViolation):
        # Another process stored one of our keys meanwhile: this time the key is found.
        # On a cluster the name of a constraint has a number behind it.
        return (error.diag.constraint_name or "").startswith(PRIMARY_KEY)
    # A lone write may have met a deadlock that the lock timeout ended before PostgreSQL saw it.
    # A statement that the server forgot, or whose table changed, is prepared anew the next time.
    passes = (DeadlockDetected, FeatureNotSupported, InvalidSqlStatementName)
    return isinstance(error, passes) or (is_alone and isinstance(error, LockNotAvailable))


def _as_refusal(error: Exception, write: Write, route: Mutation) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, _CONTENTION):
        return _busy()
    _log.error("writes.item_failed", operation=route.operation_id, request_id=write.request.request_id, exc_info=error)
    return InternalError("The request could not be carried out; nothing was written.")


def _in_progress() -> IdempotencyInProgress:
    return IdempotencyInProgress("The first request with this Idempotency-Key has not finished; try again.")


def _busy() -> Unavailable:
    return Unavailable("The rows this request needs are locked by another; try again.")


def _overloaded() -> Unavailable:
    return Unavailable("Too much is waiting to be written; try again.")


def too_late() -> Unavailable:
    return Unavailable("The request could not be carried out in time; try again.")


def _required(refusal: ApiError | None) -> ApiError:
    if refusal is None:
        raise AssertionError("a write without an outcome has a refusal")
    return refusal


def _ids_of(batch: Sequence[Pending]) -> list[str]:
    return [pending.write.request.request_id for pending in batch]


def _tell(outcomes: Sequence[tuple[Pending, Outcome | MakeAnswer]]) -> None:
    for pending, outcome in outcomes:
        try:
            pending.settle(outcome if isinstance(outcome, Outcome) else _made(pending.write, outcome))
        except Exception:  # noqa: BLE001  # the write is committed, and the other callers are to be told too
            _log.exception("writes.caller_not_told", request_id=pending.write.request.request_id)


def _made(write: Write, make_answer: MakeAnswer) -> Outcome:
    """The answer to a write that is committed."""
    try:
        return Outcome(write.noted(make_answer()), stored=write.key is not None)
    except Exception:  # noqa: BLE001  # the caller must hear something, and may ask again
        _log.exception("writes.answer_not_made", request_id=write.request.request_id)
        failed = InternalError("The request was carried out, but its answer could not be made; send it again.")
        return Outcome(problem_answer(failed, write.request.request_id))
