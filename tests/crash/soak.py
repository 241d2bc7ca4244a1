"""Half an hour at a quarter of what the machine can take, with everything on: what grows, and what gets slower."""

import asyncio
import contextlib
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tests.crash.crowds import Line, measure_rate, request_bytes
from tests.crash.shops import CUSTOMERS, STORE, Shop, open_shops
from tests.crash.world import World
from tests.support import samples

WINDOW_S: Final = 300.0
SAMPLE_EVERY_S: Final = 10.0
LINES: Final = 8
P99_GROWS_MAX: Final = 1.2
# Room for what a process keeps on purpose: caches of keys, stores, statements.
MEMORY_GROWS_MAX: Final = 1.15
MEMORY_SLACK_BYTES: Final = 24 << 20
HANDLES_SLACK: Final = 24
DEAD_SHARE_MAX: Final = 0.3
BLOAT: Final = """
SELECT relname, n_dead_tup, n_live_tup FROM pg_stat_user_tables
WHERE n_dead_tup > 5000 AND n_dead_tup > %s * (n_live_tup + n_dead_tup)
ORDER BY n_dead_tup DESC
"""


@dataclass
class Soaked:
    minutes: float
    rate_per_s: float
    quarter_of_per_s: float = 0.0
    sold: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    p99_ms_by_window: list[float] = field(default_factory=list)
    p50_ms_by_window: list[float] = field(default_factory=list)
    cpu_of_others: list[float] = field(default_factory=list)
    memory_mib: dict[str, list[float]] = field(default_factory=dict)
    handles: dict[str, list[int]] = field(default_factory=dict)
    connections: list[int] = field(default_factory=list)
    bloated: list[str] = field(default_factory=list)
    waiting: int = 0
    violations: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def soak(world: World, *, minutes: float, say: Callable[[str], None], rate: float | None = None) -> Soaked:
    [shop] = open_shops(world.url, ["50a4"], hooks_url=world.outside.hooks_url, public_url=world.public_url)
    most = measure_rate(world, shop) if rate is None else rate * 4
    found = Soaked(minutes, round(most / 4, 1), round(most, 1))
    say(f"{most:.0f} tickets a second at most; {most / 4:.0f} for {minutes:.0f} minutes")
    asyncio.run(_soak(world, shop, found, say))
    _judge(world, shop, found)
    return found


async def _soak(world: World, shop: Shop, found: Soaked, say: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    lines = [(await loop.create_connection(Line, *world.address.address))[1] for _ in range(LINES)]
    seconds = found.minutes * 60
    started = time.monotonic()
    latencies: list[tuple[float, float]] = []
    statuses: Counter[str] = Counter()
    watching = asyncio.create_task(_watch(world, found, started, say))

    async def till(number: int, line: Line) -> None:
        """Tickets at fixed moments; a late one is measured from when it was due."""
        pace_s = LINES / found.rate_per_s
        due = started + number * pace_s / LINES
        count = 0
        while due < started + seconds and time.monotonic() < started + seconds:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            count += 1
            sale = samples.sale(STORE, external_id=f"{shop.tag}-soak-{number}-{count}")
            if count % 5 == 0:
                sale["profile_id"] = (
                    shop.customer(count % CUSTOMERS) if count % 10 else f"{shop.tag}-n-{number}-{count}"
                )
            key = f"soak-{number}-{count}" if count % 2 else None
            status, _, _, _ = await line.ask(request_bytes(shop, sale, key))
            statuses[str(status)] += 1
            latencies.append((due - started, time.monotonic() - due))
            due += pace_s

    await asyncio.gather(*(till(number, line) for number, line in enumerate(lines)))
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    for line in lines:
        if line.transport is not None:
            line.transport.abort()
    found.statuses, found.sold = dict(statuses), statuses["201"]
    for first in range(0, int(seconds), int(WINDOW_S)):
        window = sorted(took for at, took in latencies if first <= at < first + WINDOW_S)
        if window:
            found.p99_ms_by_window.append(round(window[len(window) * 99 // 100] * 1000, 1))
            found.p50_ms_by_window.append(round(statistics.median(window) * 1000, 1))


async def _watch(world: World, found: Soaked, started: float, say: Callable[[str], None]) -> None:
    processes = (*world.servers, world.worker)
    while True:
        for process in processes:
            found.memory_mib.setdefault(process.name, []).append(round(process.memory_bytes() / (1 << 20), 1))
            found.handles.setdefault(process.name, []).append(process.handles())
        rows = await asyncio.to_thread(
            world.rows, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        )
        found.connections.append(rows[0][0])
        load = (await asyncio.to_thread(_load)).split()[0]
        found.cpu_of_others.append(float(load))
        if len(found.connections) % 6 == 1:
            now = {name: series[-1] for name, series in found.memory_mib.items()}
            minutes = (time.monotonic() - started) / 60
            say(f"{minutes:4.1f} min: MiB {now}, {rows[0][0]} connections, load {load}")
        await asyncio.sleep(SAMPLE_EVERY_S)


def _load() -> str:
    with open("/proc/loadavg", encoding="ascii") as file:  # noqa: PTH123  # a file of the kernel
        return file.read()


def _judge(world: World, shop: Shop, found: Soaked) -> None:
    say = found.violations.append
    strange = {status: times for status, times in found.statuses.items() if status != "201"}
    if strange:
        say(f"I10: answered {strange}")
    for name, series in found.memory_mib.items():
        early, late = _level(series)
        if late > early * MEMORY_GROWS_MAX + MEMORY_SLACK_BYTES / (1 << 20):
            say(f"I12: {name} grew from {early:.0f} to {late:.0f} MiB")
    for name, handles in found.handles.items():
        early, late = _level(handles)
        if late > early + HANDLES_SLACK:
            say(f"I12: {name} went from {early:.0f} to {late:.0f} open files")
    early, late = _level(found.connections)
    if late > early + HANDLES_SLACK:
        say(f"I12: from {early:.0f} to {late:.0f} connections")
    world.execute("SELECT pg_stat_force_next_flush()")
    time.sleep(2)
    found.bloated = [f"{name}: {dead} dead of {dead + live}" for name, dead, live in world.rows(BLOAT, DEAD_SHARE_MAX)]
    for table in found.bloated:
        say(f"I12: dead rows are not taken away: {table}")
    [(sold,)] = world.rows(
        "SELECT count(*) FROM sales_events WHERE organization_id = %s AND external_id LIKE '%%-soak-%%'",
        shop.organization_id,
    )
    if sold != found.sold:
        say(f"I1: {found.sold} were acknowledged, {sold} are there")
    [(found.waiting,)] = world.rows("SELECT count(*) FROM outbox WHERE organization_id = %s", shop.organization_id)
    if len(found.p99_ms_by_window) > 1 and found.p99_ms_by_window[-1] > P99_GROWS_MAX * found.p99_ms_by_window[0]:
        say(f"I12: the 99th percentile went from {found.p99_ms_by_window[0]} to {found.p99_ms_by_window[-1]} ms")


def _level(series: Sequence[float]) -> tuple[float, float]:
    """The middle of the second tenth, when it has warmed up, and of the last."""
    tenth = max(1, len(series) // 10)
    return statistics.median(series[tenth : 2 * tenth] or series), statistics.median(series[-tenth:])
