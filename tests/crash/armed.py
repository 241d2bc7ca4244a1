"""A server, a worker or a migration in which traps can be set: the program as it is, started by another door.

What to set at once is in the environment, as JSON: a list of traps. More come over a socket, one datagram each, while
the process runs. A trap that springs writes a line before it does anything.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import uvicorn
import uvloop
from tests.crash import planted

from regulars.cli import main as commands
from regulars.kit import failpoint, log, settings
from regulars.kit.shared import map_block
from regulars.processes.server_process import uvicorn_config
from regulars.server import create_app

PREFIX: Final = "REGULARS_TEST_CRASH_"
TRAPS, CONTROL, SPRUNG, CLOCK, PLANTED, SHARED = (
    PREFIX + it for it in ("TRAPS", "CONTROL", "SPRUNG", "CLOCK_S", "PLANTED", "SHARED")
)


def main() -> None:
    """The nursery: it has read all programs already, and each line it reads asks it for one, as a fork of itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(asked)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _become(asked: dict[str, Any]) -> None:
    """What the process of a command is when it begins: its own session, environment, output and reaction to signals."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log_file = os.open(asked["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log_file, 1), (log_file, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["armed", *asked["arguments"]]
    code = 1
    try:
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # it is the last frame of a forked process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run() -> None:
    for trap in json.loads(os.environ.get(TRAPS) or "[]"):
        _arm(trap)
    if CONTROL in os.environ:
        threading.Thread(target=_listen, args=(os.environ[CONTROL],), daemon=True).start()
    if os.environ.get(CLOCK):
        _shift_clock(float(os.environ[CLOCK]))
    if os.environ.get(PLANTED):
        planted.plant(os.environ[PLANTED])
    if sys.argv[1] == "server":
        _serve([socket.socket(fileno=int(number)) for number in sys.argv[2].split(",")])
    else:
        sys.argv = ["regulars", *sys.argv[1:]]
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
            sprung=_say_sprung,
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


def _serve(listening: list[socket.socket]) -> None:
    loaded = settings.load()
    log.configure(loaded)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        server = uvicorn.Server(uvicorn_config(loaded, create_app(loaded, shared=map_block(int(os.environ[SHARED])))))
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


if __name__ == "__main__":
    main()
