"""Sends thousands of tickets from its own process, so that the harness does not slow the measurement.

With a rate they leave at fixed moments (open loop); without one, each caller waits for its response before the next
request. It reads one order as JSON from its input, and prints one report as JSON.
"""

import asyncio
import json
import os
import sys
import time
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import uvloop
from tests.crash.load import Order, Report, Window, request_maker

TICK_S: Final = 0.001
LAST_ANSWERS_S: Final = 20.0
DIALS_AGAIN_AFTER_S: Final = 0.05
# More connects at once would overflow the backlog and wait for seconds.
DIALLING_MAX: Final = 256
END_OF_HEAD: Final = b"\r\n\r\n"
LENGTH: Final = b"content-length: "
REFUSALS: Final = (429, 503)


class Line(asyncio.Protocol):
    """One connection with at most one request in flight."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._buffer = b""
        self._number, self._since, self._is_asking = 0, 0.0, False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a stream protocol gets a stream transport
        self._load.on_connected(self)

    def send(self, request: bytes, number: int, since: float) -> None:
        assert self.transport is not None
        self._number, self._since, self._is_asking = number, since, True
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(END_OF_HEAD)
        if head_end < 0:
            return
        named = self._buffer.find(LENGTH, 0, head_end) + len(LENGTH)
        length = int(self._buffer[named : self._buffer.find(b"\r\n", named)])
        if len(self._buffer) < head_end + len(END_OF_HEAD) + length:
            return
        status, self._buffer, self._is_asking = int(self._buffer[9:12]), b"", False
        self._load.answered(self, status, self._number, self._since)

    def connection_lost(self, _error: Exception | None) -> None:
        self._load.on_lost(self, int(self._is_asking))
        self._is_asking = False


class Load:
    def __init__(self, order: Order) -> None:
        self.order = order
        self.lines: set[Line] = set()
        self.idle: deque[Line] = deque()
        self.report = Report()
        self._waiting: deque[tuple[int, float]] = deque()
        self._windows: list[tuple[Counter[int], array[float]]] = []
        self._all: Counter[int] = Counter()
        self._took: dict[bool, array[float]] = {True: array("f"), False: array("f")}
        self._accepted = array("I")
        self._open = 0
        self._dialled = order.connections
        self._make = request_maker(order)
        self._started = self._until = 0.0
        self._done = asyncio.Event()

    async def run(self) -> Report:
        if self.order.processor is not None:
            os.sched_setaffinity(0, {self.order.processor})
        loop = asyncio.get_running_loop()
        for _ in range(self.order.connections):
            await loop.create_connection(lambda: Line(self), *self.order.address)
        self._started = time.perf_counter()
        self._until = self._started + self.order.seconds
        if self.order.rate:
            await self._keep_pace()
        else:
            while self.idle:
                self._send_next(self.idle.popleft())
            await asyncio.sleep(self.order.seconds)
        self.report.connections = len(self.lines)
        self.report.ended_at, self.report.sent_in_time = time.monotonic(), self.report.sent
        self.report.sending_s = round(time.perf_counter() - self._started, 2)
        # Requests that found no connection in time are dropped.
        self.report.unsent = len(self._waiting)
        self._waiting.clear()
        await self._wait_for_last_answers()
        self._until = 0.0
        for line in self.lines:
            if line.transport is not None:
                line.transport.abort()
        return self._reported()

    async def _keep_pace(self) -> None:
        number = 0
        count = int(self.order.rate * self.order.seconds)
        while number < count:
            now = time.perf_counter()
            due_by_now = min(count, int((now - self._started) * self.order.rate) + 1)
            for due in range(number, due_by_now):
                moment = self._started + due / self.order.rate
                if self.idle:
                    self._send(self.idle.popleft(), due, moment)
                else:
                    self._waiting.append((due, moment))
                    if self._dialled < self.order.connections_max and self._dialled - len(self.lines) < DIALLING_MAX:
                        self._dial()
            number = max(number, due_by_now)
            await asyncio.sleep(TICK_S)

    def _send_next(self, line: Line) -> None:
        self._send(line, self.report.sent, time.perf_counter())

    def _send(self, line: Line, number: int, due: float) -> None:
        self.report.sent += 1
        self._open += 1
        line.send(self._make(number), number, due if self.order.counts_from_due else time.perf_counter())

    def on_connected(self, line: Line) -> None:
        self.lines.add(line)
        if self._waiting:
            self._send(line, *self._waiting.popleft())
        else:
            self.idle.append(line)

    def answered(self, line: Line, status: int, number: int, since: float) -> None:
        now = time.perf_counter()
        self._open -= 1
        self._note(status, number, since, now - since)
        if self._waiting:
            self._send(line, *self._waiting.popleft())
        elif not self.order.rate and now < self._until:
            self._send_next(line)
        else:
            self.idle.append(line)
            if not self._open:
                self._done.set()

    def _note(self, status: int, number: int, since: float, took_s: float) -> None:
        if status in (200, 201):
            self._accepted.append(number)
        at = since - self._started - self.order.warm_up_s
        if at < 0:
            return
        self._all[status] += 1
        self._took[status in REFUSALS].append(took_s)
        if self.order.window_s:
            place = int(at / self.order.window_s)
            while len(self._windows) <= place:
                self._windows.append((Counter(), array("f")))
            counts, took = self._windows[place]
            counts[status] += 1
            took.append(took_s)

    def on_lost(self, line: Line, under_way: int) -> None:
        self.report.lost += under_way
        self._open -= under_way
        self._dialled -= 1
        self.lines.discard(line)
        self.idle = deque(it for it in self.idle if it is not line)
        if time.perf_counter() < self._until:
            asyncio.get_running_loop().call_later(DIALS_AGAIN_AFTER_S, self._dial)

    def _dial(self) -> None:
        self._dialled += 1
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.create_connection(lambda: Line(self), *self.order.address))
        task.add_done_callback(self._on_dialled)

    def _on_dialled(self, dialled: "asyncio.Task[object]") -> None:
        if dialled.cancelled() or dialled.exception() is not None:
            self._dialled -= 1

    async def _wait_for_last_answers(self) -> None:
        self._done.clear()
        if self._open:
            try:
                await asyncio.wait_for(self._done.wait(), LAST_ANSWERS_S)
            except TimeoutError:
                self.report.unanswered = self._open

    def _reported(self) -> Report:
        self.report.cpu_s = round(time.process_time(), 2)
        self.report.windows = [_window(counts, took) for counts, took in self._windows]
        accepted, refused = self._took[False], self._took[True]
        self.report.all = _window(self._all, accepted + refused)
        self.report.all.accepted_p50_ms = _at(sorted(accepted), 50)
        self.report.all.refused_p50_ms = _at(sorted(refused), 50)
        if self.order.accepted:
            Path(self.order.accepted).write_bytes(self._accepted.tobytes())
        return self.report


def _window(counts: Counter[int], took: Sequence[float]) -> Window:
    ordered = sorted(took)
    answers = {str(status): times for status, times in sorted(counts.items())}
    return Window(answers, _at(ordered, 50), _at(ordered, 99))


def _at(ordered: Sequence[float], percent: int) -> float:
    return round(ordered[len(ordered) * percent // 100] * 1000, 2) if ordered else 0.0


def main() -> None:
    given = json.load(sys.stdin)
    report = uvloop.run(Load(Order(**{**given, "address": tuple(given["address"])})).run())
    json.dump(asdict(report), sys.stdout)


if __name__ == "__main__":
    main()
