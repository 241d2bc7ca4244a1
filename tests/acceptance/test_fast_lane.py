"""The short way of requests through the server answers like the long one, whatever is sent to it."""

import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.server import Server
from tests.support.tenant import Tenant, new_tenant

TARGET = b"/v1/sales-events"
JSON = (b"Content-Type", b"application/json")


def key_of(tenant: Tenant) -> raw.Header:
    return (b"x-api-key", tenant.key.encode())


def ticket(number: int, **changes: Any) -> dict[str, Any]:
    fixed = {"external_id": f"S1:{number}", "occurred_at": "2026-01-05T10:00:00+01:00", "profile_id": f"c{number}"}
    return {**samples.sale("S1"), **fixed, **changes}


def reads_and_other_writes(key: raw.Header) -> list[bytes]:
    """Every kind of route; each read twice, because the second finds its head remembered."""

    def post(target: bytes, body: object, *headers: raw.Header) -> bytes:
        return raw.request_bytes(b"POST", target, [key, JSON, *headers], raw.json_body(body))

    def get(target: bytes, *headers: raw.Header) -> bytes:
        return raw.request_bytes(b"GET", target, [key, *headers])

    targets = (
        b"/v1/profiles/ada",
        b"/v1/profiles/a%2Fb",
        b"/v1/profiles/%FF",
        b"/v1/profiles/nobody",
        b"/v1/profiles/ada/attributes",
        b"/v1/sales-events/S1:1",
        b"/v1/sales-events?limit=2&type=PURCHASE",
        b"/v1/sales-events?limit=0",
        b"/v1/stores?limit=5&",
        b"/v1/stores?unknown=1",
        b"/v1/nothing",
        b"/v1/subscriptions",
        b"/v1//profiles",
    )
    consent = {
        "phone_number": "+33612345678",
        "consent_source": "WEBSITE",
        "consented_at": "2026-01-05T10:00:00Z",
        "profile_id": "ada",
    }
    return [
        post(b"/v1/profiles", {"external_id": "ada", "attributes": {"a": "1"}}),
        post(b"/v1/profiles", {"external_id": "ada", "attributes": {"a": "2"}}, (b"Idempotency-Key", b"p-1")),
        post(b"/v1/profiles", {"external_id": "ada", "attributes": {"a": "2"}}, (b"Idempotency-Key", b"p-1")),
        post(b"/v1/profiles", {"external_id": "a/b", "first_name": 7}),
        post(b"/v1/profiles", {"external_id": "a/b"}),
        post(b"/v1/profiles/ada/attributes", {"attributes": {"b": "3"}}),
        post(b"/v1/profiles/batch", {"items": [{"external_id": "x1"}, {"external_id": "prof_x"}]}),
        post(b"/v1/subscriptions/opt-in", consent),
        post(b"/v1/subscriptions/opt-in", consent),
        post(b"/v1/subscriptions/opt-in", {**consent, "phone_number": "12"}),
        *[get(target) for target in targets for _ in range(2)],
        get(b"/v1/profiles/ada", (b"X-Request-Id", b"walk-1")),
        get(b"/v1/profiles/ada", (b"Content-Length", b"0")),
        get(b"/v1/profiles/ada", key),
        get(b"/v1/profiles/ada").replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        raw.request_bytes(b"GET", b"/v1/profiles/ada", [(b"x-api-key", b"wrong")]),
        raw.request_bytes(b"HEAD", b"/v1/profiles/ada", [key]),
        raw.request_bytes(b"DELETE", b"/v1/profiles/ada", [key]),
        get(b"/v1/profiles/ada"),
    ]


def conversation(key: raw.Header) -> list[bytes]:
    """Requests one after another, each on a connection of its own; later ones depend on earlier ones."""

    def post(body: bytes, *headers: raw.Header, target: bytes = TARGET) -> bytes:
        return raw.request_bytes(b"POST", target, [key, JSON, *headers], body)

    one, other = raw.json_body(ticket(1)), raw.json_body(ticket(1, total_amount_cents=5))
    idempotent = (b"Idempotency-Key", b"k-1")
    return [
        post(one),
        post(one),
        post(other),
        post(raw.json_body(ticket(2)), idempotent),
        post(raw.json_body(ticket(2)), idempotent),
        post(raw.json_body(ticket(3)), idempotent),
        post(raw.json_body(ticket(4)), (b"X-Request-Id", b"till-7")),
        post(raw.json_body(ticket(5)), (b"X-Request-Id", b"not sane \xff")),
        post(raw.json_body(ticket(6, store_id="nowhere")), (b"Idempotency-Key", b"k-2")),
        post(raw.json_body(ticket(6)), (b"Idempotency-Key", b"k-2")),
        post(raw.json_body(ticket(7, occurred_at="2999-01-01T00:00:00Z"))),
        post(raw.json_body(ticket(8, profile_id="prof_00000000000000000000000000"))),
        post(raw.json_body(samples.without(ticket(9), "external_id"))),
        post(b"{"),
        post(raw.json_body(ticket(10)), (b"Idempotency-Key", b"a b")),
        post(raw.json_body(ticket(10)), (b"Idempotency-Key", b"x"), (b"Idempotency-Key", b"y")),
        post(raw.json_body(ticket(11)), (b"Content-Encoding", b"gzip")),
        post(raw.json_body(ticket(12)), key),
        post(raw.json_body(ticket(13)), target=TARGET + b"?unknown=1"),
        post(raw.json_body(ticket(14)), (b"X-Padding", b"x" * 17_000)),
        post(b'{"padding":"' + b"x" * (1 << 20) + b'"}'),
        raw.request_bytes(b"POST", TARGET, [key, (b"Content-Type", b"text/plain")], raw.json_body(ticket(15))),
        raw.request_bytes(b"POST", TARGET, [key, (b"Content-Type", b"application/json; charset=UTF-8")], one),
        raw.request_bytes(b"POST", TARGET, [JSON], one),
        raw.chunked_bytes(b"POST", TARGET, [key, JSON], [raw.json_body(ticket(16))]),
        post(raw.json_body(ticket(17))).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        post(raw.json_body(ticket(18, metadata={"b": 1.5, "a": None}, payments=[{"kind": "card"}]))),
        *reads_and_other_writes(key),
    ]


def test_it_answers_like_the_long_way(server: Server, laneless_server: Server, api_database_url: str) -> None:
    answers_by_server = []
    for where in (server, laneless_server):
        tenant = new_tenant(api_database_url)
        key = key_of(tenant)
        raw.send(where.address, "POST", "/v1/stores", headers=[key, JSON], body=raw.json_body({"external_id": "S1"}))
        answers_by_server.append([raw.comparable(raw.exchange(where.address, said)) for said in conversation(key)])
    for quick, plain in zip(*answers_by_server, strict=True):
        assert quick == plain


@pytest.mark.parametrize("cut", [1, 60, 200, -10, -1])
def test_a_request_in_two_pieces_is_answered(
    server: Server, api: Api, store: dict[str, Any], cut: int, pause: Callable[[], None]
) -> None:
    assert api.tenant is not None
    said = raw.request_bytes(
        b"POST", TARGET, [key_of(api.tenant), JSON], raw.json_body(samples.sale(store["external_id"]))
    )
    with socket.create_connection(server.address, timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(said[:cut])
        pause()
        connection.sendall(said[cut:])
        assert raw.read_answer(connection).status == 201


@pytest.fixture
def pause(api: Api) -> Callable[[], None]:
    """Long enough for the server to have read the first piece: another request was answered meanwhile."""
    return lambda: [api.get("/v1/stores") for _ in range(3)] and None  # type: ignore[func-returns-value]  # for its effect


def test_a_caller_who_hangs_up_loses_nothing(server: Server, api: Api, store: dict[str, Any]) -> None:
    assert api.tenant is not None
    tickets = [samples.sale(store["external_id"]) for _ in range(20)]
    for body in tickets:
        said = raw.request_bytes(b"POST", TARGET, [key_of(api.tenant), JSON], raw.json_body(body))
        with socket.create_connection(server.address, timeout=60) as connection:
            connection.sendall(said)
    for body in tickets:
        again = api.post(TARGET.decode(), body)
        assert again.status in {200, 201}
        assert again.json()["sales_event"]["external_id"] == body["external_id"]


def repeated_heads(key: raw.Header) -> list[bytes]:
    """Requests of one connection whose heads come again, with other keys, lengths, places or letters."""

    def post(number: int, *headers: raw.Header, first: tuple[raw.Header, ...] = (), **changes: Any) -> bytes:
        body = raw.json_body(ticket(number, **changes))
        said = raw.request_bytes(b"POST", TARGET, [*first, key, JSON, *headers], body)
        return said.replace(b"Connection: close\r\n", b"")

    def padded(number: int, spaces: int) -> bytes:
        body = raw.json_body(ticket(number)) + b" " * spaces
        said = raw.request_bytes(b"POST", TARGET, [key, JSON], body)
        return said.replace(b"Connection: close\r\n", b"")

    def measured(number: int, line: bytes) -> bytes:
        return re.sub(rb"Content-Length: (\d+)", line, post(number), count=1)

    def keyed(name: bytes, value: bytes) -> raw.Header:
        return (name, value)

    upper, lower = b"Idempotency-Key", b"idempotency-key"
    return [
        post(100),
        post(101),
        post(101),
        post(102, keyed(upper, b"k-1")),
        post(103, keyed(upper, b"k-2")),
        post(103, keyed(upper, b"k-2")),
        post(104, keyed(upper, b"k-2")),
        post(105, keyed(lower, b"k-3")),
        post(106, keyed(lower, b"k-4"), (b"X-Till", b"7")),
        post(107, keyed(lower, b"k-5"), (b"X-Till", b"7")),
        post(108, first=(keyed(upper, b"k-6"),)),
        post(109, first=(keyed(upper, b"k-7"),)),
        post(110, keyed(upper, b"k-8"), keyed(lower, b"k-9")),
        post(111, keyed(lower, b"k-9"), keyed(upper, b"k-8")),
        post(112, keyed(upper, b"")),
        post(113, keyed(upper, b" k-10")),
        post(114, keyed(upper, b"a b")),
        post(115, keyed(upper, b"x" * 256)),
        post(116, (b"X-Note", b"idempotency-key: k-11")),
        post(117, (b"X-Request-Id", b"till-1")),
        post(118, (b"X-Request-Id", b"till-1")),
        post(119, store_id="nowhere"),
        post(119),
        post(120).replace(key[1], b"rk_wrong"),
        post(121),
        post(122) + post(123),
        post(124),
        padded(125, 1),
        padded(126, 3_000),
        padded(127, 300_000),
        padded(128, 256 * 1024 - len(raw.json_body(ticket(128)))),
        measured(129, rb"Content-Length: 0\1"),
        measured(130, rb"CONTENT-LENGTH: \1"),
        measured(131, rb"Content-Length:\1"),
        measured(132, rb"Content-Length:  \1 "),
        post(133),
    ]


def test_heads_that_come_again_are_read_as_the_long_way_reads_them(
    server: Server, laneless_server: Server, api_database_url: str
) -> None:
    answers_by_server = []
    for where in (server, laneless_server):
        key = key_of(new_tenant(api_database_url))
        raw.send(where.address, "POST", "/v1/stores", headers=[key, JSON], body=raw.json_body({"external_id": "S1"}))
        answers = []
        with socket.create_connection(where.address, timeout=60) as connection:
            reader = connection.makefile("rb")
            for said in repeated_heads(key):
                connection.sendall(said)
                answers += [raw.comparable(raw.read_one(reader)) for _ in range(said.count(b"POST /v1"))]
        answers_by_server.append(answers)
    for number, (quick, plain) in enumerate(zip(*answers_by_server, strict=True)):
        assert quick == plain, number
    assert [answer[0] for answer in answers_by_server[0]].count(201) == 28
