"""Nothing keeps a connection open for good, and packets do not change what a request is."""

import asyncio
import contextlib
import itertools
import re
import socket

import pytest
from tests.support.waiting import until
from uvicorn import Config
from uvicorn.server import ServerState

from regulars.http import limited_protocol, lingering
from regulars.http.limited_protocol import LimitedProtocol

pytestmark = pytest.mark.anyio


class Transport(asyncio.Transport):
    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 1) if name in {"peername", "sockname"} else default

    def is_closing(self):
        return False

    def do_nothing(self):
        pass

    close = write_eof = pause_reading = resume_reading = do_nothing


async def answer(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def test_empty_lines_after_an_answer_do_not_end_the_wait_for_the_next_request():
    config = Config(answer, log_level="warning", access_log=False)
    config.load()
    protocol = LimitedProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    transport = Transport()
    transport.write = lambda data: None
    protocol.connection_made(transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await until(lambda: protocol.cycle.response_complete)
    assert protocol.timeout_keep_alive_task is not None
    protocol.data_received(b"\r\n")
    assert protocol.timeout_keep_alive_task is None
    assert protocol._head_timer is not None
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert protocol._head_timer is None
    await until(lambda: protocol.cycle.response_complete)
    protocol.connection_lost(None)
    assert protocol._head_timer is None


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("first", "between", "statuses"),
    [
        (GET, b"\r\n\r\n", [204, 204]),
        (GET, b"\r", [204, 400]),
        (GET, b"\n", [204, 400]),
        (POST + b"Content-Length: 4\r\n\r\n\r\n\r\n", b"", [204, 204]),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", [204, 204]),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"\n", [204, 400]),
    ],
)
async def test_a_request_is_the_same_in_any_packets(first, between, statuses):
    config = Config(answer, log_level="warning", access_log=False)
    config.load()
    sent = first + between + GET
    end = len(first + between)
    for cuts in itertools.combinations(range(end - 12, end + 3), 2):
        protocol = LimitedProtocol(config, ServerState(), {}, asyncio.get_running_loop())
        transport, written = Transport(), []
        transport.write = written.append
        protocol.connection_made(transport)
        for start, stop in itertools.pairwise([0, *cuts, len(sent)]):
            protocol.data_received(sent[start:stop])
        await until(lambda protocol=protocol: protocol.cycle.response_complete and not protocol.pipeline, every_s=0)
        assert [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", b"".join(written))] == statuses, cuts
        protocol.connection_lost(None)


SIZE = 16 << 20


async def answer_at_length(scope, receive, send):
    headers = [(b"content-length", b"%d" % SIZE)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * SIZE})


@contextlib.asynccontextmanager
async def listening():
    """The port of a server with this protocol, and its connections."""
    config = Config(answer_at_length, log_level="warning", access_log=False)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LimitedProtocol(config, state, {}, loop), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], state.connections
    finally:
        server.close()


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
async def test_a_caller_that_never_takes_its_answer_is_let_go(monkeypatch, last):
    monkeypatch.setattr(limited_protocol, "UNSENT_WAIT_S", 0.2)
    async with listening() as (port, connections):
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + last + b"\r\n")
            await until(lambda: connections)
            await until(lambda: not connections)


async def test_a_caller_that_takes_its_answer_slowly_gets_all_of_it(monkeypatch):
    monkeypatch.setattr(limited_protocol, "UNSENT_WAIT_S", 1.0)
    async with listening() as (port, _connections):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        taken = 0
        while chunk := await reader.read(1 << 20):
            taken += len(chunk)
            await asyncio.sleep(0.01)
        writer.close()
    assert taken == SIZE


async def test_a_connection_that_is_closed_with_an_unread_answer_ends_too(monkeypatch):
    """Below the mark at which writing pauses, closing would wait for the caller for ever."""
    monkeypatch.setattr(lingering, "LINGER_S", 0.2)
    async with listening() as (port, connections):
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await until(lambda: connections and next(iter(connections))._has_responded())
            (connection,) = connections
            connection._stop_watching_unsent()
            connection.timeout_keep_alive_handler()
            await until(lambda: not connections)
