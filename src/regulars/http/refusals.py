"""What a route may refuse: what its room declares, and what every request of its kind may meet."""

from collections.abc import Sequence

from regulars.http.route import Document, Mutation, Question, Route
from regulars.idempotency.errors import IdempotencyConflict, IdempotencyInProgress, InvalidIdempotencyKey
from regulars.kit.errors import (
    ApiError,
    Forbidden,
    HeadersTooLarge,
    InternalError,
    InvalidJson,
    MethodNotAllowed,
    PayloadTooLarge,
    RateLimited,
    RequestTimeout,
    RouteNotFound,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
    UriTooLong,
    ValidationError,
)

# `ValidationError`: query parameters that the operation does not have.
_EVERY_ERROR = {ValidationError, UriTooLong, HeadersTooLarge, InternalError, Unavailable}
_EVERY_KEYED_ERROR = {Unauthorized, RateLimited}
_EVERY_MUTATION_ERROR = {
    InvalidIdempotencyKey,
    IdempotencyConflict,
    IdempotencyInProgress,
    PayloadTooLarge,
    RequestTimeout,
}
_EVERY_BODY_ERROR = {InvalidJson, UnsupportedMediaType}
_UNROUTED = {RouteNotFound, MethodNotAllowed}


def refusals_of(route: Route) -> list[type[ApiError]]:
    refused = {*route.errors, *_EVERY_ERROR}
    if not isinstance(route, Document):
        refused |= _EVERY_KEYED_ERROR
        if not route.takes_ingest_keys:
            refused.add(Forbidden)
    if "{" in route.path:
        # A path segment that cannot be decoded, or an empty one, names no route.
        refused.add(RouteNotFound)
    if isinstance(route, Mutation):
        refused |= _EVERY_MUTATION_ERROR
        if route.body is not None:
            refused |= _EVERY_BODY_ERROR
    if isinstance(route, Question):
        refused |= {*_EVERY_BODY_ERROR, PayloadTooLarge, RequestTimeout}
    return _in_order(refused)


def refusals_of_all(routes: Sequence[Route]) -> list[type[ApiError]]:
    """Every refusal of the API, once."""
    return _in_order({*_UNROUTED, *[error for route in routes for error in refusals_of(route)]})


def _in_order(refused: set[type[ApiError]]) -> list[type[ApiError]]:
    return sorted(refused, key=lambda error: (error.status, error.code))
