"""List the errors that a route may return: those that it declares, and those that every request of its kind may get."""

from collections.abc import Sequence
from typing import Final

from regulars.http.route import DocumentRoute, QueryRoute, Route, WriteRoute
from regulars.idempotency.errors import IdempotencyConflict, IdempotencyInProgress, InvalidIdempotencyKey
from regulars.kit import errors

# Every request may get `ValidationError`, because it may have query parameters that the operation does not have.
_EVERY_ERROR = {
    errors.MalformedRequest,
    errors.ValidationError,
    errors.UriTooLong,
    errors.HeadersTooLarge,
    errors.InternalError,
    errors.UnsupportedTransferEncoding,
    errors.Unavailable,
}
_EVERY_API_KEY_ERROR = {errors.Unauthorized, errors.RateLimited}
_EVERY_WRITE_ERROR = {
    InvalidIdempotencyKey,
    IdempotencyConflict,
    IdempotencyInProgress,
    errors.PayloadTooLarge,
    errors.RequestTimeout,
}
_EVERY_BODY_ERROR = {errors.InvalidJson, errors.UnsupportedMediaType}
_ROUTING_ERRORS = {errors.RouteNotFound, errors.MethodNotAllowed}

INTRODUCTION: Final = (
    "Every refusal under `/v1` has the media type `application/problem+json` (RFC 9457) and these members: `type` (a"
    " link to this page), `title`, `status`, `detail` (a sentence about this very request), `code`, `request_id` (the"
    " same as the `X-Request-Id` header) and, for validation, `errors` with the `field`, `code` and `message` of each"
    " field. Decide on `code`: it never changes its meaning. New codes may appear within `/v1`; treat one you do not"
    " know by its status."
)


def refusals_of(route: Route) -> list[type[errors.ApiError]]:
    """Return the errors of one route, ordered by status and code."""
    possible = {*route.errors, *_EVERY_ERROR}
    if not isinstance(route, DocumentRoute):
        possible |= _EVERY_API_KEY_ERROR
        if not route.takes_ingest_keys:
            possible.add(errors.Forbidden)
    if "{" in route.path:
        # A path with a segment that is empty or cannot be decoded has no route.
        possible.add(errors.RouteNotFound)
    if isinstance(route, WriteRoute):
        possible |= _EVERY_WRITE_ERROR
        if route.body is not None:
            possible |= _EVERY_BODY_ERROR
    if isinstance(route, QueryRoute):
        possible |= {*_EVERY_BODY_ERROR, errors.PayloadTooLarge, errors.RequestTimeout}
    return _in_order(possible)


def refusals_of_all(routes: Sequence[Route]) -> list[type[errors.ApiError]]:
    """Return every error of the API, once."""
    return _in_order({*_ROUTING_ERRORS, *[error for route in routes for error in refusals_of(route)]})


def _in_order(possible: set[type[errors.ApiError]]) -> list[type[errors.ApiError]]:
    return sorted(possible, key=lambda error: (error.status, error.code))


def anchor(error: type[errors.ApiError]) -> str:
    return error.code.lower().replace("_", "-")


def render_markdown(routes: Sequence[Route]) -> str:
    """Render the page of errors, `docs/errors.md`."""
    entries = [
        f'<a id="{anchor(error)}"></a>\n\n## {error.code}\n\n{error.status}: {error.title}.\n\n'
        f"- **Cause.** {error.cause}\n- **Fix.** {error.fix}\n- **Retry.** {error.retry}"
        for error in refusals_of_all(routes)
    ]
    return "\n\n".join(["# Errors", INTRODUCTION, *entries]) + "\n"
