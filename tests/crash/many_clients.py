"""Many clients at once: ten thousand with one idempotency key, and two thousand that never finish a request."""

import asyncio
import contextlib
import resource
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.crash.clients import SALES, STORE
from tests.crash.shops import Shop
from tests.crash.world import World
from tests.support import samples

HANDLES: Final = 20_000
SLOW_CLIENTS: Final = 2_000
SLOW_FOR_S: Final = 8.0
ANSWER_SECONDS_MAX: Final = 60.0
DIALLING: Final = 400
Response = tuple[int, dict[str, str], bytes, float]


class Line(asyncio.Protocol):
    """A minimal client: one connection with one request at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._waiting: asyncio.Future[Response] | None = None
        self._sent_at = 0.0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a stream protocol gets a stream transport

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def ask(self, request: bytes) -> "asyncio.Future[Response]":
        assert self.transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._sent_at = time.monotonic()
        self.transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if len(rest) < int(headers.get("content-length", "0")):
            return
        self._buffer = b""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result((int(lines[0].split()[1]), headers, rest, time.monotonic() - self._sent_at))

    def connection_lost(self, error: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error or ConnectionResetError("closed"))


def request_bytes(shop: Shop, sale: dict[str, object], key: str | None = None) -> bytes:
    body = samples.json_bytes(sale)
    lines = [f"POST {SALES} HTTP/1.1", "Host: crowd", f"x-api-key: {shop.key}", "Content-Type: application/json"]
    lines += [f"Idempotency-Key: {key}"] if key else []
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def may_open_many() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, HANDLES)), hard))


@dataclass
class SameKeyResult:
    requests: int
    seconds: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    first_answers: int = 0
    bodies: int = 0
    rows: int = 0
    memory_mib: float = 0.0
    violations: list[str] = field(default_factory=list)


def same_key(world: World, shop: Shop, *, count: int) -> SameKeyResult:
    """Sends one ticket with one key from many callers at once; expects one row, one first response, and equal bytes for all."""
    may_open_many()
    sale = samples.sale(STORE, external_id=samples.unique(f"{shop.tag}-same"))
    request = request_bytes(shop, sale, key=samples.unique("one-key"))
    watch = Watch(world)
    started = time.monotonic()
    outcomes = asyncio.run(_all_at_once(world.address.address, request, count))
    found = SameKeyResult(count, round(time.monotonic() - started, 1))
    found.memory_mib = round(watch.end() / (1 << 20), 1)
    answers = [it for it in outcomes if not isinstance(it, str)]
    found.lost = dict(Counter(it for it in outcomes if isinstance(it, str)))
    found.statuses = {str(status): times for status, times in sorted(Counter(it[0] for it in answers).items())}
    done = [it for it in answers if it[0] in {200, 201}]
    found.first_answers = sum("idempotent-replayed" not in headers for _, headers, _, _ in done)
    found.bodies = len({body for _, _, body, _ in done})
    [(found.rows,)] = world.rows(
        "SELECT count(*) FROM sales_events WHERE organization_id = %s AND external_id = %s",
        shop.organization_id,
        sale["external_id"],
    )
    strange = [status for status in found.statuses if status not in {"200", "201", "409", "429", "503"}]
    found.violations += [f"I10: answered {strange}"] if strange else []
    found.violations += ["I5: not one row"] if found.rows != 1 else []
    found.violations += ["I5: not one first answer"] if found.first_answers != 1 else []
    found.violations += ["I5: answers differ"] if found.bodies != 1 else []
    found.violations += ["I12: over 1 GB"] if found.memory_mib > 1024 else []
    return found


async def _all_at_once(address: tuple[str, int], request: bytes, count: int) -> list[Response | str]:
    """Sends all requests without waiting for a response; opens some hundreds of connections at a time.

    Returns each response, or the error.
    """
    loop = asyncio.get_running_loop()
    dialling = asyncio.Semaphore(DIALLING)

    async def ask() -> Response | str:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                async with dialling:
                    _, line = await loop.create_connection(Line, *address)
                    answer = line.ask(request)
                try:
                    return await answer
                finally:
                    if line.transport is not None:
                        line.transport.abort()
        except (OSError, TimeoutError) as error:
            return repr(error)

    return await asyncio.gather(*(ask() for _ in range(count)))


class Watch:
    """Samples the peak memory of all server processes together."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._most = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(0.2):
            with contextlib.suppress(OSError):
                self._most = max(self._most, sum(server.memory_bytes() for server in self._world.servers))

    def end(self) -> int:
        self._stop.set()
        self._thread.join(5)
        return self._most


def run_slow_clients(address: tuple[str, int], *, count: int = SLOW_CLIENTS, seconds: float = SLOW_FOR_S) -> int:
    """Runs clients that send a byte now and then and never finish; returns how many connected."""
    may_open_many()
    return asyncio.run(_run_slow_clients(address, count, seconds))


async def _run_slow_clients(address: tuple[str, int], count: int, seconds: float) -> int:
    head = f"POST {SALES} HTTP/1.1\r\nHost: slow\r\nx-slow: ".encode()
    lines: list[Line] = []
    loop = asyncio.get_running_loop()

    async def begin() -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                _, line = await loop.create_connection(Line, *address)
                lines.append(line)
                if line.transport is not None:
                    line.transport.write(head)

    until = time.monotonic() + seconds
    await asyncio.gather(*(begin() for _ in range(count)))
    while time.monotonic() < until:
        for line in lines:
            if line.is_open and line.transport is not None:
                line.transport.write(b"x")
        await asyncio.sleep(0.5)
    for line in lines:
        if line.transport is not None:
            line.transport.abort()
    return len(lines)
