"""Prints the files that a single sale passes through, in order: the shortest of several traces in a warm server.

It prints the path without `kit`, and counts the path with `kit` too. A file counts once. A call into an earlier file is
a return; a function that continues after a call or an await is not.

    .venv/bin/python bench/path_of_a_sale.py
"""

import asyncio
import dataclasses
import http.client
import itertools
import socket
import sys
import threading
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import uvloop

import tickets  # as below
from database import make_templates, running_cluster  # the path above must be set first
from regulars.kit.process import Stop
from regulars.kit.settings import load
from regulars.processes.server_process import serve

PACKAGE = f"{Path(__file__).resolve().parent.parent / 'src' / 'regulars'}/"
WARM_REQUESTS = 50
REQUESTS = 100
CREATED = 201


class Trace:
    """Records the files of the package that are entered while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.entered: list[FrameType] = []
        self.visits: list[str] = []
        self.traces: list[list[str]] = []

    def begin(self) -> None:
        self.entered = []
        self.visits = []
        self.is_on = True

    def end(self, *, counts: bool) -> None:
        self.is_on = False
        if counts:
            self.traces.append(self.visits)

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if not self.is_on or event != "call" or not file.startswith(PACKAGE) or frame in self.entered:
            return
        # Referenced, so that a frame that continues is recognised.
        self.entered.append(frame)
        self.visits.append(file.removeprefix(PACKAGE))

    def find_shortest_path(self, *, with_kit: bool) -> list[str]:
        """The files of the shortest trace in their order; a file that is entered twice in succession is one visit."""
        paths = [
            [name for name, _ in itertools.groupby(name for name in visits if with_kit or not name.startswith("kit/"))]
            for visits in self.traces
        ]
        return min(paths, key=len)


def main() -> None:
    trace = Trace()
    with running_cluster() as cluster, socket.socket() as listening:
        organization = make_templates(cluster)[0]
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        settings = dataclasses.replace(load(), database_url=cluster.clone("path"), rate_limit_per_s=0)
        caller = threading.Thread(target=_call, args=(listening.getsockname(), organization.key, trace))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, listening, caller, trace))
    for name in trace.find_shortest_path(with_kit=False):
        print(name)  # this is what the script is for
    for with_kit, label in ((False, "without kit"), (True, "with kit")):
        path = trace.find_shortest_path(with_kit=with_kit)
        files = set(path)
        print(f"{label}: {len(files)} files, {len(path) - len(files)} returns to a file that was left")  # as above


async def _serve(settings, listening: socket.socket, caller: threading.Thread, trace: Trace) -> None:  # type: ignore[no-untyped-def]  # settings come from the package
    stop, started = Stop(), asyncio.Event()
    serving = asyncio.create_task(serve(settings, listening, stop=stop, started=started))
    await started.wait()
    sys.setprofile(trace)
    caller.start()
    await asyncio.to_thread(caller.join)
    sys.setprofile(None)
    stop.hurry()
    await serving


def _call(address: tuple[str, int], key: str, trace: Trace) -> None:
    """Sends sales until caches and statements are warm, then as many traced ones."""
    host = f"{address[0]}:{address[1]}"
    with socket.create_connection(address, timeout=30) as connection:
        for number, said in enumerate(tickets.requests(REQUESTS, run="path", key=key, host=host)):
            trace.begin()
            _exchange(connection, said)
            trace.end(counts=number >= WARM_REQUESTS)


def _exchange(connection: socket.socket, said: bytes) -> None:
    connection.sendall(said)
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    if response.status != CREATED:
        raise SystemExit(f"the server answered {response.status}")


if __name__ == "__main__":
    main()
