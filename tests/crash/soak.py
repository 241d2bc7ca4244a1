"""Runs everything for half an hour at a quarter of the highest load, and reports what grows or gets slower."""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.crash import growth
from tests.crash.load import Report, Sender, read_accepted
from tests.crash.shops import Shop, open_shops
from tests.crash.world import World, wait_until

# Six windows, of five minutes each in half an hour. An earlier one does not count: caches fill, and tables get their
# first statistics.
WINDOWS: Final = 6
SAMPLES_PER_WINDOW: Final = 30
SAMPLE_EVERY_S_MAX: Final = 10.0
CHECKPOINT_S_MIN: Final = 30
MEASURING_S: Final = 20.0
CALLERS: Final = 64
LINES: Final = 128
REST_S_MAX: Final = 300.0
P99_GROWS_MAX: Final = 1.2


@dataclass
class SoakResult:
    minutes: float
    window_s: float
    warm_up_s: float
    most_per_s: float = 0.0
    rate_per_s: float = 0.0
    windows: list[dict[str, Any]] = field(default_factory=list)
    sold: int = 0
    lost: int = 0
    texts: int = 0
    webhooks: int = 0
    rest_s: float = 0.0
    samples: list[dict[str, Any]] = field(default_factory=list)
    # Becomes true after the last check.
    is_whole: bool = False
    violations: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def soak(world: World, found: SoakResult, *, say: Callable[[str], None], rate: float | None = None) -> None:
    [shop] = open_shops(world.url, ["50a4"], hooks_url=world.external.hooks_url, public_url=world.public_url)
    _checkpoint_in_every_window(world, found.window_s)
    found.most_per_s = round(_highest_rate(world, shop) if rate is None else rate * 4, 1)
    found.rate_per_s = round(found.most_per_s / 4, 1)
    say(f"{found.most_per_s:.0f} tickets a second at most, from {CALLERS} callers who wait, with everything on.")
    say(f"{found.rate_per_s:.0f} a second for {found.minutes:g} minutes, after {found.warm_up_s:.0f} s of warming up")
    _wait_until_idle(world)
    accepted = Path(tempfile.mkdtemp(prefix="regulars-soak-")) / "accepted"
    sender = Sender(
        shop,
        world.address.address,
        name="soak",
        seconds=found.warm_up_s + found.minutes * 60,
        rate=found.rate_per_s,
        connections=LINES,
        warm_up_s=found.warm_up_s,
        window_s=found.window_s,
        accepted=str(accepted),
    )
    watch = growth.Watch(world, time.monotonic())
    try:
        _watch(sender, watch, found, say)
        report = sender.report()
    finally:
        sender.end()
        found.samples = [asdict(it) for it in watch.samples]
    found.violations += _judge_answers(world, shop, report, accepted, found)
    _put_into_windows(report, watch, found)
    ends_s = found.warm_up_s + found.minutes * 60
    first = watch.between(found.warm_up_s, found.warm_up_s + found.window_s)
    found.violations += growth.judge(first, watch.between(ends_s - found.window_s, ends_s), rate=found.rate_per_s)
    early, late = found.windows[0]["p99_ms"], found.windows[-1]["p99_ms"]
    if late > P99_GROWS_MAX * early:
        found.violations.append(f"I12: the 99th percentile went from {early} to {late} ms, by {late / early:.2f}")
    found.is_whole = True


def _checkpoint_in_every_window(world: World, window_s: float) -> None:
    """By default a checkpoint comes every quarter of an hour, so that windows without one would be faster."""
    world.execute(f"ALTER SYSTEM SET checkpoint_timeout = '{max(CHECKPOINT_S_MIN, int(window_s))}s'")
    world.execute("SELECT pg_reload_conf()")


def _highest_rate(world: World, shop: Shop) -> float:
    """The highest rate. Only the second half counts, after statements are prepared and the worker keeps up."""
    sender = Sender(
        shop,
        world.address.address,
        name="most",
        seconds=MEASURING_S,
        connections=CALLERS,
        warm_up_s=MEASURING_S / 2,
    )
    try:
        return sender.report().all.answers.get("201", 0) / (MEASURING_S / 2)
    finally:
        sender.end()


def _wait_until_idle(world: World) -> float:
    return wait_until(
        lambda: not any(world.rows(growth.WAITING)[0]),
        seconds=REST_S_MAX,
        what="the worker does not come to rest",
        every_s=0.5,
    )


def _watch(sender: Sender, watch: growth.Watch, found: SoakResult, say: Callable[[str], None]) -> None:
    every_s = min(SAMPLE_EVERY_S_MAX, found.window_s / SAMPLES_PER_WINDOW)
    next_line_s = 0.0
    while sender.is_sending():
        sample = watch.look()
        # The tables have the counts of what arrived.
        watch.world.external.forget()
        if sample.at_s >= next_line_s:
            next_line_s = sample.at_s + 60
            say(
                f"{sample.at_s / 60:4.1f} min: MiB {sample.memory_mib}, {sample.connections} connections,"
                f" {sample.waiting} waiting, others use {sample.others_share:.0%} of the machine"
            )
        time.sleep(every_s)


def _judge_answers(world: World, shop: Shop, report: Report, accepted: Path, found: SoakResult) -> list[str]:
    violations = []
    strange = {status: times for status, times in report.all.answers.items() if status != "201"}
    if strange or report.lost or report.unanswered:
        violations.append(f"I10: answered {strange}, {report.lost} lost, {report.unanswered} without an answer")
    numbers = set(read_accepted(accepted))
    found.sold, found.lost = len(numbers), report.lost
    rows = world.rows(
        "SELECT right(external_id, 12)::bigint FROM sales_events WHERE organization_id = %s AND external_id LIKE %s",
        shop.organization_id,
        f"{shop.tag}-soak-%",
    )
    missing = len(numbers - {row[0] for row in rows})
    if missing:
        violations.append(f"I1: {missing} of {len(numbers)} acknowledged tickets are missing")
    try:
        found.rest_s = round(_wait_until_idle(world), 1)
    except AssertionError as error:
        violations.append(str(error))
    [(counted,)] = world.rows("SELECT coalesce(sum(purchases + returns), 0) FROM sales_totals WHERE NOT is_hour")
    [(sales,)] = world.rows("SELECT count(*) FROM sales_events")
    if counted != sales:
        violations.append(f"I3: {sales} sales, and {counted} were counted")
    [(found.texts,)] = world.rows("SELECT count(*) FROM texts WHERE state IN ('sent', 'delivered')")
    [(found.webhooks,)] = world.rows("SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'")
    return violations


def _put_into_windows(report: Report, watch: growth.Watch, found: SoakResult) -> None:
    for number, window in enumerate(report.windows[:WINDOWS]):
        since_s = found.warm_up_s + number * found.window_s
        samples = watch.between(since_s, since_s + found.window_s)
        found.windows.append(
            {
                "p50_ms": window.p50_ms,
                "p99_ms": window.p99_ms,
                "answers": window.answers,
                "memory_mib": {
                    name: statistics.median(it.memory_mib[name] for it in samples) for name in samples[0].memory_mib
                },
                "handles": sum(statistics.median(it.handles[name] for it in samples) for name in samples[0].handles),
                "connections": statistics.median(it.connections for it in samples),
                "waiting": statistics.median(it.waiting for it in samples),
                "dead_rows": statistics.median(sum(dead for dead, _ in it.dead.values()) for it in samples),
                "others_share": round(statistics.mean(it.others_share for it in samples), 2),
            }
        )


def show(found: SoakResult, say: Callable[[str], None]) -> None:
    """A column per window, a line per metric that must not grow."""
    if not found.windows:
        return
    lines: dict[str, list[str]] = {
        "minute": [f"{(number + 1) * found.window_s / 60:.3g}" for number in range(len(found.windows))],
        "50th percentile, ms": [f"{it['p50_ms']:.1f}" for it in found.windows],
        "99th percentile, ms": [f"{it['p99_ms']:.1f}" for it in found.windows],
        "accepted": [str(it["answers"].get("201", 0)) for it in found.windows],
        "open files": [f"{it['handles']:.0f}" for it in found.windows],
        "connections": [f"{it['connections']:.0f}" for it in found.windows],
        "waiting for the worker": [f"{it['waiting']:.0f}" for it in found.windows],
        "dead rows": [f"{it['dead_rows']:.0f}" for it in found.windows],
        "used by others": [f"{it['others_share']:.0%}" for it in found.windows],
    }
    for name in found.windows[0]["memory_mib"]:
        lines[f"{name}, MiB"] = [f"{it['memory_mib'][name]:.0f}" for it in found.windows]
    for name, values in lines.items():
        say(f"{name:24}" + "".join(f"{value:>9}" for value in values))
    say(
        f"{found.sold} tickets, {found.texts} texts, {found.webhooks} webhooks; at rest {found.rest_s} s after the last."
    )
