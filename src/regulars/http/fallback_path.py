"""Run a batch of writes that the fast path does not handle: several statements in one transaction, with retries.

The transaction finds the stored responses of idempotency keys that were used before, runs the route's function on the
other writes, stores their responses and commits; only then are the responses sent. If the batch fails for a reason that
one of its writes may have caused, it is bisected until only the faulty write fails.
"""

from collections.abc import Sequence
from uuid import UUID

from psycopg.errors import (
    DeadlockDetected,
    FeatureNotSupported,
    InvalidSqlStatementName,
    LockNotAvailable,
    QueryCanceled,
    UniqueViolation,
)

from regulars.http.in_flight import InFlight, make_response
from regulars.http.replay import KeyInUseError, find_response, store_new
from regulars.http.request import ApiResponse, Request
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
    def __init__(self, database: Database, in_flight: InFlight, *, erased_error: ApiError) -> None:
        self._database = database
        self._in_flight = in_flight
        # The response to a retry whose stored response contained a person erased since then.
        self._erased_error = erased_error

    async def run(self, route: WriteRoute, organization_id: UUID, batch: Sequence[Request]) -> None:
        """Give every write of the batch its response, or raise an error that no write caused."""
        until = monotonic() + BATCH_S_MAX

        async def run_part(part: Sequence[Request]) -> Sequence[None]:
            responses = await self._run_with_retries(route, organization_id, part, until=until)
            self._in_flight.complete(list(zip(part, responses, strict=True)))
            return ()

        def on_failure(part: Sequence[Request], error: Exception) -> Sequence[None] | None:
            return () if self._is_handled(route, part, error, until=until) else None

        await bisect_failures(batch, run_part, on_failure)

    async def _run_with_retries(
        self, route: WriteRoute, organization_id: UUID, batch: Sequence[Request], *, until: float
    ) -> list[ApiResponse]:
        tries = 0
        while True:
            tries += 1
            try:
                return await self._run_once(route, organization_id, batch)
            except Exception as error:
                may_succeed = _may_succeed(error, is_alone=len(batch) == 1)
                if not may_succeed or tries == TRIES_MAX or monotonic() >= until:
                    raise

    def _is_handled(self, route: WriteRoute, batch: Sequence[Request], error: Exception, *, until: float) -> bool:
        """Respond to the writes that failed together, or return False if bisecting them may help."""
        if isinstance(error, CONNECTION_ERRORS) and not isinstance(error, CONTENTION_ERRORS):
            raise error
        if len(batch) == 1 and isinstance(error, KeyInUseError):
            self._in_flight.add_again(batch[0])
        elif len(batch) == 1:
            self._in_flight.refuse(batch, _to_refusal(error, batch[0], route))
        elif monotonic() > until or isinstance(error, QueryCanceled):
            # After a bisection each part might wait as long as the whole batch did, and delay the next batch.
            self._in_flight.refuse(batch, _busy())
        else:
            return False
        return True

    async def _run_once(self, route: WriteRoute, organization_id: UUID, batch: Sequence[Request]) -> list[ApiResponse]:
        async with self._database.transaction() as tx:
            keys = {request.key for request in batch if request.key is not None}
            by_key = await find_unexpired(tx, organization_id, keys)
            stored = [find_response(request, by_key, erased_error=self._erased_error) for request in batch]
            new = [n for n, request in enumerate(batch) if stored[n] is None and request.refusal is None]
            results = await route.run(tx, organization_id, [batch[n] for n in new]) if new else ()
            result_of = dict(zip(new, results, strict=True))
            responses = [
                stored[n] or make_response(request, request.refusal or result_of[n]) for n, request in enumerate(batch)
            ]
            await store_new(tx, organization_id, batch, responses, by_key)
            failpoint.hit("write.before_commit", tx.connection.drop_connection)
        failpoint.hit("write.committed")
        return responses


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


def _to_refusal(error: Exception, request: Request, route: WriteRoute) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, CONTENTION_ERRORS):
        return _busy()
    _log.error("writes.item_failed", operation=route.operation_id, request_id=request.request_id, exc_info=error)
    return InternalError("The request could not be carried out; nothing was written.")


def _busy() -> Unavailable:
    return Unavailable("The rows this request needs are locked by another; try again.")
