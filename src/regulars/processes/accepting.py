"""Accept many waiting connections in one cycle of the event loop.

libuv accepts one connection per cycle. A busy loop has about ten cycles a second, so new connections would wait in the
backlog for minutes while open ones get their responses at once. This second acceptor takes all waiting connections in
each cycle, up to a limit that keeps a cycle short.
"""

import asyncio
import socket
from collections.abc import Callable

from uvicorn import Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regulars.kit import log

ACCEPTED_PER_CYCLE_MAX = 128
# Without free file descriptors, a connection must close before the next one can be accepted.
RETRY_AFTER_S = 0.1

_log = log.get(__name__)


class AcceptingServer(Server):
    """Uvicorn's server on sockets that are already bound, with an `Acceptor` for each."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.servers += [Acceptor(listening, self._new_protocol) for listening in sockets or ()]  # type: ignore[misc]  # it has the methods that uvicorn calls

    def _new_protocol(self) -> HttpToolsProtocol:
        protocol_class = self.config.http_protocol_class
        return protocol_class(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg,return-value]  # the same call as in uvicorn


class Acceptor:
    """Accepts the connections of one socket; it has the methods of a server that uvicorn calls."""

    def __init__(self, listening: socket.socket, new_protocol: Callable[[], HttpToolsProtocol]) -> None:
        self._loop = asyncio.get_running_loop()
        # A duplicate of the file descriptor, because libuv watches the original.
        self._listening = listening.dup()
        self._listening.setblocking(False)
        self._new_protocol = new_protocol
        self._connecting: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._open()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listening)
            self._listening.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._connecting)

    def _open(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_CYCLE_MAX):
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("server.cannot_accept", error=type(error).__name__, reason=error.strerror)
                self._loop.remove_reader(self._listening)
                self._loop.call_later(RETRY_AFTER_S, self._open)
                return
            connecting = self._loop.create_task(self._connect(connection))
            self._connecting.add(connecting)
            connecting.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            _, protocol = await self._loop.connect_accepted_socket(self._new_protocol, connection)
        except OSError:
            # The client has closed the connection already.
            connection.close()
            return
        if self._is_closed:
            protocol.shutdown()
