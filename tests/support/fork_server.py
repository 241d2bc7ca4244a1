"""Starts processes quickly, by forking a process that has already imported the program.

The imports take two seconds of processor time, and a test run starts a hundred processes.
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
import threading
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
    """A forked process, with a pidfd, so that a reused process id is never mistaken for it."""

    def __init__(self, pid: int, exit_code_pipe: int) -> None:
        self.pid = pid
        # The process writes its exit code here, unless it is killed.
        self._exit_code_pipe = exit_code_pipe
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
        """Waits for the end; returns the exit code, or None if the process was killed or is already closed."""
        if self._handle >= 0 and not select.select([self._handle], [], [], seconds)[0]:
            raise TimeoutError(f"process {self.pid} runs after {seconds} s")
        exit_code = os.read(self._exit_code_pipe, 16) if self._exit_code_pipe >= 0 else b""
        self.close()
        return int(exit_code) if exit_code else None

    def close(self) -> None:
        for descriptor in (self._handle, self._exit_code_pipe):
            if descriptor >= 0:
                os.close(descriptor)
        self._handle = self._exit_code_pipe = -1


class ForkServer:
    """One per test process; both end together."""

    def __init__(self) -> None:
        # SOCK_SEQPACKET preserves message boundaries; a message carries its file descriptors.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A response does not name its request.
        self._lock = threading.Lock()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
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
        """Runs `main` of a module with these arguments and file descriptors.

        Standard error goes to the log, standard output to `output` or the log. `constants` are replaced in this
        process only.
        """
        request = {
            "program": program,
            "arguments": arguments,
            "environment": environment,
            "log": str(log),
            "output": str(output or log),
            "folder": str(folder),
            "constants": constants or {},
        }
        # Callers may read the log before the first line.
        log.touch()
        exit_code_pipe, theirs = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(request).encode()], [theirs, *descriptors])
                answer = self._socket.recv(64)
        finally:
            os.close(theirs)
        assert answer, "the fork server has ended"
        return Child(int(answer), exit_code_pipe)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(ENDS_SECONDS_MAX)


@cache
def fork_server() -> ForkServer:
    opened = ForkServer()
    atexit.register(opened.close)
    return opened


def _serve_requests(requests: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Ctrl-C ends the test process, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(requests, MESSAGE_BYTES_MAX, DESCRIPTORS_MAX)
        if not message:
            return
        request = json.loads(message)
        # Imported before the fork, so that later forks have it.
        program = importlib.import_module(request["program"])
        pid = os.fork()
        if pid == 0:
            requests.close()
            _run_forked(program, request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.sendall(str(pid).encode())


def _run_forked(program: ModuleType, request: dict[str, Any], descriptors: list[int]) -> None:
    """Gives the fork its own environment, output and signal handlers, runs the program and exits."""
    exit_code_pipe, *passed = descriptors
    os.set_inheritable(exit_code_pipe, False)
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for target, file in ((1, request["output"]), (2, request["log"])):
            os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), target)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        replace_constants(request["constants"])
        program.main(request["arguments"], passed)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # it is the last frame of a forked process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(exit_code_pipe, str(code).encode())
        os._exit(code)


if __name__ == "__main__":
    _serve_requests(socket.socket(fileno=int(sys.argv[1])))
