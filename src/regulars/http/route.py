"""Classes to declare the routes of the API, which both the server and the OpenAPI document use."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from regulars.http.parameters import Parameter
from regulars.http.request import ApiResponse, EncodeBody, Request
from regulars.kit.coalesce import WAIT_S_MAX
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError

BODY_BYTES_MAX = 1 << 20
BATCH_BODY_BYTES_MAX = 8 << 20
# How long batches and withdrawals may wait in their queue: their callers are more patient than a cash register.
LONG_WAIT_S_MAX = 4.0
BATCH_REQUEST_ITEMS_MAX = 500
# The database works on one batch request while another is decoded or encoded. In measurements, two batch requests of
# one organization in flight, and up to four in one statement, gave the highest throughput.
BATCH_REQUESTS_IN_PARALLEL_MAX = 2
BATCH_REQUESTS_PER_STATEMENT_MAX = 4

# Writes a batch with one statement, which commits by itself. It returns None for each uncommitted write, which then
# takes the fallback path.
RunFast = Callable[[UUID, Sequence[Request]], Awaitable[Sequence[EncodeBody | None]]]
# Writes batches of several organizations in one transaction; if it raises, nothing was written.
RunFastShared = Callable[[Sequence[tuple[UUID, Sequence[Request]]]], Awaitable[Sequence[Sequence[EncodeBody | None]]]]


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
    run: Callable[[Tx, UUID, Sequence[Request]], Awaitable[Sequence[ApiResponse | ApiError]]]
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


@dataclass(frozen=True, kw_only=True)
class BatchRoute(WriteRoute):
    """A write of several items, each with its own result; each item costs one request of the rate limit."""

    body_bytes_max: int = BATCH_BODY_BYTES_MAX
    takes_gzip: bool = True
    writes_per_batch_max: int = 1
    wait_s_max: float = LONG_WAIT_S_MAX
    parallel_batches: int = BATCH_REQUESTS_IN_PARALLEL_MAX
    cost: Callable[[Any], int] | None = len
