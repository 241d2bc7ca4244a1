"""Take in everybody who waits at the door.

libuv takes one connection in each round of its loop. A loop that is busy has some ten rounds a second, so newcomers
would stand in the backlog for minutes, without a word, while those who are inside are answered at once. Beside it, this
takes as many as there are in each round, up to a bound that keeps a round short.
"""

import asyncio
import socket
from collections.abc import Callable

from uvicorn import Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regulars.kit import log

ACCEPTED_PER_ROUND_MAX = 128
# When there are no handles left, somebody must go before anybody can come.
AGAIN_AFTER_S = 0.1

_log = log.get(__name__)


class AcceptingServer(Server):
    """Uvicorn's, on sockets that are already bound."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.servers += [Door(listening, self._new_protocol) for listening in sockets or ()]  # type: ignore[misc]  # it has what is asked of it

    def _new_protocol(self) -> HttpToolsProtocol:
        made = self.config.http_protocol_class
        return made(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg,return-value]  # as uvicorn makes it


class Door:
    """Has what uvicorn asks of a server: to close, and to be waited for."""

    def __init__(self, listening: socket.socket, new_protocol: Callable[[], HttpToolsProtocol]) -> None:
        self._loop = asyncio.get_running_loop()
        # A handle of our own: the loop watches the other for itself.
        self._listening = listening.dup()
        self._listening.setblocking(False)
        self._new_protocol = new_protocol
        self._entering: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._open()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listening)
            self._listening.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._entering)

    def _open(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_ROUND_MAX):
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("server.cannot_accept", error=type(error).__name__, reason=error.strerror)
                self._loop.remove_reader(self._listening)
                self._loop.call_later(AGAIN_AFTER_S, self._open)
                return
            entering = self._loop.create_task(self._enter(connection))
            self._entering.add(entering)
            entering.add_done_callback(self._entering.discard)

    async def _enter(self, connection: socket.socket) -> None:
        try:
            _, protocol = await self._loop.connect_accepted_socket(self._new_protocol, connection)
        except OSError:
            # Whoever it was has gone again.
            connection.close()
            return
        if self._is_closed:
            protocol.shutdown()
