"""Classes to declare the routes of the API, which both the server and the OpenAPI document use."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote
from uuid import UUID

import msgspec

from regulars.kit.coalesce import WAIT_S_MAX
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, Headers
from regulars.kit.pagination import CURSOR_CHARACTERS_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX

BODY_BYTES_MAX = 1 << 20
BATCH_BODY_BYTES_MAX = 8 << 20
# How long batches and withdrawals may wait in their queue: their callers are more patient than a cash register.
LONG_WAIT_S_MAX = 4.0
BATCH_REQUEST_ITEMS_MAX = 500
# The database works on one batch request while another is decoded or encoded. In measurements, two batch requests of
# one organization in flight, and up to four in one statement, gave the highest throughput.
BATCH_REQUESTS_IN_PARALLEL_MAX = 2
BATCH_REQUESTS_PER_STATEMENT_MAX = 4
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


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request that passed authentication, limits and routing. `references` are the ids in its path: the decoded
    segments at the placeholders."""

    caller: Caller
    request_id: str
    references: tuple[str, ...]
    query: Mapping[str, str]
    body: bytes
    # The URL at which the caller reached this server; empty if unknown.
    base_url: str = ""


class ApiResponse(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    headers: Headers = ()
    # The phone numbers whose consent the write ended, for the route's `before_response`; not sent, and not in a replay.
    number_hashes: Any = None


class Write(msgspec.Struct, frozen=True, gc=False):
    """A write that waits for its batch: the request, the command that `prepare` decoded from its body, its idempotency
    key, and the hash of the request (`fingerprint`)."""

    request: Request
    command: Any
    key: str | None = None
    fingerprint: bytes = b""

    @property
    def extra_headers(self) -> Headers:
        """Return the header that names the ignored fields of the request, for a success; empty if there are none."""
        ignored = getattr(self.command, "ignored", ())
        return (ignored_header(ignored),) if ignored else ()


# Encodes the body of the response to a committed write; called after the next batch has been sent to the database.
EncodeBody = Callable[[], bytes]
# Writes a batch with one statement, which commits by itself. It returns None for each uncommitted write, which then
# takes the fallback path.
RunFast = Callable[[UUID, Sequence[Write]], Awaitable[Sequence[EncodeBody | None]]]
# Writes batches of several organizations in one transaction; if it raises, nothing was written.
RunFastShared = Callable[[Sequence[tuple[UUID, Sequence[Write]]]], Awaitable[Sequence[Sequence[EncodeBody | None]]]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter, with its JSON Schema."""

    name: str
    schema: Mapping[str, Any]
    description: str


# The two query parameters that every list takes.
PAGE_PARAMETERS = (
    Parameter(
        name="limit",
        schema={"type": "integer", "minimum": 1, "default": PAGE_ITEMS_DEFAULT},
        description=f"How many items a page has at most; above {PAGE_ITEMS_MAX} it counts as {PAGE_ITEMS_MAX}.",
    ),
    Parameter(
        name="cursor",
        schema={"type": "string", "minLength": 1, "maxLength": CURSOR_CHARACTERS_MAX, "format": "cursor"},
        description="The `next_cursor` of the page before, with the same filters. It never expires.",
    ),
)
# For lists that a caller can poll for changes.
CHANGES_PARAMETER = Parameter(
    name="updated_from",
    schema={"type": "string", "format": "date-time"},
    description="What changed at this time or later, in the order of change. `next_cursor` is never null then: when "
    "`has_more` is false, store it and poll again later. A change is visible within about three seconds; erasures are "
    "not listed.",
)


@dataclass(frozen=True, kw_only=True)
class Route:
    """The fields of every route; tag, summary, description, examples and responses are for the OpenAPI document."""

    method: str
    # Placeholders are in braces and have the names of references in the specification: `/v1/stores/{store_id}`.
    path: str
    operation_id: str
    tag: str
    summary: str
    description: str = ""
    # Whether references may be external ids, which may be equal to a literal path segment such as `batch`.
    takes_external_ids: bool = True
    # Whether an API key that may only write (ingest) may call the route. Its response contains no stored data.
    takes_ingest_keys: bool = False
    # Success status -> type of the response (None: no body).
    responses: Mapping[int, Any]
    # Success status -> type of the response to an API key that may only write (ingest), where it differs.
    receipts: Mapping[int, Any] = field(default_factory=dict)
    # The refusals of this operation; `refusals.py` adds those of all routes.
    errors: tuple[type[ApiError], ...] = ()
    # Named examples of request bodies; a test sends each of them.
    examples: Mapping[str, Any] = field(default_factory=dict)
    # Further response headers of this operation: status -> name -> description.
    response_headers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReadRoute(Route):
    method: str = "GET"
    parameters: tuple[Parameter, ...] = ()
    handle: Callable[[Tx, Request], Awaitable[ApiResponse]]


@dataclass(frozen=True, kw_only=True)
class LookUpRoute(Route):
    """A read of one object by its reference. Waiting look-ups of one organization share a statement, like writes.

    `find` takes a list and returns responses in its order. It uses a connection of `Database.reading_by_key`.
    """

    method: str = "GET"
    # Always empty: a look-up has no parameter other than its reference.
    parameters: tuple[Parameter, ...] = ()
    find: Callable[[Tx, UUID, Sequence[Request]], Awaitable[Sequence[ApiResponse | ApiError]]]


@dataclass(frozen=True, kw_only=True)
class QueryRoute(Route):
    """A read with a request body. `prepare` decodes the body without I/O, or raises ApiError."""

    method: str = "POST"
    body: Any
    prepare: Callable[[Request], Any]
    handle: Callable[[Tx, Request, Any], Awaitable[ApiResponse]]
    body_bytes_max: int = BODY_BYTES_MAX
    takes_gzip: bool = False
    # What the request costs in tokens of the rate limit, known once it is decoded.
    cost: Callable[[Any], int]


@dataclass(frozen=True, kw_only=True)
class DocumentRoute(Route):
    """A document that needs no API key; it is rendered for the URL at which the caller reached this server."""

    method: str = "GET"
    render: Callable[[str], bytes]


@dataclass(frozen=True, kw_only=True)
class WriteRoute(Route):
    """A write. `prepare` decodes without I/O, or raises ApiError; `run` responds to a list of writes, in its order."""

    method: str = "POST"
    takes_ingest_keys: bool = True
    body: Any = None
    prepare: Callable[[Request], Any]
    run: Callable[[Tx, UUID, Sequence[Write]], Awaitable[Sequence[ApiResponse | ApiError]]]
    # The fast path: one statement for a batch, one for batches of several organizations, and the status of the writes
    # that they commit. The fallback path is `run`.
    run_fast: RunFast | None = None
    run_fast_shared: RunFastShared | None = None
    fast_status: int = 201
    body_bytes_max: int = BODY_BYTES_MAX
    # Whether the body may be compressed; fingerprint and limit apply to the decompressed body.
    takes_gzip: bool = False
    # How many writes are in one batch at most. A batch request counts as one write, whatever its size.
    writes_per_batch_max: int = 256
    # How long a write may wait in its queue; writes that would wait longer are refused.
    wait_s_max: float = WAIT_S_MAX
    # How many batches of one organization may be in flight; with more than one, they may not run in order of arrival.
    parallel_batches: int = 1
    # Whether the fast path retries the writes of a failed batch one by one before the fallback path; for batch
    # requests, which are large enough for a statement each.
    retries_singly: bool = False
    # Awaited between the commit and the response, also before a replay. A withdrawal of consent waits here until no
    # text to the number is being sent any more. `server.py` sets it. It gets the organization, the `number_hashes` of
    # the response if known, and the seconds left; the response is sent whatever it returns.
    before_response: Callable[[UUID, Any, float], Awaitable[object]] | None = None
    # What the request costs in tokens of the rate limit, known once it is decoded.
    cost: Callable[[Any], int] | None = None

    @property
    def takes_dry_run(self) -> bool:
        """Whether the route accepts `dry_run`; a deletion does not, because it also acts outside the transaction."""
        return self.method == "POST"


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
