"""Store the response of a write under its idempotency key, and replay it for retries with the same key."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg.errors import LockNotAvailable

from regulars.http.batch import encode_result
from regulars.http.problem import problem_response
from regulars.http.request import ApiResponse, Request
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
    requests: Sequence[Request],
    responses: Sequence[ApiResponse],
    stored: Mapping[str, StoredResponse],
) -> None:
    """Store the responses under their keys, except keys that already have a `stored` response."""
    new = [
        StoredResponse(request.key, request.fingerprint, response.status, response.body, tx.now, response.headers)
        for request, response in zip(requests, responses, strict=True)
        if response.is_storable and request.key is not None and request.key not in stored
    ]
    try:
        await store_responses(tx, organization_id, new)
    except LockNotAvailable as error:
        raise KeyInUseError from error
    if new:
        failpoint.hit("write.key_claimed", tx.connection.drop_connection)


def find_response(
    request: Request, by_key: Mapping[str, StoredResponse], *, erased_error: ApiError
) -> ApiResponse | None:
    """Return the response stored for the key of the write, None if there is none, and a conflict if the key was used
    for another request. Results that contained a person erased since then are replaced by `erased_error`."""
    stored = by_key.get(request.key) if request.key is not None else None
    if stored is None:
        return None
    if stored.fingerprint != request.fingerprint:
        return problem_response(_conflict(), request)
    if stored.body is None:
        return _as_replay(problem_response(erased_error, request))
    body = stored.body
    if body.startswith(BATCH_BEGINNING):
        body = change_results(body, lambda item: encode_result(erased_error, request) if item == ERASED else item)
    return _as_replay(ApiResponse(stored.status, body, stored.headers, is_storable=True))


def replay_response(request: Request, earlier: Request) -> ApiResponse:
    """Return the response to an earlier request with the same key; raise for another request."""
    if earlier.response is None or earlier.fingerprint != request.fingerprint:
        raise _conflict()
    return _as_replay(earlier.response)


def _as_replay(response: ApiResponse) -> ApiResponse:
    headers = tuple([header for header in response.headers if header != REPLAYED])
    return ApiResponse(response.status, response.body, (*headers, REPLAYED), is_storable=response.is_storable)


def _conflict() -> IdempotencyConflict:
    return IdempotencyConflict("This Idempotency-Key was first used with another method, path or body.")
