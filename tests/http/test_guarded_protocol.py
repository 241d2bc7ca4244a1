"""Nothing keeps a connection open for good."""

import asyncio

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from regulars.http.guarded_protocol import GuardedProtocol

pytestmark = pytest.mark.anyio


class Transport(asyncio.Transport):
    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 1) if name in {"peername", "sockname"} else default

    def is_closing(self):
        return False


async def answer(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def wait_for_the_answer(protocol) -> None:
    for _ in range(100):
        if protocol.cycle.response_complete:
            return
        await asyncio.sleep(0)
    raise AssertionError("no answer")


async def test_empty_lines_after_an_answer_do_not_end_the_wait_for_the_next_request():
    config = Config(answer, log_level="warning", access_log=False)
    config.load()
    protocol = GuardedProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    transport = Transport()
    transport.write = lambda data: None
    transport.close = lambda: None
    protocol.connection_made(transport)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await wait_for_the_answer(protocol)
    assert protocol.timeout_keep_alive_task is not None
    protocol.data_received(b"\r\n")
    assert protocol.timeout_keep_alive_task is None
    assert protocol._head_timer is not None
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert protocol._head_timer is None
    await wait_for_the_answer(protocol)
    protocol.connection_lost(None)
    assert protocol._head_timer is None
