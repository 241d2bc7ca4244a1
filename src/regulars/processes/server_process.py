"""Run uvicorn with the application in this process, on a socket that is already bound, until it is stopped."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import uvicorn

from regulars.http.application import Application
from regulars.http.limited_protocol import ConnectionsState
from regulars.kit import log, metrics
from regulars.kit.clock import monotonic
from regulars.kit.process import Stop, reduce_garbage_collection
from regulars.kit.settings import Settings
from regulars.processes.accepting import AcceptingServer
from regulars.processes.listening import BACKLOG
from regulars.server import create_app

# Longer than the idle time of usual proxies and client pools, so that they close an idle connection first. Otherwise
# they might send a request on a connection that we are closing.
KEEP_ALIVE_S: Final = 75
# A caller that opens a connection for each request may have none open at the moment.
NO_CONNECTION_S: Final = 0.2
CHECK_CONNECTIONS_S: Final = 0.02
# The part of the grace period that is reserved for closing the pool after the last response.
CLOSING_S: Final = 1
# A process that still runs this long after the grace period is ended by force.
STUCK_S: Final = 5
EXIT_CODE_BY_FORCE: Final = 70

_log = log.get(__name__)


class _UvicornServer(AcceptingServer):
    """Before it stops, it drains for `drain_s`: it still accepts connections and answers requests, and closes each
    connection after its response. So callers come to know that it stops, and none is cut off in a request."""

    def __init__(
        self, config: uvicorn.Config, *, drain_s: float, hurried: asyncio.Event, when_started: asyncio.Event
    ) -> None:
        super().__init__(config)
        self._drain_s = drain_s
        self._hurried = hurried
        self._state = self.server_state = ConnectionsState()
        self._when_started = when_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_started.set()

    def start_draining(self) -> None:
        self._state.start_draining()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._wait_for_connections()
        await super().shutdown(sockets)

    async def _wait_for_connections(self) -> None:
        """Wait until no connection has been open for a moment, the time is over, or the stop is hurried."""
        now = last_open = started = monotonic()
        while now - started < self._drain_s and now - last_open < NO_CONNECTION_S and not self._hurried.is_set():
            await asyncio.sleep(CHECK_CONNECTIONS_S)
            now = monotonic()
            if self._state.connections:
                last_open = now

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the command, which has children to stop as well."""
        yield


async def serve(
    settings: Settings,
    listening: socket.socket,
    *,
    stop: Stop,
    started: asyncio.Event,
    shared: memoryview | None = None,
) -> bool:
    """Serve until a stop is requested; return whether the server started. In the memory `shared`, all
    server processes count the requests of an API key together."""
    app = create_app(settings, shared=shared, is_stopping=stop.requested.is_set)
    server = _UvicornServer(
        uvicorn_config(settings, app), drain_s=settings.drain_s, hurried=stop.hurried, when_started=started
    )
    reduce_garbage_collection()
    serving = asyncio.create_task(_serve(server, listening))
    publishing = asyncio.create_task(_publish_metrics(stop.requested))
    stopping = asyncio.create_task(stop.requested.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        server.start_draining()
        server.should_exit = True
        with _exits_by_force(after_s=settings.drain_s + settings.shutdown_grace_s + STUCK_S):
            await serving
    finally:
        for task in (publishing, stopping):
            task.cancel()
    return server.started


@contextlib.contextmanager
def _exits_by_force(*, after_s: float) -> Iterator[None]:
    """End the process if the `with` block does not end in time; from a thread, which works while the event loop is
    blocked."""

    def exit_now() -> None:
        _log.error("server.left_by_force", after_s=after_s)
        os._exit(EXIT_CODE_BY_FORCE)

    timer = threading.Timer(after_s, exit_now)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


async def _serve(server: _UvicornServer, listening: socket.socket) -> None:
    # Uvicorn raises SystemExit if the application cannot start; its log line gives the reason.
    with contextlib.suppress(SystemExit):
        await server.serve(sockets=[listening])


def uvicorn_config(settings: Settings, app: Application) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=app.http_protocol(),
        loop="none",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(CLOSING_S, settings.shutdown_grace_s - CLOSING_S),
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )


def metrics_folder(settings: Settings) -> Path:
    return settings.data_dir / "run" / "metrics"


async def _publish_metrics(stop: asyncio.Event) -> None:
    while not stop.is_set():
        metrics.PROCESS_METRICS.publish()
        await asyncio.sleep(metrics.PUBLISH_INTERVAL_S)
