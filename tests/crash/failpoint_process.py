"""Runs a server, a worker or a command in which the harness can arm failpoints.

A trap is an armed failpoint. The environment has the first traps as a JSON list; more arrive over a socket, one
datagram each. A trap that is hit appends a line to a file before it acts.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import uvloop
from tests.crash import planted_bugs

from regulars.cli import database, worker
from regulars.cli import main as commands
from regulars.kit import failpoint, log, settings
from regulars.kit.process import reduce_garbage_collection
from regulars.kit.shared_memory import map_block
from regulars.processes.accepting import AcceptingServer
from regulars.processes.server_process import uvicorn_config
from regulars.server import create_app

# The fork server imports these once for all its processes.
PRELOADED: Final = (database, worker)
PREFIX: Final = "REGULARS_TEST_CRASH_"
TRAPS, CONTROL, HITS, CLOCK, PLANTED, FALLBACK = (
    PREFIX + it for it in ("TRAPS", "CONTROL", "HITS", "CLOCK_S", "PLANTED", "FALLBACK")
)


def main(arguments: Sequence[str], descriptors: Sequence[int]) -> None:
    """Entry point for the fork server. A server gets its shared memory and its listening sockets as descriptors."""
    os.setsid()
    for trap in json.loads(os.environ.get(TRAPS) or "[]"):
        _arm(trap)
    if CONTROL in os.environ:
        threading.Thread(target=_listen, args=(os.environ[CONTROL],), daemon=True).start()
    if os.environ.get(CLOCK):
        _shift_clock(float(os.environ[CLOCK]))
    if os.environ.get(PLANTED):
        planted_bugs.plant(os.environ[PLANTED])
    if arguments[0] == "server":
        _serve(descriptors[0], [socket.socket(fileno=it) for it in descriptors[1:]])
    else:
        sys.argv = ["regulars", *arguments]
        commands.main()


def _arm(trap: dict[str, Any]) -> None:
    if trap.get("act") is None:
        failpoint.disarm()
    else:
        failpoint.arm(
            trap["place"],
            trap["act"],
            passes=trap.get("passes", 0),
            seconds=trap.get("seconds", 0.0),
            before_failing=_log_hit,
        )


def _log_hit(place: str, act: str) -> None:
    with open(os.environ[HITS], "ab", buffering=0) as file:  # noqa: PTH123  # unbuffered, in one write
        file.write(f"{time.monotonic()} {place} {act}\n".encode())


def _listen(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108  # a name, not a path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
        control.bind(path)
        while True:
            _arm(json.loads(control.recv(4096)))


def _serve(block: int, listening: list[socket.socket]) -> None:
    loaded = settings.load()
    log.configure(loaded)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        app = create_app(loaded, shared=map_block(block), has_fast_recorder=FALLBACK not in os.environ)
        server = AcceptingServer(uvicorn_config(loaded, app))
        reduce_garbage_collection()
        runner.run(server.serve(sockets=listening))


def _shift_clock(seconds: float) -> None:
    """Shifts `datetime.now` in every module of the program; other calls return an unshifted `datetime`."""

    class Kind(type):
        def __instancecheck__(cls, it: object) -> bool:
            return isinstance(it, datetime)

    class Wrong(datetime, metaclass=Kind):
        def __new__(cls, *given: Any, **named: Any) -> datetime:  # type: ignore[misc]  # a plain one
            return datetime(*given, **named)  # noqa: DTZ001  # whatever was given

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain one
            return datetime.now(tz or UTC) + timedelta(seconds=seconds)

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("regulars.") and getattr(module, "datetime", None) is datetime:
            vars(module)["datetime"] = Wrong
