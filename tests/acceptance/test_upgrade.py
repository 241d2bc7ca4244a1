"""An offer to speak another protocol is ignored: the request is what it is, with its body."""

import socket
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.server import Server

JSON = (b"Content-Type", b"application/json")
OFFER = [
    (b"Connection", b"Upgrade, HTTP2-Settings"),
    (b"Upgrade", b"h2c"),
    (b"HTTP2-Settings", b"AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"),
]
WEBSOCKET = [(b"Connection", b"upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13")]


def in_one(request: bytes) -> list[bytes]:
    return [request]


def head_and_body(request: bytes) -> list[bytes]:
    cut = request.index(b"\r\n\r\n") + 4
    return [request[:cut], request[cut:]]


def in_the_middle(request: bytes) -> list[bytes]:
    """Cuts inside the offer, inside the head, and inside the body."""
    cuts = [0, request.index(b"Upgrade") + 3, request.index(b"\r\n\r\n") + 2, len(request) - 7, len(request)]
    return [request[start:end] for start, end in pairwise(cuts)]


CUTS = [in_one, head_and_body, in_the_middle]
cut_in_each_way = pytest.mark.parametrize("cut", CUTS)


@pytest.fixture
def conversation(either_server: Server, api: Api) -> Iterator[Callable[..., raw.Answer]]:
    """Say pieces on one connection, each in a packet of its own, and hear the next answer."""
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")

        def say(*pieces: bytes) -> raw.Answer:
            for number, piece in enumerate(pieces):
                if number:
                    # The server has read the piece before once it has answered another caller.
                    api.on(either_server).get("/v1/stores")
                connection.sendall(piece)
            return raw.read_one(reader)

        yield say


def post(api: Api, target: bytes, body: bytes, *headers: raw.Header) -> bytes:
    return raw.keep_alive(raw.request_bytes(b"POST", target, [*api.key_header(), JSON, *headers], body))


@cut_in_each_way
@pytest.mark.parametrize("offer", [OFFER, WEBSOCKET])
def test_a_sale_with_an_offer_is_recorded_with_its_body(
    api: Api, store: dict[str, Any], conversation: Callable[..., raw.Answer], cut: Callable[..., Any], offer: Any
) -> None:
    # A first call puts the key in the cache, so that those after it may take the lane.
    for _ in range(3):
        sale = samples.json_bytes(samples.sale(store["external_id"]))
        key = (b"Idempotency-Key", samples.unique().encode())
        request = post(api, b"/v1/sales-events", sale, *offer, key)
        first, again = conversation(*cut(request)), conversation(*cut(request))
        assert (first.status, again.status) == (201, 201)
        assert again.headers["idempotent-replayed"] == "true"
        assert again.body == first.body


@cut_in_each_way
def test_other_writes_and_chunked_bodies_keep_their_body_too(
    api: Api, conversation: Callable[..., raw.Answer], cut: Callable[..., Any]
) -> None:
    body = samples.json_bytes(samples.profile())
    assert conversation(*cut(post(api, b"/v1/profiles", body, *OFFER))).status == 201
    chunked = raw.chunked_bytes(b"POST", b"/v1/profiles", [*api.key_header(), JSON, *OFFER], [body[:9], body[9:]])
    assert conversation(*cut(raw.keep_alive(chunked))).status == 200


@cut_in_each_way
@pytest.mark.parametrize("target", [b"/v1/sales-events", b"/v1/stores"])
def test_a_body_that_looks_like_a_request_is_never_run_as_one(
    api: Api, conversation: Callable[..., raw.Answer], cut: Callable[..., Any], target: bytes
) -> None:
    name = samples.unique("smuggled")
    inner = post(api, b"/v1/stores", samples.json_bytes({"external_id": name}))
    assert conversation(*cut(post(api, target, inner, *OFFER))).status == 400
    # The next answer on this connection belongs to the next request, and nothing was run in between.
    after = raw.keep_alive(raw.request_bytes(b"GET", b"/v1/stores/%b" % name.encode(), api.key_header()))
    assert conversation(after).status == 404


def test_many_offers_in_one_packet_are_answered_in_their_order(
    api: Api, conversation: Callable[..., raw.Answer]
) -> None:
    names = [samples.unique() for _ in range(200)]
    offers = [
        post(api, b"/v1/stores", samples.json_bytes({"external_id": name}), *OFFER) for name in [*names, names[0]]
    ]
    answers = [conversation(b"".join(offers))] + [conversation() for _ in names]
    assert [answer.status for answer in answers] == [201] * len(names) + [200]


def test_a_read_with_an_offer_is_read(api: Api, conversation: Callable[..., raw.Answer]) -> None:
    request = raw.keep_alive(raw.request_bytes(b"GET", b"/v1/stores", [*api.key_header(), *OFFER]))
    assert [conversation(request).status, conversation(request).status] == [200, 200]


@pytest.mark.parametrize("target", [b"regulars.test:443", b"/v1/stores"])
def test_a_tunnel_is_refused_and_what_is_sent_through_it_not_run(
    api: Api, either_server: Server, target: bytes
) -> None:
    name = samples.unique("tunnelled")
    inner = post(api, b"/v1/stores", samples.json_bytes({"external_id": name}))
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(raw.keep_alive(raw.request_bytes(b"CONNECT", target, api.key_header())) + inner)
        assert raw.read_answer(connection).status == 400
        connection.sendall(inner)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1024) == b""
    assert api.get(f"/v1/stores/{name}").status == 404
