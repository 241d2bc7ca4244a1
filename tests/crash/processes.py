"""Starts, arms, kills and restarts the processes of a trial."""

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.crash import failpoint_process
from tests.crash.shops import KEY
from tests.support.fork_server import Child, fork_server
from tests.support.server import READY_REQUEST

READY_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 30
Traps = Sequence[dict[str, Any]]


class Process:
    """A program that `failpoint_process` runs; it can be restarted."""

    def __init__(
        self,
        name: str,
        folder: Path,
        arguments: Sequence[str],
        environment: dict[str, str],
        *,
        descriptors: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._hits = folder / f"{name}.before_failing"
        self._control = folder / f"{name}.control"
        self._arguments = list(arguments)
        self._descriptors = list(descriptors)
        self._environment = {
            **{it: value for it, value in os.environ.items() if not it.startswith("REGULARS_")},
            "REGULARS_SECRET_KEY": KEY,
            "REGULARS_LOG_FORMAT": "json",
            "REGULARS_DATA_DIR": str(folder),
            failpoint_process.HITS: str(self._hits),
            failpoint_process.CONTROL: str(self._control),
            **environment,
        }
        self._child: Child | None = None

    def start(self, *, traps: Traps = (), **variables: str) -> None:
        environment = {**self._environment, failpoint_process.TRAPS: json.dumps(list(traps)), **variables}
        self.close()
        self._child = fork_server().start(
            "tests.crash.failpoint_process",
            *self._arguments,
            environment=environment,
            log=self.log,
            descriptors=self._descriptors,
        )

    def run(self, *, seconds: float, traps: Traps = ()) -> int | None:
        """Starts the process and waits for its end; returns the exit code, or None if it was killed."""
        self.start(traps=traps)
        assert self._child is not None
        return self._child.wait(seconds)

    @property
    def pid(self) -> int:
        assert self._child is not None, f"{self.name} was never started"
        return self._child.pid

    @property
    def was_started(self) -> bool:
        return self._child is not None

    def is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive()

    def arm(self, place: str, act: str, *, passes: int = 0, seconds: float = 0.0) -> None:
        """Waits for a process that has just started; one that has ended cannot be armed."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        trap = {"place": place, "act": act, "passes": passes, "seconds": seconds}
        while not self._send_trap(trap) and self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)

    def disarm(self) -> None:
        self._send_trap({})

    def _send_trap(self, trap: dict[str, Any]) -> bool:
        """Returns whether the process got it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
            try:
                control.sendto(json.dumps(trap).encode(), str(self._control))
            except OSError:
                return False
        return True

    def was_hit(self) -> bool:
        return self._hits.exists()

    def new_hits(self) -> list[str]:
        """The traps that were hit since the last call."""
        try:
            lines = self._hits.read_text().splitlines()
        except FileNotFoundError:
            return []
        self._hits.unlink()
        return [line.split(" ", 1)[1] for line in lines]

    def kill(self) -> None:
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """Lets the process finish; one that does not is a violation."""
        if not self.is_alive():
            return
        os.kill(self.pid, signal.SIGTERM)
        try:
            self.wait()
        except TimeoutError:
            self.kill()
            raise AssertionError(f"STUCK: {self.name} does not stop") from None

    def wait(self, seconds: float = STOP_SECONDS_MAX) -> None:
        if self._child is not None:
            self._child.wait(seconds)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()

    def memory_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def handles(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


class ServerProcess(Process):
    """Listens on the port that all server processes share, and on its own port.

    The harness owns both sockets: a call while no server runs waits, as behind a proxy.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        environment: dict[str, str],
        *,
        block: int,
        shared: socket.socket,
        own: socket.socket,
    ) -> None:
        self.address: tuple[str, int] = own.getsockname()
        given = [block, shared.fileno(), own.fileno()]
        super().__init__(name, folder, ["server"], environment, descriptors=given)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(self.address, timeout=10) as connection:
                connection.sendall(READY_REQUEST)
                if connection.recv(12) == b"HTTP/1.1 200":
                    return
            if not self.is_alive():
                break
            time.sleep(0.05)
        raise AssertionError(f"STUCK: {self.name} did not start:\n{self.log.read_text()[-2000:]}")


def listening(backlog: int) -> socket.socket:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(backlog)
    return bound
