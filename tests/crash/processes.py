"""The processes of a trial: started, told of traps, killed, waited for and started again."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.crash import armed
from tests.crash.shops import KEY
from tests.support.server import READY_REQUEST, ROOT

READY_SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 30
Traps = Sequence[dict[str, Any]]


class Nursery:
    """Starts processes quickly: it has imported everything, and each of them is a fork of it.

    A command takes seconds to import what it needs, and a trial starts several; what runs in the end is the same.
    """

    def __init__(self, log: Path, descriptors: Sequence[int]) -> None:
        environment = {it: value for it, value in os.environ.items() if not it.startswith("REGULARS_")}
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.armed"],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
                pass_fds=list(descriptors),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def start(self, arguments: Sequence[str], environment: dict[str, str], log: Path) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"arguments": list(arguments), "environment": environment, "log": str(log)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        # Also closes the pipes.
        self._process.communicate(timeout=10)


class Process:
    """One of our programs through `armed`; it can be started again after it ended."""

    def __init__(
        self, name: str, folder: Path, nursery: Nursery, arguments: Sequence[str], environment: dict[str, str]
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._sprung = folder / f"{name}.sprung"
        self._control = folder / f"{name}.control"
        self._nursery = nursery
        self._arguments = list(arguments)
        self._environment = {
            **{it: value for it, value in os.environ.items() if not it.startswith("REGULARS_")},
            "REGULARS_SECRET_KEY": KEY,
            "REGULARS_LOG_FORMAT": "json",
            "REGULARS_DATA_DIR": str(folder),
            armed.SPRUNG: str(self._sprung),
            armed.CONTROL: str(self._control),
            **environment,
        }
        self._pid: int | None = None
        self._handle = -1

    def start(self, *, traps: Traps = (), **variables: str) -> None:
        environment = {**self._environment, armed.TRAPS: json.dumps(list(traps)), **variables}
        if self._handle >= 0:
            os.close(self._handle)
        self._pid = self._nursery.start(self._arguments, environment, self.log)
        self._handle = os.pidfd_open(self._pid)

    @property
    def pid(self) -> int:
        assert self._pid is not None, f"{self.name} was never started"
        return self._pid

    def is_alive(self) -> bool:
        return self._handle >= 0 and not select.select([self._handle], [], [], 0)[0]

    def arm(self, place: str, act: str, *, passes: int = 0, seconds: float = 0.0) -> None:
        self._tell({"place": place, "act": act, "passes": passes, "seconds": seconds})

    def disarm(self) -> None:
        self._tell({})

    def _tell(self, trap: dict[str, Any]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control, contextlib.suppress(OSError):
            control.sendto(json.dumps(trap).encode(), str(self._control))

    def has_sprung(self) -> bool:
        return self._sprung.exists()

    def sprung(self) -> list[str]:
        """The traps that sprang since the last time this was asked."""
        try:
            lines = self._sprung.read_text().splitlines()
        except FileNotFoundError:
            return []
        self._sprung.unlink()
        return [line.split(" ", 1)[1] for line in lines]

    def kill(self) -> None:
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """Let it finish; one that does not is a violation."""
        if not self.is_alive():
            return
        os.kill(self.pid, signal.SIGTERM)
        try:
            self.wait()
        except TimeoutError:
            self.kill()
            raise AssertionError(f"STUCK: {self.name} does not stop") from None

    def wait(self, seconds: float = STOP_SECONDS_MAX) -> None:
        if self._handle >= 0 and not select.select([self._handle], [], [], seconds)[0]:
            raise TimeoutError(self.name)

    def let_go(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def memory_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def handles(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


class ServerProcess(Process):
    """It listens on the port that it shares with its siblings, and on one of its own, by which it can be asked for.

    Both belong to the harness: a call that is made while nobody serves waits, as behind a proxy.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        nursery: Nursery,
        environment: dict[str, str],
        *,
        shared: socket.socket,
        own: socket.socket,
    ) -> None:
        self.address: tuple[str, int] = own.getsockname()
        numbers = f"{shared.fileno()},{own.fileno()}"
        super().__init__(name, folder, nursery, ["server", numbers], environment)

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
