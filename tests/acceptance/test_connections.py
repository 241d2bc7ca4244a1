"""One connection, several requests, and clients that are old, careful or gone."""

import json
import socket

import pytest
from tests.support import raw, samples
from tests.support.client import Api, get_url
from tests.support.server import Server

JSON_TYPE = (b"Content-Type", b"application/json")


@pytest.fixture
def headers(api: Api) -> list[raw.Header]:
    return [*api.key_header(), JSON_TYPE]


def test_a_body_in_many_pieces_is_one_body(api: Api, headers: list[raw.Header]) -> None:
    body = samples.json_bytes(samples.profile())
    chunked = raw.chunked_bytes(b"POST", b"/v1/profiles", headers, [bytes([byte]) for byte in body])
    assert raw.exchange(api.server.address, chunked).status == 201
    request = raw.request_bytes(b"POST", b"/v1/profiles", headers, body)
    assert raw.exchange(api.server.address, *[request[start : start + 7] for start in range(0, len(request), 7)]).status == 200  # fmt: skip


def test_a_client_that_expects_100_continue_gets_it(api: Api, headers: list[raw.Header]) -> None:
    body = samples.json_bytes(samples.profile())
    request = raw.request_bytes(b"POST", b"/v1/profiles", [*headers, (b"Expect", b"100-continue")], body)
    with socket.create_connection(api.server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(request.removesuffix(body))
        assert connection.recv(1024).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert raw.read_answer(connection).status == 201


def test_an_old_client_gets_its_answer(api: Api, headers: list[raw.Header]) -> None:
    request = raw.request_bytes(b"GET", b"/v1/stores", headers).replace(b"HTTP/1.1", b"HTTP/1.0")
    assert raw.exchange(api.server.address, request).status == 200


def test_a_client_that_hangs_up_in_the_middle_disturbs_no_other_request(api: Api, headers: list[raw.Header]) -> None:
    body = samples.json_bytes(samples.profile())
    request = raw.request_bytes(b"POST", b"/v1/profiles", headers, body)
    for sent in (10, len(request) - len(body), len(request) - 1, len(request)):
        with socket.create_connection(api.server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
            connection.sendall(request[:sent])
    assert api.get("/v1/stores").status == 200


@pytest.mark.parametrize(
    "garbage",
    [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET /v1/stores HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET /v1/stores HTTP/1.1\r\nBad Header: x\r\n\r\n", b"POST /v1/stores HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST /v1/stores HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", b"POST /v1/stores HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_what_is_not_http_is_refused_and_disturbs_no_other_request(api: Api, garbage: bytes) -> None:
    with socket.create_connection(api.server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        answered = connection.recv(65_536)
    assert answered == b"" or b" 4" in answered.partition(b"\r\n")[0]
    assert api.get("/v1/stores").status == 200


def test_a_head_that_never_ends_is_refused_and_its_caller_gets_the_refusal(either_server: Server) -> None:
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(b"GET /v1/stores HTTP/1.1\r\nHost: x\r\nX-Endless: ")
        for _ in range(64):
            connection.sendall(b"x" * 65_536)
        answer = raw.read_answer(connection)
    assert answer.status == 431
    assert json.loads(answer.body)["code"] == "HEADERS_TOO_LARGE"


def test_other_methods_of_a_literal_path_are_not_references_to_a_subscription(api: Api) -> None:
    for path in ("/v1/subscriptions/opt-in", "/v1/subscriptions/opt-out"):
        answer = raw.send(api.server.address, "GET", path, headers=api.key_header())
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/", "/nowhere"])
def test_pages_carry_a_request_id_too(server: Server, path: str) -> None:
    own = get_url(server.url + path, headers={"X-Request-Id": "till-1"})
    assert own.headers["x-request-id"] == "till-1"
    assert len(get_url(server.url + path).headers["x-request-id"]) == 32
