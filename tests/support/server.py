"""Runs the server as a process, on a free loopback port."""

import contextlib
import json
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.fork_server import Child, fork_server

ROOT = Path(__file__).parents[2]
STOP_SECONDS_MAX = 60
# For a busy machine; an idle one needs a second or two.
READY_SECONDS_MAX = 90
# Longer time limits, so that a busy machine does not refuse requests of a test.
PATIENT = {
    "regulars.http.in_flight.REQUEST_S": 60.0,
    "regulars.server.REQUEST_MS": 60_000,
    "regulars.kit.db.POOL_WAIT_S": 60.0,
}
# What a server writes from time to time, and tests wait for.
SOON = {"regulars.request_log.recorder.WRITE_EVERY_S": 0.2}
READY_REQUEST = b"GET /v1/openapi.json HTTP/1.1\r\nHost: ready\r\nConnection: close\r\n\r\n"


class Server:
    """One server process at a time on one port.

    The test process owns the port, so a restart does not change it, and a connection before the start waits in the
    backlog.
    """

    def __init__(
        self,
        database_url: str,
        folder: Path,
        *,
        body_timeouts: dict[str, float] | None = None,
        constants: dict[str, Any] | None = None,
        options: dict[str, bool] | None = None,
        **settings: str,
    ) -> None:
        self._options = json.dumps({"body_timeouts": body_timeouts or {}, **(options or {})})
        self._constants = {**PATIENT, **SOON, **(constants or {})}
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(512)
        self.address: tuple[str, int] = self._socket.getsockname()
        self.url = f"http://127.0.0.1:{self.address[1]}"
        self._log = folder / f"server-{self.address[1]}.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")},
            "DATABASE_URL": database_url,
            "REGULARS_DATA_DIR": str(folder),
            "REGULARS_LOG_FORMAT": "json",
            # On a busy machine a transaction holds its locks for longer than half a second.
            "REGULARS_LOCK_TIMEOUT_MS": "10000",
            "REGULARS_LINK_URL": "https://go.example",
            "REGULARS_SECRET_KEY": "a key for tests, of more than 32 characters",
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            **{f"REGULARS_{name.upper()}": value for name, value in settings.items()},
        }
        self._process: Child | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment for other processes of the same installation."""
        return dict(self._environment)

    def start(self) -> None:
        self._process = fork_server().start(
            "tests.support.serve",
            self._options,
            environment=self._environment,
            log=self._log,
            descriptors=[self._socket.fileno()],
            constants=self._constants,
        )
        self._wait_until_ready()

    def stop(self) -> None:
        """Lets the server finish its requests."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self.stop()
        self._socket.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def work_s(self) -> float:
        """Processor time of the process since its start."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except TimeoutError:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(STOP_SECONDS_MAX)
            raise
        finally:
            self._process.close()
            self._process = None

    def _wait_until_ready(self) -> None:
        try:
            with socket.create_connection(self.address, timeout=READY_SECONDS_MAX) as connection:
                connection.sendall(READY_REQUEST)
                answered = connection.recv(12)
        except OSError:
            answered = b""
        if answered != b"HTTP/1.1 200":
            raise RuntimeError(f"The server did not start:\n{self.log()}")


@contextlib.contextmanager
def running_server(
    database_url: str,
    *,
    body_timeouts: dict[str, float] | None = None,
    constants: dict[str, Any] | None = None,
    options: dict[str, bool] | None = None,
    **settings: str,
) -> Iterator[Server]:
    """Runs a server for the block; a traceback in its log fails the test. `options` are arguments of `create_app`."""
    with tempfile.TemporaryDirectory(prefix="regulars-server-") as folder:
        server = Server(
            database_url, Path(folder), body_timeouts=body_timeouts, constants=constants, options=options, **settings
        )
        try:
            server.start()
            yield server
        finally:
            server.close()
        assert "Traceback" not in server.log(), server.log()
