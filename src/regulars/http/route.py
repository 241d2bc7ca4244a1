"""What a route is: one declaration from which both the server and the OpenAPI document are made."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import msgspec

from regulars.http.ignored import ignored_header
from regulars.kit.coalesce import WAIT_S_MAX
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, Headers

BODY_BYTES_MAX = 1 << 20
BATCH_BODY_BYTES_MAX = 8 << 20
# For writes that are worth more patience than a till has: much at once, or a withdrawal.
LONG_WAIT_S_MAX = 4.0
BATCH_REQUEST_ITEMS_MAX = 500
# While some are decoded or encoded the database works on others: measured best with two of one organization in flight,
# and with up to four in one statement.
BATCH_REQUESTS_AT_ONCE = 2
BATCH_REQUESTS_TOGETHER = 4


# The write came again with another content; the first stays.
PAYLOAD_MISMATCH = (b"x-payload-mismatch", b"true")


class Caller(Protocol):
    """Who calls: the organization the API key is scoped to, and what the key's row says that requests need."""

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
    """A request that passed key, limits and routing; `references` are the decoded path segments of the placeholders."""

    caller: Caller
    request_id: str
    references: tuple[str, ...]
    query: Mapping[str, str]
    body: bytes
    # Where the caller reached this server; empty where that is not known.
    address: str = ""


class Answer(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    headers: Headers = ()
    # What the write was about, for the route's `before_answer`; it is not sent, and a replay does not have it.
    concerns: Any = None


class Write(msgspec.Struct, frozen=True, gc=False):
    """A write that waits for its batch: the request, what `prepare` decoded from it, and its idempotency key."""

    request: Request
    command: Any
    key: str | None = None
    fingerprint: bytes = b""

    @property
    def notes(self) -> Headers:
        """What a success says about its request: the fields that decoding passed over, if its command names any."""
        ignored = getattr(self.command, "ignored", ())
        return (ignored_header(ignored),) if ignored else ()


# Makes the body of the answer to a write that is committed; called when the next batch is on its way to the database.
MakeBody = Callable[[], bytes]
# One statement for a whole batch, where a room has one; it commits by itself. It gives None for each item that it did
# not write and that must take the path of several statements.
Quick = Callable[[UUID, Sequence[Write]], Awaitable[Sequence[MakeBody | None]]]
# The same for batches of several organizations in one transaction: if it raises, nothing of any of them was written.
QuickTogether = Callable[[Sequence[tuple[UUID, Sequence[Write]]]], Awaitable[Sequence[Sequence[MakeBody | None]]]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter, with its JSON Schema."""

    name: str
    schema: Mapping[str, Any]
    description: str


@dataclass(frozen=True, kw_only=True)
class Route:
    """What every route declares; the descriptive part feeds the OpenAPI document."""

    method: str
    # Placeholders stand in braces and are named as the specification names references: `/v1/stores/{store_id}`.
    path: str
    operation_id: str
    tag: str
    summary: str
    description: str = ""
    # Whether its reference may be a caller's own id, and so be spelled like a literal path.
    takes_external_ids: bool = True
    # Whether a key that may only ingest may call it. Its answer to such a caller has nothing that was stored before.
    takes_ingest_keys: bool = False
    # Success status -> type of the answer (None: no body).
    answers: Mapping[int, Any]
    # Success status -> type of the answer to a key that may only ingest, where it is another one.
    receipts: Mapping[int, Any] = field(default_factory=dict)
    # What this operation itself may refuse; the refusals common to all routes are added by the document.
    errors: tuple[type[ApiError], ...] = ()
    # Named examples of request bodies; a test sends each of them.
    examples: Mapping[str, Any] = field(default_factory=dict)
    # Headers of this operation's own: status -> name -> what it says.
    answer_headers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Read(Route):
    method: str = "GET"
    parameters: tuple[Parameter, ...] = ()
    handle: Callable[[Tx, Request], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class LookUp(Route):
    """A read of one thing by its reference. Those of one organization that wait share a statement, like writes: `find`
    takes a list and answers it in order. The planner does not see the values (`Database.looking_up`)."""

    method: str = "GET"
    # None: a reference is all that it is asked with.
    parameters: tuple[Parameter, ...] = ()
    find: Callable[[Tx, UUID, Sequence[Request]], Awaitable[Sequence[Answer | ApiError]]]


@dataclass(frozen=True, kw_only=True)
class Question(Route):
    """A read that is asked with a body. `prepare` decodes it without I/O (it raises ApiError)."""

    method: str = "POST"
    body: Any
    prepare: Callable[[Request], Any]
    handle: Callable[[Tx, Request, Any], Awaitable[Answer]]
    body_bytes_max: int = BODY_BYTES_MAX
    takes_gzip: bool = False
    # What the request costs in tokens of the rate limit, known once it is decoded.
    cost: Callable[[Any], int]


@dataclass(frozen=True, kw_only=True)
class Document(Route):
    """A document that needs no key; it is rendered for the address the caller used."""

    method: str = "GET"
    render: Callable[[str], bytes]


@dataclass(frozen=True, kw_only=True)
class Mutation(Route):
    """A write. `prepare` decodes without I/O (it raises ApiError); `run` takes a list and answers it in order."""

    method: str = "POST"
    takes_ingest_keys: bool = True
    body: Any = None
    prepare: Callable[[Request], Any]
    run: Callable[[Tx, UUID, Sequence[Write]], Awaitable[Sequence[Answer | ApiError]]]
    # Tried first, where there is one, and the status of what it wrote.
    quick: Quick | None = None
    quick_together: QuickTogether | None = None
    quick_status: int = 201
    body_bytes_max: int = BODY_BYTES_MAX
    # Whether the body may come compressed; it is fingerprinted and limited as what it was before.
    takes_gzip: bool = False
    # A batch request is one item of its own queue, whatever its size.
    writes_per_batch_max: int = 256
    # How long one may stand in its queue before those that would stand longer are refused.
    wait_s_max: float = WAIT_S_MAX
    # How many batches of one organization may be in flight; with more than one, arrival does not order them.
    parallel_batches: int = 1
    # Whether a batch that one statement refused for one of its requests is tried again request by request, before the
    # path of several statements: for requests that are worth a statement of their own.
    tries_alone: bool = False
    # Awaited between the commit and the answer, outside the batch, also before an answer is replayed: for a withdrawal,
    # until nothing is on its way any more. The server gives it. It gets the organization, what the answer concerns if
    # that is known, and how many seconds are left; the answer is sent whatever comes of it.
    before_answer: Callable[[UUID, Any, float], Awaitable[object]] | None = None
    # What the request costs in tokens of the rate limit, known once it is decoded.
    cost: Callable[[Any], int] | None = None

    @property
    def can_be_tried(self) -> bool:
        """Whether it takes `dry_run`. What is deleted is not: part of that is done outside the transaction."""
        return self.method == "POST"
