"""Slow and steady is served; a body that stalls is told so. Its waits are shorter than the real ones."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.server import Server, running_server

JSON = (b"Content-Type", b"application/json")
PATIENCE = {"silence_s": 2.0, "grace_s": 2.0, "bytes_per_s_min": 10_000, "total_s": 60.0}


@pytest.fixture(scope="module", params=["on", "off"])
def hasty_server(request: pytest.FixtureRequest, api_database_url: str) -> Iterator[Server]:
    with running_server(api_database_url, body_timeouts=PATIENCE, fast_lane=request.param) as server:
        yield server


def post(api: Api, target: bytes, body: bytes) -> tuple[bytes, bytes]:
    request = raw.request_bytes(b"POST", target, [*api.key_header(), JSON], body)
    return request.removesuffix(body), body


def test_a_body_that_falls_silent_is_408_and_was_not_run(api: Api, hasty_server: Server) -> None:
    profile = samples.profile()
    with ExitStack() as stack:
        silent = []
        for target in (b"/v1/profiles", b"/v1/sales-events"):
            for sent in (0, 1, 40):
                head, body = post(api, target, samples.json_bytes(profile))
                connection = stack.enter_context(
                    socket.create_connection(hasty_server.address, timeout=raw.ANSWER_SECONDS_MAX)
                )
                connection.sendall(head + body[:sent])
                silent.append(connection)
        for connection in silent:
            answer = raw.read_answer(connection)
            assert (answer.status, answer.headers["connection"]) == (408, "close")
            assert json.loads(answer.body)["code"] == "REQUEST_TIMEOUT"
            assert connection.recv(1) == b""
    assert api.get(f"/v1/profiles/{profile['external_id']}").status == 404


def test_a_body_that_trickles_is_408(api: Api, hasty_server: Server) -> None:
    head, _ = post(api, b"/v1/profiles", b" " * 100_000)
    answer = b""
    with socket.create_connection(hasty_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(head)
        connection.setblocking(False)
        for _ in range(1000):
            connection.send(b" ")
            time.sleep(0.05)
            try:
                answer = connection.recv(1000)
            except BlockingIOError:
                continue
            break
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_steady_body_may_take_many_times_as_long_as_a_silent_one(api: Api, hasty_server: Server) -> None:
    head, body = post(api, b"/v1/profiles", samples.json_bytes({**samples.profile(), "pad": "x" * 200_000}))
    with socket.create_connection(hasty_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(head)
        for start in range(0, len(body), 10_000):
            connection.sendall(body[start : start + 10_000])
            time.sleep(0.15)
        assert raw.read_answer(connection).status == 201
