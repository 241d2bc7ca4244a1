"""Starts and stops the servers under test, and reads the processor time and memory of their process trees."""

import http.client
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
READY_S = 30
STOP_S = 15
MEBIBYTE = 1 << 20
SETTLE_S_MAX = 15.0
SETTLE_POLL_S = 0.5
SETTLED_SHARE = 0.1


class DidNotStartError(RuntimeError):
    """The server ended or did not respond; the message has the end of its output."""


@dataclass(frozen=True)
class Server:
    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running_server(command: Sequence[str], environment: Mapping[str, str], *, port: int) -> Iterator[Server]:
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, env={**_clean_environment(), **environment}, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT
        )
        try:
            try:
                _wait_until_ready(process, port)
            except TimeoutError as error:
                output.seek(0)
                said = output.read()[-2000:].decode(errors="replace")
                raise DidNotStartError(f"{command[-1]}: {error}\n{said}") from None
            yield Server(process.pid, port)
        finally:
            _stop(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_s(pid: int) -> float:
    """CPU seconds of a process tree, including children that have ended."""
    return sum(_cpu_s(process) for process in _tree(pid))


def jobs_cpu_s(pid: int) -> float:
    """CPU seconds of the worker in the tree, without the processes that handle requests."""
    return sum(_cpu_s(process) for process in _tree(pid) if _runs_jobs(process))


def machine_cpu_s() -> float:
    """CPU seconds of the whole machine; minus ours, they are those of other programs."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def ended_children_cpu_s() -> float:
    """CPU seconds of our ended children; the difference before and after a load generator is its cost."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_mib(pid: int) -> float:
    """The largest resident memory of one process that handles requests."""
    sizes = [0]
    for process in _tree(pid):
        try:
            sizes.append(0 if _runs_jobs(process) else process.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    return max(sizes) / MEBIBYTE


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
        own = _clock_s(process.pid) or times.user + times.system
    except (psutil.NoSuchProcess, OSError):
        return 0.0
    return float(own + times.children_user + times.children_system)


def _clock_s(pid: int) -> float:
    """The processor clock of another process, in nanoseconds instead of ticks of 10 ms; 0 where the system has none.

    Linux defines its number as in `clock_getcpuclockid`.
    """
    return time.clock_gettime((~pid << 3) | 2) if sys.platform == "linux" else 0.0


def _runs_jobs(process: psutil.Process) -> bool:
    try:
        return "regulars.cli worker" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def wait_until_started(pid: int) -> None:
    """Waits until the processes that start with the server have started, so that their start is not measured."""
    deadline = time.monotonic() + SETTLE_S_MAX
    before = cpu_s(pid)
    while time.monotonic() < deadline:
        time.sleep(SETTLE_POLL_S)
        now = cpu_s(pid)
        if now - before < SETTLE_POLL_S * SETTLED_SHARE:
            return
        before = now


def regulars_command(*, with_worker: bool) -> list[str]:
    return [sys.executable, "-m", "regulars.cli", "serve", *([] if with_worker else ["--no-worker"])]


def _clean_environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    inherited.pop("DATABASE_URL", None)
    return {**inherited, "PYTHONPATH": str(ROOT / "src")}


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise TimeoutError(f"it ended with code {process.returncode} before it answered")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/v1/openapi.json")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()
    raise TimeoutError(f"it did not answer within {READY_S} s")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    children = _tree(process.pid)[1:]
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_S)
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
