"""Encode API errors as problem details (RFC 9457) with a stable code."""

from typing import Protocol

import msgspec

from regulars.http.request import ApiResponse
from regulars.kit.errors import ApiError, FieldError
from regulars.kit.json import encode

DOCUMENTATION_PATH = "/docs/errors"
PROBLEM_STATUS_MIN = 400


class Problem(msgspec.Struct, omit_defaults=True, frozen=True):
    """`errors` is present only for validation errors; every other field is always present."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: tuple[FieldError, ...] = ()


class RequestContext(Protocol):
    """The values of a request that its error response contains."""

    @property
    def request_id(self) -> str: ...
    @property
    def base_url(self) -> str:
        """The URL at which the caller reached this server, such as `https://shop.example`; empty if unknown."""


def problem_bytes(error: ApiError, request: RequestContext, *, note: str = "") -> bytes:
    """Encode the error; `note` is a sentence that is appended to its detail."""
    return encode(
        Problem(
            type=f"{request.base_url}{DOCUMENTATION_PATH}#{error.code.lower().replace('_', '-')}",
            title=error.title,
            status=error.status,
            detail=f"{error.detail} {note}" if note else error.detail,
            code=error.code,
            request_id=request.request_id,
            errors=error.errors,
        ),
    )


def problem_response(error: ApiError, request: RequestContext, *, note: str = "") -> ApiResponse:
    return ApiResponse(error.status, problem_bytes(error, request, note=note), error.headers)
