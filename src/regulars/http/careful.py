"""The careful way: the list use case and its records in one transaction, tried again, and by halves where it fails.

A batch recalls the keys it knows, runs the use case on the rest, encodes the answers, stores them and commits; only
then does anyone get an answer. If the batch fails for a reason that can lie in one of its items, it is halved until
only the guilty one fails.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from psycopg.errors import (
    DeadlockDetected,
    FeatureNotSupported,
    InvalidSqlStatementName,
    LockNotAvailable,
    QueryCanceled,
    UniqueViolation,
)

from regulars.http.in_flight import InFlight, Outcome, Pending, decided
from regulars.http.replay import KeyInUseError, known_outcome, store_new
from regulars.http.route import Mutation, Write
from regulars.idempotency.model import PRIMARY_KEY
from regulars.idempotency.remember import recall
from regulars.kit import failpoint, log
from regulars.kit.bisect import bisect_failures
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable

TRIES_MAX = 3
BATCH_S_MAX = 5.0

# Others were in the way; the item itself may be sound.
CONTENTION = (DeadlockDetected, LockNotAvailable, QueryCanceled, UniqueViolation)

_log = log.get(__name__)


class CarefulWay:
    def __init__(
        self,
        database: Database,
        in_flight: InFlight,
        *,
        erased: ApiError,
        ask_again: Callable[[Mutation, Pending], None],
    ) -> None:
        self._database = database
        self._in_flight = in_flight
        # What a retry is told whose kept answer spoke of somebody who was erased since.
        self._erased = erased
        # For a write whose key another process holds: it goes back to its queue.
        self._ask_again = ask_again

    async def run(self, route: Mutation, organization_id: UUID, batch: Sequence[Pending]) -> None:
        """Give every write of the batch its outcome, or raise what is no write's fault."""
        until = monotonic() + BATCH_S_MAX

        async def run_some(some: Sequence[Pending]) -> Sequence[None]:
            outcomes = await self._run_with_retries(route, organization_id, some, until=until)
            self._in_flight.settle(list(zip(some, outcomes, strict=True)))
            return ()

        def failed(some: Sequence[Pending], error: Exception) -> Sequence[None] | None:
            return () if self._is_told(route, some, error, until=until) else None

        await bisect_failures(batch, run_some, failed)

    async def _run_with_retries(
        self, route: Mutation, organization_id: UUID, batch: Sequence[Pending], *, until: float
    ) -> list[Outcome]:
        tries = 0
        while True:
            tries += 1
            try:
                return await self._run_once(route, organization_id, batch)
            except Exception as error:
                may_pass = _may_pass(error, is_alone=len(batch) == 1)
                if not may_pass or tries == TRIES_MAX or monotonic() >= until:
                    raise

    def _is_told(self, route: Mutation, batch: Sequence[Pending], error: Exception, *, until: float) -> bool:
        """Tell those that failed together, unless halves of them may pass."""
        if isinstance(error, CONNECTION_ERRORS) and not isinstance(error, CONTENTION):
            raise error
        if len(batch) == 1 and isinstance(error, KeyInUseError):
            self._ask_again(route, batch[0])
        elif len(batch) == 1:
            self._in_flight.refuse(batch, _as_refusal(error, batch[0].write, route))
        elif monotonic() > until or isinstance(error, QueryCanceled):
            # Every half may wait as long as the whole did: those behind this batch must not pay for that.
            self._in_flight.refuse(batch, _busy())
        else:
            return False
        return True

    async def _run_once(self, route: Mutation, organization_id: UUID, batch: Sequence[Pending]) -> list[Outcome]:
        async with self._database.transaction() as tx:
            records = await recall(tx, organization_id, {p.write.key for p in batch if p.write.key is not None})
            known = [known_outcome(p.write, records, erased=self._erased) for p in batch]
            fresh = [i for i, p in enumerate(batch) if known[i] is None and p.refusal is None]
            results = await route.run(tx, organization_id, [batch[i].write for i in fresh]) if fresh else ()
            result_of = dict(zip(fresh, results, strict=True))
            settled = [known[i] or decided(p.write, p.refusal or result_of[i]) for i, p in enumerate(batch)]
            await store_new(tx, organization_id, [p.write for p in batch], settled, records)
            failpoint.hit("write.before_commit", tx.connection.cut_off)
        failpoint.hit("write.committed")
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
    if isinstance(error, CONTENTION):
        return _busy()
    _log.error("writes.item_failed", operation=route.operation_id, request_id=write.request.request_id, exc_info=error)
    return InternalError("The request could not be carried out; nothing was written.")


def _busy() -> Unavailable:
    return Unavailable("The rows this request needs are locked by another; try again.")
