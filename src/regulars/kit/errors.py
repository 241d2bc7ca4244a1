"""The base class of API errors, and the errors that any request may get: one class each, with a fixed status and a
stable code.

A module's own errors are in its `errors.py`. Cause, fix and whether to retry are attributes of the class: the page of
errors and `docs/errors.md` are generated from them, and the OpenAPI document lists the errors that the routes declare.
"""

from typing import ClassVar

import msgspec

from regulars.kit.refusals import Refused

Headers = tuple[tuple[bytes, bytes], ...]
RETRY_SOON = ((b"retry-after", b"1"),)
# How to send a request again; part of the `retry` texts below.
SAME_KEY = "with the same Idempotency-Key and the same bytes"


class FieldError(msgspec.Struct, frozen=True):
    """The error of one field: its path, a stable code, and a message."""

    field: str
    code: str
    message: str


class ApiError(Refused):
    """A page that calls the same function as the API shows the same sentence."""

    code: ClassVar[str]
    # Texts for the developer who gets the error.
    cause: ClassVar[str]
    fix: ClassVar[str]
    retry: ClassVar[str] = "No. The same request will be refused again."
    # Headers of every response with this error.
    own_headers: ClassVar[Headers] = ()

    def __init__(self, detail: str, *, errors: tuple[FieldError, ...] = (), headers: Headers = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors
        self.headers = self.own_headers + headers


class InvalidJson(ApiError):
    status, code, title = 400, "INVALID_JSON", "The body is not valid JSON"
    cause = (
        "The body is not one JSON document in UTF-8: it is empty, cut off, followed by something else, nested deeper"
        " than 32 levels, or has a NaN, a lone surrogate, a fraction beyond a double or an integer of more than 400"
        " digits."
    )
    fix = "Serialise the body with a JSON library. `detail` says where reading stopped."


class ValidationError(ApiError):
    status, code, title = 400, "VALIDATION_ERROR", "The request does not fit the interface"
    cause = (
        "The body or the query does not fit the interface: a required field is missing, or a value has the wrong type,"
        " length, form or range. Query parameters that an operation does not have, or that are given twice, count too."
    )
    fix = "Look at `errors`: each entry names its field, such as `line_items[0].quantity`."


class MalformedRequest(ApiError):
    status, code, title = 400, "MALFORMED_REQUEST", "The request is not valid HTTP"
    cause = (
        "The bytes of the request are not valid HTTP/1.1: its first line, a header, the target or the chunks of the"
        " body cannot be read, or it has `Transfer-Encoding` beside `Content-Length` or with HTTP/1.0. The server"
        " closes the connection, because it cannot tell where the next request begins."
    )
    fix = "Send the request with an HTTP library. If you use one, look at the proxies between it and the server."
    retry = "Yes, on a new connection and as valid HTTP: nothing ran."


class ReservedExternalId(ApiError):
    status, code, title = 400, "RESERVED_EXTERNAL_ID", "The external_id starts with a reserved prefix"
    cause = "An `external_id` starts with `prof_`, `sub_`, `store_` or `evt_`. These are canonical ids."
    fix = "Send your own identifier. To refer to an existing resource, use a reference field such as `profile_id`."


class InvalidCursor(ApiError):
    status, code, title = 400, "INVALID_CURSOR", "The cursor does not belong to this list"
    cause = "The cursor was not given out by this list, for these filters and this organization, or it was cut off."
    fix = "Pass `next_cursor` on unchanged, together with the same filters. `limit` may differ."
    retry = "No. Start again without a cursor."


class Unauthorized(ApiError):
    status, code, title = 401, "UNAUTHORIZED", "The API key is missing or not valid"
    cause = (
        "The `x-api-key` header is missing, sent twice, mistyped, unknown or revoked. The response does not say which."
    )
    fix = "Send a live key of your organization in `x-api-key`. A revoked key stops within a second."
    retry = "Yes, with a valid key: nothing ran."
    # RFC 9110 requires this header, and Java's HTTP client throws without it.
    own_headers = ((b"www-authenticate", b"ApiKey"),)


class Forbidden(ApiError):
    status, code, title = 403, "FORBIDDEN", "The caller may not do this"
    cause = "The key is valid but may only ingest: write, and read stores."
    fix = "Call with a key that has the permission `full`; an owner or admin of the organization can create one."


class RouteNotFound(ApiError):
    status, code, title = 404, "ROUTE_NOT_FOUND", "No such route"
    cause = (
        "Nothing is served at this path: a typing error, a doubled or trailing slash, or a segment that cannot be"
        " decoded."
    )
    fix = "Compare the path with `GET /v1/openapi.json`."


class MethodNotAllowed(ApiError):
    status, code, title = 405, "METHOD_NOT_ALLOWED", "The route does not take this method"
    cause = "The path exists, but not with this method."
    fix = "Use one of the methods in the `Allow` header."


class RequestTimeout(ApiError):
    status, code, title = 408, "REQUEST_TIMEOUT", "The body did not arrive in time"
    cause = (
        "The body stalled: 15 s of silence, less than 10 KB a second on average after the first 15 s, or 120 s in all."
        " Nothing ran."
    )
    fix = "Send the body without pauses, in smaller batches on a slow line."
    retry = f"Yes, {SAME_KEY}."


class PayloadTooLarge(ApiError):
    status, code, title = 413, "PAYLOAD_TOO_LARGE", "The body is too large"
    cause = (
        "The body has more than 1 MiB (8 MiB for batches, also when they come compressed and are smaller on the way)."
    )
    fix = "Send fewer items, or leave out what is not needed."


class UriTooLong(ApiError):
    status, code, title = 414, "URI_TOO_LONG", "The URL is too long"
    cause = "The path and the query have more than 8 KB."
    fix = "A reference has at most 255 characters and a cursor at most 1,024; something else got into the URL."


class UnsupportedMediaType(ApiError):
    status, code, title = 415, "UNSUPPORTED_MEDIA_TYPE", "The body must be application/json in UTF-8"
    cause = (
        "The `Content-Type` is not `application/json` in UTF-8, or the body is compressed in an unsupported way:"
        " only batches may be, and only with gzip."
    )
    fix = "Send `Content-Type: application/json` and no `Content-Encoding`."
    retry = "Yes, with the right header: nothing ran."


class RateLimited(ApiError):
    status, code, title = 429, "RATE_LIMITED", "Too many requests for this key"
    cause = "The key has used up its requests for the moment. Each item of a batch counts as one request."
    fix = "Wait as long as `Retry-After` says; `RateLimit-Remaining` shows how many requests are left."
    retry = f"Yes, {SAME_KEY}: nothing ran."


class HeadersTooLarge(ApiError):
    status, code, title = 431, "HEADERS_TOO_LARGE", "The headers are too large"
    cause = "All headers together have more than 16 KB."
    fix = "Send fewer or smaller headers; cookies are not needed."


class InternalError(ApiError):
    status, code, title = 500, "INTERNAL_ERROR", "Something broke on our side"
    cause = "Something broke on our side. The request was not carried out."
    fix = "Send it again; if it keeps failing, report the `request_id`."
    retry = f"Yes, {SAME_KEY}, with growing pauses."


class UnsupportedTransferEncoding(ApiError):
    status, code, title = 501, "UNSUPPORTED_TRANSFER_ENCODING", "The body comes in an unsupported encoding"
    cause = (
        "The `Transfer-Encoding` is not `chunked`. The server closes the connection, because it cannot read the body."
    )
    fix = "Send `Content-Length`, or `Transfer-Encoding: chunked` alone."
    retry = "Yes, with another header, on a new connection: nothing ran."


class Unavailable(ApiError):
    status, code, title = 503, "UNAVAILABLE", "The service cannot take the request now"
    cause = (
        "The database cannot be reached, or too much is waiting to be written. Whether the write took place may be"
        " unknown. Or, with `updated_from`, the database hides open transactions; `regulars doctor` says why. Or a list"
        " would have to read too many rows for one page; the detail names the filters to narrow."
    )
    fix = "Wait as long as `Retry-After` says. The key and the `external_id` make sure that nothing is written twice."
    retry = f"Yes, {SAME_KEY}, with growing pauses."
    own_headers = RETRY_SOON


def invalid(field: str, code: str, message: str) -> ValidationError:
    """Make the validation error of one field."""
    return ValidationError(f"{field}: {message}" if field else message, errors=(FieldError(field, code, message),))
