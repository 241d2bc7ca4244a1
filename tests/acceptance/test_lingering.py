"""A refusal in the middle of a body reaches a caller who sends it all before it listens."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.support import raw, samples
from tests.support.api import StartServer
from tests.support.client import Api
from tests.support.server import Server

JSON = (b"Content-Type", b"application/json")
MIB = 1 << 20
PIECE = b" " * 65_536


def head(api: Api, method: bytes, target: bytes, *headers: raw.Header, closes: bool) -> bytes:
    request = raw.request_bytes(method, target, [*api.key_header(), *headers])
    return request if closes else raw.keep_alive(request)


def send_all_then_listen(server: Server, start: bytes, pieces: Iterator[bytes]) -> raw.Answer:
    """Like most clients: one that cannot send the whole request reads no answer."""
    with socket.create_connection(server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(start)
        for piece in pieces:
            connection.sendall(piece)
        answer = raw.read_answer(connection)
        # The server closes its side, so that the client does not wait for more.
        assert connection.recv(1) == b""
        return answer


def plain(size: int) -> Iterator[bytes]:
    return (PIECE for _ in range(size // len(PIECE)))


def chunked(size: int) -> Iterator[bytes]:
    yield from (b"%x\r\n%b\r\n" % (len(PIECE), PIECE) for _ in range(size // len(PIECE)))
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("size", [4 * MIB, 16 * MIB, 64 * MIB])
def test_a_body_of_any_size_gets_its_413(api: Api, either_server: Server, size: int, closes: bool) -> None:
    for target in (b"/v1/sales-events", b"/v1/profiles"):
        start = head(api, b"POST", target, JSON, (b"Content-Length", b"%d" % size), closes=closes)
        for _ in range(3):
            assert send_all_then_listen(either_server, start, plain(size)).status == 413


@pytest.mark.parametrize("closes", [True, False])
def test_the_caller_receives_every_early_refusal(api: Api, either_server: Server, closes: bool) -> None:
    length = (b"Content-Length", b"%d" % (16 * MIB))
    text = (b"Content-Type", b"text/plain")
    in_chunks = (b"Transfer-Encoding", b"chunked")
    key = samples.unique().encode()
    for start, pieces, status in (
        (head(api, b"POST", b"/v1/profiles", text, length, closes=closes), plain, 415),
        (head(api, b"POST", b"/v1/profiles", JSON, length, (b"X-Big", b"x" * 20_000), closes=closes), plain, 431),
        (head(api, b"POST", b"/v1/profiles?" + b"x" * 9_000, JSON, length, closes=closes), plain, 414),
        (head(api, b"DELETE", b"/v1/profiles/nobody", JSON, length, closes=closes), plain, 413),
        (head(api, b"POST", b"/v1/profiles/batch", JSON, length, closes=closes), plain, 413),
        (head(api, b"POST", b"/v1/profiles/batch", JSON, in_chunks, closes=closes), chunked, 413),
        (head(api, b"POST", b"/v1/sales-events", JSON, in_chunks, closes=closes), chunked, 413),
        (head(api, b"POST", b"/v1/nothing", JSON, length, closes=closes), plain, 404),
        (head(api, b"PUT", b"/v1/profiles", JSON, in_chunks, closes=closes), chunked, 405),
        (head(api.as_tenant(None), b"POST", b"/v1/profiles", JSON, length, closes=closes), plain, 401),
        (head(api, b"POST", b"/v1/profiles", JSON, length, (b"Idempotency-Key", key), closes=closes), plain, 413),
        (head(api, b"POST", b"/nowhere", length, closes=closes), plain, 404),
        (head(api, b"POST", b"/v1/profiles", JSON, in_chunks, closes=closes) + b"nonsense\r\n", plain, 400),
    ):
        assert send_all_then_listen(either_server, start, pieces(16 * MIB)).status == status


def test_a_refused_request_whose_short_body_follows_leaves_the_connection_open(api: Api, either_server: Server) -> None:
    """Many clients send head and body apart; a refusal that was quicker than the body is no reason to hang up."""
    body = samples.json_bytes(samples.profile())
    refused = raw.keep_alive(raw.request_bytes(b"POST", b"/v1/nothing", [*api.key_header(), JSON], body))
    taken = raw.keep_alive(raw.request_bytes(b"POST", b"/v1/profiles", [*api.key_header(), JSON], body))
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        reader = connection.makefile("rb")
        for _ in range(3):
            connection.sendall(refused.removesuffix(body))
            assert raw.read_one(reader).status == 404
            connection.sendall(body + taken)
            assert raw.read_one(reader).status in {200, 201}


def test_a_caller_that_was_refused_before_100_continue_starts_anew(api: Api, either_server: Server) -> None:
    """It may or may not send the body it asked about, so nothing after it could be told from that body."""
    headers = [*api.key_header(), (b"Expect", b"100-continue"), (b"Content-Length", b"20")]
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(raw.keep_alive(raw.request_bytes(b"POST", b"/v1/profiles", headers)))
        answer = raw.read_answer(connection)
        assert (answer.status, answer.headers["connection"]) == (415, "close")
        assert connection.recv(1) == b""


def test_lingering_ends_when_the_server_stops(api: Api, start_server: StartServer) -> None:
    server = start_server()
    start = head(api, b"POST", b"/v1/profiles", JSON, (b"Content-Length", b"%d" % (64 * MIB)), closes=True)
    with closing(socket.create_connection(server.address, timeout=raw.ANSWER_SECONDS_MAX)) as connection:
        connection.sendall(start)
        assert raw.read_answer(connection).status == 413
        # `stop` fails if the server takes longer than its grace, and lingering may take twice as long as that.
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        while stopping.is_alive():
            try:
                connection.sendall(PIECE)
            except OSError:
                break
            time.sleep(0.01)
        stopping.join()


def test_what_never_ends_is_cut_off_all_the_same(api: Api, either_server: Server) -> None:
    start = head(api, b"POST", b"/v1/profiles", JSON, (b"Content-Length", b"%d" % (1 << 40)), closes=True)
    sent = 0
    with socket.create_connection(either_server.address, timeout=raw.ANSWER_SECONDS_MAX) as connection:
        connection.sendall(start)
        with contextlib.suppress(ConnectionError):
            while sent < 200 * MIB:
                sent += connection.send(PIECE)
    assert 79 * MIB < sent < 100 * MIB
