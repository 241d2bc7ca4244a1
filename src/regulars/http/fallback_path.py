"""Run a batch of writes that the fast path does not handle: several statements in one transaction, with retries.

The transaction finds the stored responses of idempotency keys that were used before, runs the route's function on the
other writes, stores their responses and commits; only then are the responses sent. If the batch fails for a reason that
one of its writes may have caused, it is bisected until only the faulty write fails.
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

from regulars.http.in_flight import InFlight, Pending, WriteOutcome, make_outcome
from regulars.http.replay import KeyInUseError, store_new, stored_outcome
from regulars.http.request import Write
from regulars.http.route import WriteRoute
from regulars.idempotency.model import PRIMARY_KEY
from regulars.idempotency.records import find_unexpired
from regulars.kit import failpoint, log
from regulars.kit.bisect import bisect_failures
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.errors import ApiError, InternalError, Unavailable

TRIES_MAX = 3
# After this time a batch is neither retried nor bisected.
BATCH_S_MAX = 5.0

# Errors caused by concurrent transactions; the write itself may be valid.
CONTENTION_ERRORS = (DeadlockDetected, LockNotAvailable, QueryCanceled, UniqueViolation)

_log = log.get(__name__)


class FallbackPath:
    def __init__(
        self,
        database: Database,
        in_flight: InFlight,
        *,
        erased_error: ApiError,
        retry: Callable[[WriteRoute, Pending], None],
    ) -> None:
        self._database = database
        self._in_flight = in_flight
        # The response to a retry whose stored response contained a person erased since then.
        self._erased_error = erased_error
        # Puts a write back into its queue, because another process has locked its idempotency key.
        self._retry = retry

    async def run(self, route: WriteRoute, organization_id: UUID, batch: Sequence[Pending]) -> None:
        """Give every write of the batch its outcome, or raise an error that no write caused."""
        until = monotonic() + BATCH_S_MAX

        async def run_part(part: Sequence[Pending]) -> Sequence[None]:
            outcomes = await self._run_with_retries(route, organization_id, part, until=until)
            self._in_flight.complete(list(zip(part, outcomes, strict=True)))
            return ()

        def on_failure(part: Sequence[Pending], error: Exception) -> Sequence[None] | None:
            return () if self._is_handled(route, part, error, until=until) else None

        await bisect_failures(batch, run_part, on_failure)

    async def _run_with_retries(
        self, route: WriteRoute, organization_id: UUID, batch: Sequence[Pending], *, until: float
    ) -> list[WriteOutcome]:
        tries = 0
        while True:
            tries += 1
            try:
                return await self._run_once(route, organization_id, batch)
            except Exception as error:
                may_succeed = _may_succeed(error, is_alone=len(batch) == 1)
                if not may_succeed or tries == TRIES_MAX or monotonic() >= until:
                    raise

    def _is_handled(self, route: WriteRoute, batch: Sequence[Pending], error: Exception, *, until: float) -> bool:
        """Respond to the writes that failed together, or return False if bisecting them may help."""
        if isinstance(error, CONNECTION_ERRORS) and not isinstance(error, CONTENTION_ERRORS):
            raise error
        if len(batch) == 1 and isinstance(error, KeyInUseError):
            self._retry(route, batch[0])
        elif len(batch) == 1:
            self._in_flight.refuse(batch, _to_refusal(error, batch[0].write, route))
        elif monotonic() > until or isinstance(error, QueryCanceled):
            # After a bisection each part might wait as long as the whole batch did, and delay the next batch.
            self._in_flight.refuse(batch, _busy())
        else:
            return False
        return True

    async def _run_once(self, route: WriteRoute, organization_id: UUID, batch: Sequence[Pending]) -> list[WriteOutcome]:
        async with self._database.transaction() as tx:
            writes = [pending.write for pending in batch]
            keys = {write.key for write in writes if write.key is not None}
            by_key = await find_unexpired(tx, organization_id, keys)
            stored = [stored_outcome(write, by_key, erased_error=self._erased_error) for write in writes]
            new = [n for n, pending in enumerate(batch) if stored[n] is None and pending.refusal is None]
            results = await route.run(tx, organization_id, [writes[n] for n in new]) if new else ()
            result_of = dict(zip(new, results, strict=True))
            outcomes = [
                stored[n] or make_outcome(write, batch[n].refusal or result_of[n]) for n, write in enumerate(writes)
            ]
            await store_new(tx, organization_id, writes, outcomes, by_key)
            failpoint.hit("write.before_commit", tx.connection.drop_connection)
        failpoint.hit("write.committed")
        return outcomes


def _may_succeed(error: Exception, *, is_alone: bool) -> bool:
    """Whether the same batch may succeed when it is run again."""
    if isinstance(error, UniqueViolation):
        # Another process stored one of our idempotency keys meanwhile; the next run finds its response.
        # On a Citus cluster the name of the constraint ends with a number.
        return (error.diag.constraint_name or "").startswith(PRIMARY_KEY)
    # A single write may have been in a deadlock that the lock timeout ended before PostgreSQL detected it.
    # A prepared statement that the server lost, or whose table changed, is prepared again in the next run.
    retryable = (DeadlockDetected, FeatureNotSupported, InvalidSqlStatementName)
    return isinstance(error, retryable) or (is_alone and isinstance(error, LockNotAvailable))


def _to_refusal(error: Exception, write: Write, route: WriteRoute) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, CONTENTION_ERRORS):
        return _busy()
    _log.error("writes.item_failed", operation=route.operation_id, request_id=write.request.request_id, exc_info=error)
    return InternalError("The request could not be carried out; nothing was written.")


def _busy() -> Unavailable:
    return Unavailable("The rows this request needs are locked by another; try again.")
