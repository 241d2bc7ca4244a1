"""Every refusal the API can give: one class each, with a fixed status and a stable code, in one list.

The list feeds the error pages (`docs/errors.md`) and the OpenAPI document, and tests hold them equal.
"""

from typing import ClassVar

import msgspec

RETRY_SOON = ((b"retry-after", b"1"),)


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong with one field: where, a stable code, and a sentence for a person."""

    field: str
    code: str
    message: str


class ApiError(Exception):
    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors
        self.headers = headers


class InvalidJson(ApiError):
    status, code, title = 400, "INVALID_JSON", "The body is not valid JSON"


class ValidationError(ApiError):
    status, code, title = 400, "VALIDATION_ERROR", "The request does not fit the interface"


class ReservedExternalId(ApiError):
    status, code, title = 400, "RESERVED_EXTERNAL_ID", "The external_id starts with a reserved prefix"


class OccurredAtInFuture(ApiError):
    status, code, title = 400, "OCCURRED_AT_IN_FUTURE", "The sale lies in the future"


class ConsentedAtInFuture(ApiError):
    status, code, title = 400, "CONSENTED_AT_IN_FUTURE", "The consent lies in the future"


class InvalidPhoneNumber(ApiError):
    status, code, title = 400, "INVALID_PHONE_NUMBER", "The phone number cannot be read"


class InvalidCursor(ApiError):
    status, code, title = 400, "INVALID_CURSOR", "The cursor does not belong to this list"


class InvalidIdempotencyKey(ApiError):
    status, code, title = 400, "INVALID_IDEMPOTENCY_KEY", "The Idempotency-Key header cannot be used"


class Unauthorized(ApiError):
    status, code, title = 401, "UNAUTHORIZED", "The API key is missing or not valid"


class Forbidden(ApiError):
    status, code, title = 403, "FORBIDDEN", "The caller may not do this"


class ProfileNotFound(ApiError):
    status, code, title = 404, "PROFILE_NOT_FOUND", "No such profile"


class StoreNotFound(ApiError):
    status, code, title = 404, "STORE_NOT_FOUND", "No such store"


class SalesEventNotFound(ApiError):
    status, code, title = 404, "SALES_EVENT_NOT_FOUND", "No such sales event"


class SubscriptionNotFound(ApiError):
    status, code, title = 404, "SUBSCRIPTION_NOT_FOUND", "No such subscription"


class RouteNotFound(ApiError):
    status, code, title = 404, "ROUTE_NOT_FOUND", "No such route"


class MethodNotAllowed(ApiError):
    status, code, title = 405, "METHOD_NOT_ALLOWED", "The route does not take this method"


class RequestTimeout(ApiError):
    status, code, title = 408, "REQUEST_TIMEOUT", "The body did not arrive in time"


class IdempotencyConflict(ApiError):
    status, code, title = 409, "IDEMPOTENCY_CONFLICT", "The Idempotency-Key was used with another request"


class IdempotencyInProgress(ApiError):
    status, code, title = 409, "IDEMPOTENCY_IN_PROGRESS", "The first request with this Idempotency-Key is still running"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers=RETRY_SOON)


class PayloadTooLarge(ApiError):
    status, code, title = 413, "PAYLOAD_TOO_LARGE", "The body is too large"


class UriTooLong(ApiError):
    status, code, title = 414, "URI_TOO_LONG", "The URL is too long"


class UnsupportedMediaType(ApiError):
    status, code, title = 415, "UNSUPPORTED_MEDIA_TYPE", "The body must be application/json in UTF-8"


class RateLimited(ApiError):
    status, code, title = 429, "RATE_LIMITED", "Too many requests for this key"


class HeadersTooLarge(ApiError):
    status, code, title = 431, "HEADERS_TOO_LARGE", "The headers are too large"


class InternalError(ApiError):
    status, code, title = 500, "INTERNAL_ERROR", "Something broke on our side"


class Unavailable(ApiError):
    status, code, title = 503, "UNAVAILABLE", "The service cannot take the request now"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers=RETRY_SOON)


ALL_ERRORS: tuple[type[ApiError], ...] = (
    InvalidJson,
    ValidationError,
    ReservedExternalId,
    OccurredAtInFuture,
    ConsentedAtInFuture,
    InvalidPhoneNumber,
    InvalidCursor,
    InvalidIdempotencyKey,
    Unauthorized,
    Forbidden,
    ProfileNotFound,
    StoreNotFound,
    SalesEventNotFound,
    SubscriptionNotFound,
    RouteNotFound,
    MethodNotAllowed,
    RequestTimeout,
    IdempotencyConflict,
    IdempotencyInProgress,
    PayloadTooLarge,
    UriTooLong,
    UnsupportedMediaType,
    RateLimited,
    HeadersTooLarge,
    InternalError,
    Unavailable,
)


def invalid(field: str, code: str, message: str) -> ValidationError:
    """A validation error about one field."""
    return ValidationError(f"{field}: {message}" if field else message, errors=(FieldError(field, code, message),))
