"""What follows a chunked body is no header, and is not collected for ever."""

import json
import socket
from typing import Any

import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.server import Server

JSON = (b"Content-Type", b"application/json")


def with_trailers(request: bytes, *trailers: raw.Header) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % trailer for trailer in trailers)
    return request.removesuffix(b"\r\n") + lines + b"\r\n"


@pytest.mark.parametrize("target", [b"/v1/profiles", b"/v1/sales-events"])
def test_trailers_are_not_read_as_headers(
    api: Api, either_server: Server, store: dict[str, Any], target: bytes
) -> None:
    def say(*headers: raw.Header, trailers: list[raw.Header]) -> raw.Answer:
        body = samples.profile() if target == b"/v1/profiles" else samples.sale(store["external_id"])
        request = raw.chunked_bytes(b"POST", target, headers, [samples.json_bytes(body)])
        return raw.exchange(either_server.address, with_trailers(request, *trailers))

    (key,) = api.key_header()
    assert say(key, JSON, trailers=[(b"X-Checksum", b"abc")]).status == 201
    assert say(key, JSON, trailers=[key]).status == 201
    assert say(JSON, trailers=[key]).status == 401
    assert say(key, trailers=[JSON]).status == 415
    assert say(key, JSON, trailers=[(b"Content-Encoding", b"gzip"), (b"Host", b"other")]).status == 201
    for _ in range(2):
        answer = say(key, JSON, trailers=[(b"Idempotency-Key", b"one"), (b"X-Request-Id", b"from-a-trailer")])
        assert (answer.status, answer.headers["idempotent-replayed"]) == (201, None)
        assert answer.headers["x-request-id"] != "from-a-trailer"


def test_a_trailer_that_never_ends_is_refused(api: Api, either_server: Server) -> None:
    request = raw.chunked_bytes(b"POST", b"/v1/profiles", [*api.key_header(), JSON], [b"{}"])
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(request.removesuffix(b"\r\n") + b"X-Endless: ")
        for _ in range(64):
            connection.sendall(b"x" * 65_536)
        answer = raw.read_answer(connection)
    assert answer.status == 431
    assert json.loads(answer.body)["code"] == "HEADERS_TOO_LARGE"


def test_a_large_body_before_the_next_head_in_one_packet_is_no_large_head(api: Api, either_server: Server) -> None:
    large = samples.json_bytes({**samples.profile(), "pad": "x" * 900_000})
    requests = b"".join(
        raw.keep_alive(raw.request_bytes(b"POST", b"/v1/profiles", [*api.key_header(), JSON], large)) for _ in range(4)
    )
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(requests)
        reader = connection.makefile("rb")
        assert [raw.read_one(reader).status for _ in range(4)] == [201, 200, 200, 200]
