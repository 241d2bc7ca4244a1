"""A server, a worker or a migration in which traps can be set: the program as it is, started by another door.

What to set at once is in the environment, as JSON: a list of traps. More come over a socket, one datagram each, while
the process runs. A trap that springs writes a line before it does anything.
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
from tests.crash import planted

from regulars.cli import database, worker
from regulars.cli import main as commands
from regulars.kit import failpoint, log, settings
from regulars.kit.process import reduce_garbage_collection
from regulars.kit.shared_memory import map_block
from regulars.processes.accepting import AcceptingServer
from regulars.processes.server_process import uvicorn_config
from regulars.server import create_app

# Imported once by the fork_server, so that the processes it starts need not do it.
PRELOADED: Final = (database, worker)
PREFIX: Final = "REGULARS_TEST_CRASH_"
TRAPS, CONTROL, SPRUNG, CLOCK, PLANTED = (PREFIX + it for it in ("TRAPS", "CONTROL", "SPRUNG", "CLOCK_S", "PLANTED"))


def main(arguments: Sequence[str], descriptors: Sequence[int]) -> None:
    """Started by the fork_server. A server gets the block that it shares with its siblings, and what it listens on."""
    os.setsid()
    for trap in json.loads(os.environ.get(TRAPS) or "[]"):
        _arm(trap)
    if CONTROL in os.environ:
        threading.Thread(target=_listen, args=(os.environ[CONTROL],), daemon=True).start()
    if os.environ.get(CLOCK):
        _shift_clock(float(os.environ[CLOCK]))
    if os.environ.get(PLANTED):
        planted.plant(os.environ[PLANTED])
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
            before_failing=_say_sprung,
        )


def _say_sprung(place: str, act: str) -> None:
    with open(os.environ[SPRUNG], "ab", buffering=0) as file:  # noqa: PTH123  # unbuffered, in one write
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
        server = AcceptingServer(uvicorn_config(loaded, create_app(loaded, shared=map_block(block))))
        reduce_garbage_collection()
        runner.run(server.serve(sockets=listening))


def _shift_clock(seconds: float) -> None:
    """This machine's clock is wrong, for every module of ours that looks at it; what it makes are plain times."""

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
