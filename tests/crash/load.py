"""Starts `load_sender.py`, which sends thousands of tickets: its order and its report."""

import json
import subprocess
import sys
from array import array
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.crash.clients import SALES
from tests.crash.shops import CUSTOMERS, STORE, Shop
from tests.support import samples
from tests.support.server import ROOT

NUMBER: Final = "%012d"
# Customers who may be texted, with names of equal length.
TEXTED: Final = range(10, CUSTOMERS)


@dataclass(frozen=True)
class Order:
    address: tuple[str, int]
    key: str
    tag: str
    name: str
    seconds: float
    # Requests per second; 0: each caller waits for its response.
    rate: float = 0.0
    connections: int = 64
    # The largest number of connections.
    connections_max: int = 0
    # Responses before this moment are in no window.
    warm_up_s: float = 0.0
    window_s: float = 0.0
    # Measures latency from the planned or from the actual send time; only the second ignores a late sender.
    counts_from_due: bool = True
    # File for the numbers of the accepted tickets.
    accepted: str = ""
    # The processor to run on.
    processor: int | None = None


@dataclass
class Window:
    answers: dict[str, int] = field(default_factory=dict)
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    refused_p50_ms: float = 0.0
    accepted_p50_ms: float = 0.0


@dataclass
class Report:
    sent: int = 0
    lost: int = 0
    # Requests without a response at the end of the wait.
    unanswered: int = 0
    # Requests that found no free connection until the end.
    unsent: int = 0
    connections: int = 0
    # The monotonic time of the last request, and the number of requests by then.
    ended_at: float = 0.0
    sent_in_time: int = 0
    sending_s: float = 0.0
    cpu_s: float = 0.0
    windows: list[Window] = field(default_factory=list)
    all: Window = field(default_factory=Window)


def ticket_name(order: Order, number: int) -> str:
    return f"{order.tag}-{order.name}-{number:012d}"


class Sender:
    """Starts the process and reads its report."""

    def __init__(self, shop: Shop, address: tuple[str, int], **options: object) -> None:
        order = Order(address=address, key=shop.key, tag=shop.tag, **options)  # type: ignore[arg-type]  # named by callers
        self.order = order
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.load_sender"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(order)))
        self._process.stdin.close()
        self.pid = self._process.pid

    def is_sending(self) -> bool:
        return self._process.poll() is None

    def report(self) -> Report:
        assert self._process.stdout is not None
        report = json.loads(self._process.stdout.read())
        self._process.stdout.close()
        self._process.wait(10)
        windows = [Window(**it) for it in report.pop("windows")]
        return Report(windows=windows, all=Window(**report.pop("all")), **report)

    def end(self) -> None:
        if self.is_sending():
            self._process.kill()
            self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()


def read_accepted(file: Path) -> "array[int]":
    numbers = array("I")
    numbers.frombytes(file.read_bytes())
    return numbers


def request_maker(order: Order) -> Callable[[int], bytes]:
    """Builds requests from a template, in which only the number changes.

    Of ten tickets one is of a new customer and one of a customer who may be texted; five have an Idempotency-Key.
    """
    new, known = f"{order.tag}-{order.name}-new-{NUMBER}", f"{order.tag}-customer-%02d"
    whose = [None, None, None, None, new, None, None, None, None, known]
    templates = [_template(order, customer, has_key=place % 2 == 0) for place, customer in enumerate(whose)]

    def make(number: int) -> bytes:
        place = number % 10
        values = (number,) if place % 2 else (number, number)
        if whose[place] is new:
            values += (number,)
        elif whose[place] is known:
            values += (TEXTED[number // 10 % len(TEXTED)],)
        return templates[place] % values

    return make


def _template(order: Order, customer: str | None, *, has_key: bool) -> bytes:
    sale = samples.sale(STORE, external_id=f"{order.tag}-{order.name}-{NUMBER}")
    if customer is not None:
        sale["profile_id"] = customer
    body = samples.json_bytes(sale)
    length = len(body % ((0,) * body.count(b"%")))
    lines = [f"POST {SALES} HTTP/1.1", "Host: crowd", f"x-api-key: {order.key}", "Content-Type: application/json"]
    lines += [f"Idempotency-Key: {order.name}-{NUMBER}"] if has_key else []
    return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode() + body
