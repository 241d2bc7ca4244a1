"""What the functions of routes get and return: the caller, the request and the response."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote
from uuid import UUID

import msgspec

from regulars.kit.errors import ApiError, Headers

# Limits of the header `X-Ignored-Fields`.
IGNORED_NAMES_MAX = 10
IGNORED_NAME_CHARACTERS_MAX = 64
AND_MORE = "..."
# Visible ASCII, without the comma that separates names and the percent sign that begins an encoded character.
_PLAIN_ASCII = "".join(character for character in map(chr, range(0x21, 0x7F)) if character not in ",%")
# A header that says: a sale with the same id but another content is stored already, and was not changed.
PAYLOAD_MISMATCH = (b"x-payload-mismatch", b"true")


class Caller(Protocol):
    """The caller: the organization of the API key, and the columns of the key that requests need."""

    @property
    def organization_id(self) -> UUID: ...
    @property
    def api_key_id(self) -> UUID: ...
    @property
    def secret(self) -> bytes: ...
    @property
    def default_country(self) -> str | None: ...
    @property
    def is_ingest_only(self) -> bool: ...


class ApiResponse(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    headers: Headers = ()
    # The phone numbers whose consent the write ended, for the route's `before_response`; not sent, and not in a replay.
    number_hashes: Any = None
    # Whether the response may be stored for its idempotency key, and sent to other requests with the key.
    is_storable: bool = False


class Request(msgspec.Struct, eq=False):
    """A request that passed authentication, limits and routing, from its arrival to its response. `references` are the
    ids in its path: the decoded segments at the placeholders."""

    caller: Caller
    request_id: str
    references: tuple[str, ...]
    query: Mapping[str, str]
    body: bytes
    # The URL at which the caller reached this server; empty if unknown.
    base_url: str = ""
    # The `Route`, whose module imports this one.
    route: Any = None
    # When the request began to wait for its batch, on the monotonic clock.
    arrived_at: float = 0.0
    # Called once with the response, by whatever makes it.
    send: "Callable[[Request, ApiResponse], None]" = lambda *_: None
    # The object of the fast protocol that writes the response, and the headers of the rate limit in it.
    cycle: Any = None
    rate_headers: Headers = ()
    # Of a write: the command that `prepare` decoded from the body, the idempotency key, and the hash of the request
    # (`fingerprint`).
    command: Any = None
    key: str | None = None
    fingerprint: bytes = b""
    # An error that was found before the write was queued, such as an invalid body. It becomes the response, unless a
    # response is stored for the idempotency key.
    refusal: ApiError | None = None
    # Whether the fast path was tried and did not handle this write.
    needs_fallback: bool = False
    response: ApiResponse | None = None
    # Created when another request with the same key first waits for the response, which is rare.
    completed: asyncio.Event | None = None

    @property
    def extra_headers(self) -> Headers:
        """Return the header that names the ignored fields of the request, for a success; empty if there are none."""
        ignored = getattr(self.command, "ignored", ())
        return (ignored_header(ignored),) if ignored else ()


def wait_for_response(request: Request) -> "asyncio.Future[ApiResponse]":
    """Return a future for the response of a request that a task waits for."""
    waiting: asyncio.Future[ApiResponse] = asyncio.get_running_loop().create_future()

    def send(_request: Request, response: ApiResponse) -> None:
        if not waiting.done():
            waiting.set_result(response)

    request.send = send
    return waiting


# Encodes the body of the response to a committed write; called after the next batch has been sent to the database.
EncodeBody = Callable[[], bytes]


def ignored_header(paths: Sequence[str]) -> tuple[bytes, bytes]:
    """Make the header that names these paths of fields: the first ten, in visible ASCII, less than 1 KB in all."""
    names = [_encode_name(path) for path in paths[:IGNORED_NAMES_MAX]]
    if len(paths) > IGNORED_NAMES_MAX:
        names.append(AND_MORE)
    return b"x-ignored-fields", ", ".join(names).encode()


def _encode_name(path: str) -> str:
    """Percent-encode a name, because line breaks and commas in it would split the header; shorten a long name, but not
    inside an escape."""
    encoded = quote(path[:IGNORED_NAME_CHARACTERS_MAX], safe=_PLAIN_ASCII)
    if len(encoded) <= IGNORED_NAME_CHARACTERS_MAX:
        return encoded or '""'
    end = encoded.rfind("%", IGNORED_NAME_CHARACTERS_MAX - 2, IGNORED_NAME_CHARACTERS_MAX)
    return encoded[: IGNORED_NAME_CHARACTERS_MAX if end < 0 else end]
