"""Store the response of a write under its idempotency key, and replay it for retries with the same key."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg.errors import LockNotAvailable

from regulars.http.batch import encode_result
from regulars.http.in_flight import Pending, WriteOutcome, make_refusal
from regulars.http.problem import problem_response
from regulars.http.request import ApiResponse, Write
from regulars.idempotency.errors import IdempotencyConflict
from regulars.idempotency.model import BATCH_BEGINNING, ERASED, StoredResponse, change_results
from regulars.idempotency.records import store_responses
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError

REPLAYED = (b"idempotent-replayed", b"true")


class KeyInUseError(Exception):
    """Another process has inserted the same idempotency key in a transaction that is still open."""


async def store_new(
    tx: Tx,
    organization_id: UUID,
    writes: Sequence[Write],
    outcomes: Sequence[WriteOutcome],
    stored: Mapping[str, StoredResponse],
) -> None:
    """Store the outcomes under their keys, except keys that already have a `stored` response."""
    new = [
        StoredResponse(write.key, write.fingerprint, response.status, response.body, tx.now, response.headers)
        for write, outcome in zip(writes, outcomes, strict=True)
        for response in [outcome.response]
        if outcome.is_storable and write.key is not None and write.key not in stored
    ]
    try:
        await store_responses(tx, organization_id, new)
    except LockNotAvailable as error:
        raise KeyInUseError from error
    if new:
        failpoint.hit("write.key_claimed", tx.connection.drop_connection)


def stored_outcome(
    write: Write, by_key: Mapping[str, StoredResponse], *, erased_error: ApiError
) -> WriteOutcome | None:
    """Return the outcome stored for the key of the write, None if there is none, and a conflict if the key was used for
    another request. Results that contained a person erased since then are replaced by `erased_error`."""
    stored = by_key.get(write.key) if write.key is not None else None
    if stored is None:
        return None
    if stored.fingerprint != write.fingerprint:
        return make_refusal(write, _conflict())
    if stored.body is None:
        return WriteOutcome(_as_replay(problem_response(erased_error, write.request)))
    body = stored.body
    if body.startswith(BATCH_BEGINNING):
        body = change_results(body, lambda item: encode_result(erased_error, write.request) if item == ERASED else item)
    return WriteOutcome(_as_replay(ApiResponse(stored.status, body, stored.headers)), is_storable=True)


def replay_response(write: Write, earlier: Pending) -> ApiResponse:
    """Return the response of an earlier write with the same key, which has an outcome; raise for another request."""
    if earlier.outcome is None or earlier.write.fingerprint != write.fingerprint:
        raise _conflict()
    return _as_replay(earlier.outcome.response)


def _as_replay(response: ApiResponse) -> ApiResponse:
    headers = tuple([header for header in response.headers if header != REPLAYED])
    return ApiResponse(response.status, response.body, (*headers, REPLAYED))


def _conflict() -> IdempotencyConflict:
    return IdempotencyConflict("This Idempotency-Key was first used with another method, path or body.")
