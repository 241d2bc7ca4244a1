"""Starts our processes quickly: it has imported everything, and each of them is a fork of it.

A process takes two seconds of computing to import what it needs, and a run of the tests starts a hundred of them; what
runs in the end is the same.
"""

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.constants import replace_constants

ROOT = Path(__file__).parents[2]
MESSAGE_BYTES_MAX = 1 << 17
DESCRIPTORS_MAX = 8
ENDS_SECONDS_MAX = 60


class Child:
    """A process that the nursery started: seen through a handle, so that its number is never mistaken for another's."""

    def __init__(self, pid: int, farewell: int) -> None:
        self.pid = pid
        # It writes here how it ended, unless it was killed.
        self._farewell = farewell
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._handle = -1

    def is_alive(self) -> bool:
        return self._handle >= 0 and not select.select([self._handle], [], [], 0)[0]

    def send_signal(self, how: signal.Signals) -> None:
        if self.is_alive():
            os.kill(self.pid, how)

    def wait(self, seconds: float) -> int | None:
        """Until it has ended, at most so long: with which code, or None when it was killed or is long forgotten."""
        if self._handle >= 0 and not select.select([self._handle], [], [], seconds)[0]:
            raise TimeoutError(f"process {self.pid} runs after {seconds} s")
        said = os.read(self._farewell, 16) if self._farewell >= 0 else b""
        self.let_go()
        return int(said) if said else None

    def let_go(self) -> None:
        for descriptor in (self._handle, self._farewell):
            if descriptor >= 0:
                os.close(descriptor)
        self._handle = self._farewell = -1


class Nursery:
    """One for each test process; it ends when that does."""

    def __init__(self) -> None:
        # Each message is one, with its files.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.nursery", str(theirs.fileno())],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def start(
        self,
        program: str,
        *arguments: str,
        environment: dict[str, str],
        log: Path,
        descriptors: Sequence[int] = (),
        output: Path | None = None,
        folder: Path = ROOT,
        constants: Mapping[str, Any] | None = None,
    ) -> Child:
        """Run the `main` of a module with these arguments and open files, which it gets in this order.

        What it writes goes to the log, its output elsewhere if asked. `constants` of the program get other values in
        this process alone.
        """
        asked = {
            "program": program,
            "arguments": arguments,
            "environment": environment,
            "log": str(log),
            "output": str(output or log),
            "folder": str(folder),
            "constants": constants or {},
        }
        # The file exists from now on, for readers that come before the first line.
        log.touch()
        farewell, theirs = os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps(asked).encode()], [theirs, *descriptors])
        finally:
            os.close(theirs)
        answer = self._socket.recv(64)
        assert answer, "the nursery has ended"
        return Child(int(answer), farewell)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(ENDS_SECONDS_MAX)


@cache
def nursery() -> Nursery:
    opened = Nursery()
    atexit.register(opened.close)
    return opened


def _serve_requests(asking: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Ctrl-C is for the test process, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(asking, MESSAGE_BYTES_MAX, DESCRIPTORS_MAX)
        if not message:
            return
        asked = json.loads(message)
        # Here, so that the next one need not.
        program = importlib.import_module(asked["program"])
        pid = os.fork()
        if pid == 0:
            asking.close()
            _become(program, asked, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        asking.sendall(str(pid).encode())


def _become(program: ModuleType, asked: dict[str, Any], descriptors: list[int]) -> None:
    """What a process is when it begins: its own environment, output and reaction to signals."""
    farewell, *given = descriptors
    os.set_inheritable(farewell, False)
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for target, file in ((1, asked["output"]), (2, asked["log"])):
            os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), target)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        replace_constants(asked["constants"])
        program.main(asked["arguments"], given)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # it is the last frame of a forked process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(farewell, str(code).encode())
        os._exit(code)


if __name__ == "__main__":
    _serve_requests(socket.socket(fileno=int(sys.argv[1])))
