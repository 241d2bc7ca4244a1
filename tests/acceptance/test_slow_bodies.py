"""Slow and steady is served; a body that stalls is told so. Its waits are shorter than the real ones."""

import json
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.contract import Contract
from tests.support.server import Server, running_server
from tests.support.tenant import new_tenant

JSON = (b"Content-Type", b"application/json")
PATIENCE = {"silence_s": 2.0, "grace_s": 2.0, "bytes_per_s_min": 10_000, "total_s": 60.0}


NEVER_MADE = "never-made"
LANES = ("on", "off")


@pytest.fixture(scope="module")
def api(server: Server, contract: Contract, http: httpx.Client, api_database_url: str) -> Api:
    return Api(server, contract, http, new_tenant(api_database_url))


@pytest.fixture(scope="module")
def answers(api: Api, api_database_url: str) -> Iterator[dict[tuple[str, str], list[raw.Answer]]]:
    """What each kind of slow body gets, on the lane and off it. All are sent at once, because each takes seconds."""
    with ExitStack() as stack, ThreadPoolExecutor(len(LANES) * len(KINDS)) as pool:
        servers = {
            lane: stack.enter_context(
                running_server(api_database_url, body_timeouts=PATIENCE, options={"has_fast_protocol": lane == "on"})
            )
            for lane in LANES
        }
        sending = {
            (kind, lane): pool.submit(send, api, servers[lane]) for kind, send in KINDS.items() for lane in LANES
        }
        yield {case: sent.result() for case, sent in sending.items()}


def post(api: Api, target: bytes, body: bytes) -> tuple[bytes, bytes]:
    request = raw.request_bytes(b"POST", target, [*api.key_header(), JSON], body)
    return request.removesuffix(body), body


def connect(server: Server) -> socket.socket:
    return socket.create_connection(server.address, timeout=raw.ANSWER_SECONDS_MAX)


def fall_silent(api: Api, server: Server) -> list[raw.Answer]:
    answers = []
    with ExitStack() as stack:
        silent = []
        for target in (b"/v1/profiles", b"/v1/sales-events"):
            for sent in (0, 1, 40):
                head, body = post(api, target, samples.json_bytes(samples.profile(external_id=NEVER_MADE)))
                connection = stack.enter_context(connect(server))
                connection.sendall(head + body[:sent])
                silent.append(connection)
        for connection in silent:
            answers.append(raw.read_answer(connection))
            assert connection.recv(1) == b""
    return answers


def trickle(api: Api, server: Server) -> list[raw.Answer]:
    head, _ = post(api, b"/v1/profiles", b" " * 100_000)
    with connect(server) as connection:
        connection.sendall(head)
        # Until it is readable: that is the refusal.
        while not select.select([connection], [], [], 0.05)[0]:
            connection.send(b" ")
        return [raw.read_answer(connection)]


def go_on_steadily(api: Api, server: Server) -> list[raw.Answer]:
    """For many times as long as a silent body may take."""
    head, body = post(api, b"/v1/profiles", samples.json_bytes({**samples.profile(), "pad": "x" * 200_000}))
    with connect(server) as connection:
        connection.sendall(head)
        for start in range(0, len(body), 10_000):
            connection.sendall(body[start : start + 10_000])
            time.sleep(0.15)
        return [raw.read_answer(connection)]


KINDS = {"silent": fall_silent, "trickling": trickle, "steady": go_on_steadily}


@pytest.mark.parametrize("lane", LANES)
def test_a_body_that_falls_silent_is_408_and_was_not_run(
    api: Api, answers: dict[tuple[str, str], list[raw.Answer]], lane: str
) -> None:
    assert len(answers["silent", lane]) == 6
    for answer in answers["silent", lane]:
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert json.loads(answer.body)["code"] == "REQUEST_TIMEOUT"
    assert api.get(f"/v1/profiles/{NEVER_MADE}").status == 404


@pytest.mark.parametrize(("kind", "status"), [("trickling", 408), ("steady", 201)])
def test_a_body_that_trickles_is_408_and_a_steady_one_may_take_its_time(
    answers: dict[tuple[str, str], list[raw.Answer]], kind: str, status: int
) -> None:
    assert [answer.status for lane in LANES for answer in answers[kind, lane]] == [status] * 2
