"""Samples what must not grow during a soak every few seconds, and compares its first and last window."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
from tests.crash.world import World
from tests.support.embedded_command import postmaster_pid

# Allows for caches of keys, stores and statements.
MEMORY_GROWS_MAX: Final = 1.15
MEMORY_SLACK_MIB: Final = 24.0
COUNT_SLACK: Final = 24.0
# The backlog of the worker varies by some seconds of load.
WAITING_SLACK_S: Final = 10.0
# Autovacuum runs once a minute on tables with a fifth of dead rows, so that many may be there.
DEAD_SHARE_MAX: Final = 0.3
DEAD_GROWS_MAX: Final = 1.5
DEAD_SLACK_S: Final = 60.0
# Tables whose rows are deleted again: their files reach a size and keep it.
QUEUES: Final = ("outbox", "outbox_retries")
QUEUE_SLACK_BYTES: Final = 16 << 20
TABLES: Final = "SELECT relname, n_dead_tup, n_live_tup, pg_table_size(relid) FROM pg_stat_user_tables"
WAITING: Final = """
SELECT (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM texts WHERE due_at IS NOT NULL),
    (SELECT count(*) FROM webhook_deliveries WHERE due_at IS NOT NULL)
"""
CONNECTIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


@dataclass
class Sample:
    at_s: float
    memory_mib: dict[str, float]
    handles: dict[str, float]
    connections: float
    waiting: float
    dead: dict[str, tuple[int, int]]
    table_bytes: dict[str, int]
    # Share of the machine's time that other programs used since the previous sample.
    others_share: float


@dataclass
class Watch:
    world: World
    started: float
    samples: list[Sample] = field(default_factory=list)
    _used: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def look(self) -> Sample:
        processes = (*self.world.servers, self.world.worker)
        with psycopg.connect(self.world.url, autocommit=True, connect_timeout=10) as connection:
            [(connections,)] = connection.execute(CONNECTIONS)
            [waiting] = connection.execute(WAITING)
            tables = connection.execute(TABLES).fetchall()
        sample = Sample(
            at_s=round(time.monotonic() - self.started, 1),
            memory_mib={it.name: round(it.memory_bytes() / (1 << 20), 1) for it in processes},
            handles={it.name: it.handles() for it in processes},
            connections=connections,
            waiting=sum(waiting),
            dead={name: (dead, live) for name, dead, live, _ in tables if dead},
            table_bytes={name: size for name, _, _, size in tables},
            others_share=self._others(),
        )
        self.samples.append(sample)
        return sample

    def _others(self) -> float:
        before, self._used = self._used, _used_s(os.getpid(), postmaster_pid(self.world.data_dir))
        span_s, all_s, ours_s = (now - then for now, then in zip(self._used, before, strict=True))
        if not before[0] or span_s <= 0:
            return 0.0
        return round(max(0.0, all_s - ours_s) / span_s / (os.cpu_count() or 1), 2)

    def between(self, first_s: float, last_s: float) -> list[Sample]:
        return [it for it in self.samples if first_s <= it.at_s < last_s] or self.samples[-1:]


def _used_s(*roots: int) -> tuple[float, float, float]:
    """The current time, and the processor times of the machine and of these process trees."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    user, nice, system, _idle, _wait, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    parents, used = {}, {}
    for pid, fields in _processes():
        parents[pid] = int(fields[1])
        # Its own time, and that of ended children.
        used[pid] = sum(map(int, fields[11:15]))
    ours = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return time.monotonic(), (user + nice + system + irq + soft) * tick_s, sum(used.get(it, 0) for it in ours) * tick_s


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
            except (OSError, IndexError):
                continue


def judge(first: Sequence[Sample], last: Sequence[Sample], *, rate: float) -> list[str]:
    """Returns what grew more from the first to the last window than allowed."""
    found = []
    for name in first[0].memory_mib:
        early, late = _level(first, last, lambda it, name=name: it.memory_mib[name])  # type: ignore[misc]  # bound now
        if late > early * MEMORY_GROWS_MAX + MEMORY_SLACK_MIB:
            found.append(f"I12: {name} grew from {early:.0f} to {late:.0f} MiB")
        early, late = _level(first, last, lambda it, name=name: it.handles[name])  # type: ignore[misc]  # bound now
        if late > early + COUNT_SLACK:
            found.append(f"I12: {name} went from {early:.0f} to {late:.0f} open files")
    early, late = _level(first, last, lambda it: it.connections)
    if late > early + COUNT_SLACK:
        found.append(f"I12: from {early:.0f} to {late:.0f} connections")
    early, late = _level(first, last, lambda it: it.waiting)
    if late > early + WAITING_SLACK_S * rate:
        found.append(f"I12: the worker does not keep up: {early:.0f} and later {late:.0f} rows waited for it")
    return found + _bloated(first, last, rate=rate)


def _bloated(first: Sequence[Sample], last: Sequence[Sample], *, rate: float) -> list[str]:
    found = []
    for name in sorted({name for it in last for name in it.dead}):
        early, late = _level(first, last, lambda it, name=name: it.dead.get(name, (0, 0))[0])  # type: ignore[misc]  # bound now
        _, live = _level(first, last, lambda it, name=name: it.dead.get(name, (0, 0))[1])  # type: ignore[misc]  # bound now
        if late > early * DEAD_GROWS_MAX + DEAD_SLACK_S * rate and late > DEAD_SHARE_MAX * (late + live):
            found.append(f"I12: dead rows are not taken away: {name} had {early:.0f} and has {late:.0f}")
    for name in QUEUES:
        early, late = _level(first, last, lambda it, name=name: it.table_bytes[name])  # type: ignore[misc]  # bound now
        if late > early * DEAD_GROWS_MAX + QUEUE_SLACK_BYTES:
            found.append(f"I12: {name} grew from {early / (1 << 20):.0f} to {late / (1 << 20):.0f} MiB")
    return found


def _level(first: Sequence[Sample], last: Sequence[Sample], value: Callable[[Sample], float]) -> tuple[float, float]:
    return statistics.median(map(value, first)), statistics.median(map(value, last))
