"""Newcomers are taken in at once, however many they are and however few rounds the loop has for them."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator

import pytest
import uvicorn
import uvloop
from tests.support.waiting import until

from regulars.processes import accepting
from regulars.processes.accepting import AcceptingServer, Acceptor

CROWD = 500


async def application(_scope, _receive, _send):
    """Nothing is asked of it here."""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=CROWD) as made:
        yield made


@contextlib.contextmanager
def crowd(listening: socket.socket, count: int) -> Iterator[None]:
    """So many stand at the acceptor already."""
    with contextlib.ExitStack() as open_:
        for _ in range(count):
            open_.enter_context(socket.create_connection(listening.getsockname(), timeout=10))
        yield


@contextlib.asynccontextmanager
async def serving(listening: socket.socket):
    config = uvicorn.Config(application, http="httptools", lifespan="off", log_config=None)
    config.load()
    server = AcceptingServer(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listening])
    try:
        yield server
    finally:
        await server.shutdown([listening])


async def rounds_until_all_are_in(server: AcceptingServer, count: int) -> int:
    rounds = 0
    async with asyncio.timeout(20):
        while len(server.server_state.connections) < count:
            rounds += 1
            await asyncio.sleep(0)
    return rounds


def run(main) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def test_a_crowd_is_in_after_a_few_rounds(listening):
    async def main() -> None:
        with crowd(listening, CROWD):
            async with serving(listening) as server:
                # One a round would take five hundred.
                assert await rounds_until_all_are_in(server, CROWD) < CROWD / 5

    run(main())


def test_who_finds_no_handle_free_is_taken_in_when_there_is_one(listening, monkeypatch):
    monkeypatch.setattr(accepting, "RETRY_AFTER_S", 0.01)
    refusals = iter([OSError(errno.EMFILE, "Too many open files")] * 3)

    class Full:
        """A socket that has no handles left, three times."""

        def __init__(self, real: socket.socket) -> None:
            self._real = real
            self.fileno, self.close, self.setblocking = real.fileno, real.close, real.setblocking

        def accept(self):
            if (refusal := next(refusals, None)) is not None:
                raise refusal
            return self._real.accept()

        def dup(self):
            return Full(self._real.dup())

    async def main() -> None:
        entered: list[object] = []

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                entered.append(transport)

        with crowd(listening, 2):
            acceptor = Acceptor(Full(listening), Protocol)
            await until(lambda: len(entered) >= 2)
            acceptor.close()
            await acceptor.wait_closed()
            for transport in entered:
                transport.abort()

    run(main())
    assert next(refusals, None) is None


def test_connections_accepted_just_before_the_close_are_shut_down(listening):
    async def main() -> None:
        shut_down: list[object] = []

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                self.transport = transport

            def shutdown(self):
                shut_down.append(self)
                self.transport.abort()

        with crowd(listening, 3):
            acceptor = Acceptor(listening, Protocol)
            acceptor._accept()
            acceptor.close()
            acceptor.close()
            await acceptor.wait_closed()
        assert len(shut_down) == 3

    run(main())
