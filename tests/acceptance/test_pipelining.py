"""A caller may send its next requests before it has the responses, in packets of any length, and loses none of them."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import raw, samples
from tests.support.open_database import OpenDatabase
from tests.support.server import Server
from tests.support.tenant import Tenant, create_tenant

JSON = (b"Content-Type", b"application/json")
ROUNDS_MAX = 3


@dataclass(frozen=True)
class Planned:
    """A request; `%b` in its target and body stands for the name of the example."""

    method: bytes
    target: bytes
    body: bytes | None = None
    headers: tuple[raw.Header, ...] = ()
    is_chunked: bool = False

    def encode(self, tenant: Tenant, name: bytes) -> bytes:
        key = (b"x-api-key", tenant.key.encode())
        target, body = (part and part.replace(b"%b", name) for part in (self.target, self.body))
        headers = [key, *([JSON] if body is not None else []), *self.headers]
        if self.is_chunked:
            # Blank lines in the body look like the end of a request.
            chunks = [b"\r\n\r\n", body or b"", b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"]
            return raw.keep_alive(raw.chunked_bytes(self.method, target or b"", headers, chunks))
        return raw.keep_alive(raw.request_bytes(self.method, target or b"", headers, body))


SALE = samples.json_bytes(samples.sale("%b", external_id="%b:1", occurred_at="2026-01-05T10:00:00Z", profile_id="%b"))
PLANNED = (
    Planned(b"GET", b"/v1/stores/%b"),
    Planned(b"GET", b"/v1/profiles/%b", headers=((b"X-Request-Id", b"till-1"),)),
    Planned(b"GET", b"/v1/profiles/%b/attributes", headers=((b"Accept-Encoding", b"gzip"),)),
    Planned(b"GET", b"/v1/sales-events/%b:1"),
    Planned(b"GET", b"/v1/stores?limit=0"),
    Planned(b"GET", b"/v1/nothing"),
    Planned(b"GET", b"/healthz"),
    Planned(b"HEAD", b"/v1/stores/%b"),
    Planned(b"POST", b"/v1/stores", b'{"external_id":"%b"}'),
    Planned(b"POST", b"/v1/profiles", b'{"external_id":"%b","first_name":"Ada"}'),
    Planned(b"POST", b"/v1/profiles", b'{"external_id":"%b"}', ((b"Idempotency-Key", b"p"),)),
    Planned(b"POST", b"/v1/profiles", b"{"),
    Planned(b"POST", b"/v1/sales-events", SALE),
    Planned(b"POST", b"/v1/stores", b'{"external_id":"%b"}', is_chunked=True),
    Planned(b"GET", b"/v1/stores/%b", b"\r\n\r\n", is_chunked=True),
    Planned(b"DELETE", b"/v1/profiles/%b"),
    Planned(b"DELETE", b"/v1/stores/%b"),
    Planned(b"PUT", b"/v1/stores", b"{}"),
    Planned(b"PATCH", b"/v1/stores/%b", b"{}"),
    Planned(b"OPTIONS", b"/v1/stores"),
)
# Is sent after the others, and has the last response.
LAST_ID = b"the-last-one"
LAST = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: %b\r\n\r\n" % LAST_ID
LAST_BODY = b'{"status":"ok"}'


@dataclass(frozen=True)
class Pair:
    """Two organizations that get the same requests: one all at once, the other one after another."""

    server: Server
    tenants: tuple[Tenant, Tenant]
    # A new name for the objects of each example.
    names: Iterator[int]
    # Returns when the server has read all that was sent before: it then answers on another connection.
    let_the_server_read: Callable[[], None]


@pytest.fixture(scope="module")
def pair(server: Server, api_database: OpenDatabase) -> Iterator[Pair]:
    with (
        socket.create_connection(server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection,
        connection.makefile("rb") as reader,
    ):

        def let_the_server_read() -> None:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert raw.read_one(reader).status == 200

        tenants = api_database.run(create_tenant), api_database.run(create_tenant)
        yield Pair(server, tenants, count(100_000), let_the_server_read)


def test_a_request_after_a_read_in_one_packet_is_not_lost(pair: Pair) -> None:
    read = Planned(b"GET", b"/v1/profiles/nobody").encode(pair.tenants[0], b"")
    erase = Planned(b"DELETE", b"/v1/profiles/nobody").encode(pair.tenants[0], b"")
    with socket.create_connection(pair.server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        for _ in range(4):
            connection.sendall(read + erase)
            connection.sendall(LAST)
            assert [response[0] for response in _read_responses(connection, [read, erase])] == [404, 404]


@given(
    plan=st.lists(st.sampled_from(PLANNED), min_size=1, max_size=6),
    cuts=st.lists(st.floats(min_value=0, max_value=1), max_size=4),
    rounds=st.integers(min_value=1, max_value=ROUNDS_MAX),
)
@settings(max_examples=60)
def test_requests_sent_together_get_the_responses_they_get_one_at_a_time(
    pair: Pair, plan: list[Planned], cuts: list[float], rounds: int
) -> None:
    name = b"%d" % next(pair.names)
    together, one_at_a_time = [[planned.encode(tenant, name) for planned in plan] for tenant in pair.tenants]
    with socket.create_connection(pair.server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The same packets again: by then the server has cached their heads.
        responses = [_send_together(connection, together, cuts, pair.let_the_server_read) for _ in range(rounds)]
        expected = [_send_one_at_a_time(connection, one_at_a_time) for _ in range(rounds)]
    assert responses == expected


def _send_together(
    connection: socket.socket, requests: Sequence[bytes], cuts: Sequence[float], let_the_server_read: Callable[[], None]
) -> list[raw.Comparable]:
    sent = b"".join(requests)
    places = {round(cut * len(sent)) for cut in cuts} - set(_places_in_unread_chunks(requests))
    for start, end in pairwise(sorted({0, len(sent), *places})):
        connection.sendall(sent[start:end])
        if end < len(sent):
            let_the_server_read()
    let_the_server_read()
    connection.sendall(LAST)
    return _read_responses(connection, requests)


def _places_in_unread_chunks(requests: Sequence[bytes]) -> Iterator[int]:
    """A read is answered without its body. If the body comes in chunks that have not arrived, that ends the connection."""
    start = 0
    for request in requests:
        head, _, chunks = request.partition(b"\r\n\r\n")
        if head.startswith(b"GET ") and chunks:
            yield from range(start + len(head), start + len(request))
        start += len(request)


def _send_one_at_a_time(connection: socket.socket, requests: Sequence[bytes]) -> list[raw.Comparable]:
    responses = []
    for request in requests:
        connection.sendall(request)
        connection.sendall(LAST)
        responses += _read_responses(connection, [request])
    return responses


def _read_responses(connection: socket.socket, requests: Sequence[bytes]) -> list[raw.Comparable]:
    """Receives until the response to `LAST` before reading, so that a lost response ends no test in a timeout."""
    received = b""
    while not received.partition(LAST_ID)[2].endswith(LAST_BODY):
        chunk = connection.recv(1 << 20)
        assert chunk, "the server closed the connection"
        received += chunk
    reader = BytesIO(received)
    responses = [raw.comparable(raw.read_one(reader, method=request.partition(b" ")[0])) for request in requests]
    assert raw.read_one(reader).headers["x-request-id"] == LAST_ID.decode()
    return responses
