"""Latency as a caller sees it: requests leave at fixed moments, whether or not the earlier ones were answered.

A closed loop waits for a slow answer before it asks again and so never sees the queue it would have met. Here the
latency counts from the moment a request was due, also when no connection was free for it.
"""

import argparse
import asyncio
import contextlib
import json
import math
import sys
import time
from collections import defaultdict, deque
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tickets import requests  # found beside this script's folder, whatever the working folder is

CONNECTIONS = 128
ANSWERS_S = 10
# Latencies are also told for each of these, by its moment: a host that stalls the disk spoils some of them and not all.
WINDOW_S = 0.5
# Requests due within one tick leave together: a sleep per request would cost more than the request.
TICK_S = 0.001


class Lane(asyncio.Protocol):
    """One connection with at most one request in flight."""

    def __init__(self, client: "Client") -> None:
        self.client = client
        self.due = 0.0
        self.buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a stream protocol gets a stream transport
        self.client.idle.append(self)

    def send(self, request: bytes, due: float) -> None:
        self.due = due
        if self.transport is not None:
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head_end = self.buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self.buffer[:head_end].lower()
        start = head.index(b"content-length:") + len(b"content-length:")
        length = int(head[start:].split(b"\r\n", 1)[0])
        if len(self.buffer) < head_end + 4 + length:
            return
        status = int(self.buffer[9:12])
        self.buffer = b""
        self.client.answered(self, status)

    def connection_lost(self, _: Exception | None) -> None:
        self.client.lost += 1


class Client:
    def __init__(self, pending: list[bytes]) -> None:
        self.pending = pending
        self.idle: deque[Lane] = deque()
        self.waiting: deque[tuple[bytes, float]] = deque()
        self.latencies: list[float] = []
        self.windows: defaultdict[int, list[float]] = defaultdict(list)
        self.complete = asyncio.Event()
        self.errors = 0
        self.lost = 0

    async def run(self, port: int, rate: float) -> None:
        loop = asyncio.get_running_loop()
        # A connection that is used less than once a second might be closed by the server.
        for _ in range(min(CONNECTIONS, math.ceil(rate))):
            await loop.create_connection(lambda: Lane(self), "127.0.0.1", port)
        started = time.perf_counter()
        for number, request in enumerate(self.pending):
            due = started + number / rate
            ahead = due - time.perf_counter()
            if ahead > 0:
                await asyncio.sleep(max(ahead, TICK_S))
            if self.idle:
                self.idle.popleft().send(request, due)
            else:
                self.waiting.append((request, due))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.complete.wait(), ANSWERS_S)

    def answered(self, lane: Lane, status: int) -> None:
        latency = time.perf_counter() - lane.due
        self.latencies.append(latency)
        self.windows[int(time.time() / WINDOW_S)].append(latency)
        self.errors += status >= 400
        if len(self.latencies) == len(self.pending):
            self.complete.set()
        if self.waiting:
            lane.send(*self.waiting.popleft())
        else:
            self.idle.append(lane)


def p99_ms(latencies: list[float]) -> float:
    return latencies[len(latencies) * 99 // 100] * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--key")
    # A file with a path on each line: pages that are opened in turn, instead of sales that are recorded.
    parser.add_argument("--paths", type=Path)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--name", default="")
    parser.add_argument("--distinct", action="store_true")
    options = parser.parse_args()
    count = int(options.rate * options.seconds)
    host = f"127.0.0.1:{options.port}"
    if options.paths is None:
        pending = requests(count, run=options.name, key=options.key, host=host, distinct=options.distinct)
    else:
        paths = options.paths.read_text().split()
        agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Safari/604.1"
        pending = [
            f"GET {paths[number % len(paths)]} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n\r\n".encode()
            for number in range(count)
        ]
    client = Client(pending)
    cpu_before = time.process_time()
    uvloop.run(client.run(options.port, options.rate))
    latencies = sorted(client.latencies)
    windows = [(number * WINDOW_S, p99_ms(sorted(found))) for number, found in sorted(client.windows.items())]
    print(
        json.dumps(
            {
                "sent": count,
                "answered": len(latencies),
                "errors": client.errors + count - len(latencies),
                "p50_ms": latencies[len(latencies) // 2] * 1000,
                "p99_ms": p99_ms(latencies),
                "windows": windows,
                "max_ms": latencies[-1] * 1000,
                "client_cpu_share": (time.process_time() - cpu_before) / options.seconds,
            }
        )
    )


if __name__ == "__main__":
    main()
