"""Runs the benchmark: measures all scenarios side by side on this machine. See `bin/bench --help`."""

import argparse
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from rich.console import Console  # as above

import analytics
import attribution
import backlog
import build_cost
import campaigns
import journeys
import latency
import lists
import pages
import queues
import report  # the path above must be set first
import sale_cost
import segments  # as above
import texts
import webhooks  # as above
from database import Cluster, Organization, make_template_of_commit, make_templates, running_cluster  # as above
from growth import make_filled
from load import wrk  # as above
from processes import DidNotStartError  # as above
from scenarios import (
    SCENARIOS,
    TURN_S,
    Measurement,
    Scenario,
    as_json,
    close_scenarios,
    grown_scenario,
    measure,
    measure_in_turns,
)  # as above

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
PAGE = RESULTS.parent.parent / "docs" / "performance.md"
WARM_S = 3
PIPE_CHARACTERS = 200
GROWTH = (1_000_000,)
GROWTH_LONG = (1_000_000, 10_000_000)
# Measurements of the worker, without a load generator.
WORK = ("queues", "webhooks")
IDLE_S = 60
# Measurements that run alone, with `--only` and their name.
ALONE: dict[str, ModuleType] = {
    "pages": pages,
    "texts": texts,
    "journeys": journeys,
    "segments": segments,
    "campaigns": campaigns,
    "analytics": analytics,
    "attribution": attribution,
    "backlog": backlog,
    "sale": sale_cost,
    "build": build_cost,
    "lists": lists,
}
# Those whose size can be chosen.
SCALED = frozenset({"segments", "campaigns", "analytics", "attribution", "lists"})
# Those that can measure another commit in turns, with `--beside`.
COMPARED = frozenset({"texts", "sale", "build"})
# Those that end with an error when a target is missed.
BARS: dict[str, Callable[[Any], bool]] = {
    "pages": pages.is_reached,
    "attribution": attribution.is_reached,
    "lists": lists.is_reached,
}
GROUPS = (*dict.fromkeys(scenario.group for scenario in SCENARIOS), "turns", "latency", "growth", *ALONE, *WORK)


def main() -> None:
    options = _options()
    console = Console() if sys.stdout.isatty() else Console(width=PIPE_CHARACTERS)
    if options.only and set(options.only) <= set(WORK):
        with running_cluster() as cluster:
            _measure_work(console, cluster, make_templates(cluster)[0], options)
        return
    started = time.monotonic()
    if len(options.only) == 1 and options.only[0] in ALONE:
        _measure_alone(console, options, options.only[0], ALONE[options.only[0]])
        return
    wrk.ensure_installed()
    with tempfile.TemporaryDirectory(prefix="regulars-bench-beside-") as folder, running_cluster() as cluster:
        options.beside = options.beside and (options.beside, _source_of(options.beside, Path(folder)))
        organizations = make_templates(cluster)
        if options.beside:
            make_template_of_commit(cluster, options.beside[1])
        chosen = _choose(console, cluster, organizations[0], options)
        runs: dict[str, list[Measurement]] = {scenario.name: [] for scenario in chosen}
        others = [scenario for scenario in _in_order(chosen) if not scenario.is_in_turns]
        for repetition in range(options.repeats):
            _repeat(console, cluster, organizations, others, runs, repetition=repetition, options=options)
        for group in dict.fromkeys(scenario.group for scenario in chosen if scenario.is_in_turns):
            together = [scenario for scenario in chosen if scenario.is_in_turns and scenario.group == group]
            runs |= _compare_in_turns(console, cluster, organizations, together, options)
        rows = [_row(scenario, runs[scenario.name]) for scenario in chosen if runs[scenario.name]]
        fixed_rate = _latency(console, cluster, organizations, rows, options)
        _measure_work(console, cluster, organizations[0], options)
        machine = _machine(cluster)
    report.add_ratios(rows)
    result = {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "took_s": round(time.monotonic() - started),
        "seconds": options.seconds,
        "repeats": options.repeats,
        "machine": machine,
        "rows": rows,
        "latency_at_fixed_rate": fixed_rate,
    }
    report.print_table(console, result)
    report.print_latency(console, fixed_rate)
    report.print_goals(console, report.goals(rows))
    console.print(f"Written to {_write(result, options.output)}")
    if options.document:
        report.document(PAGE, report.markdown(result))


def _source_of(commit: str, folder: Path) -> Path:
    """Checks out the source of that commit."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit, "src"], cwd=ROOT, check=True, capture_output=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder)  # noqa: S202  # made by git from our own history a line above
    return folder / "src"


def _measure_alone(console: Console, options: argparse.Namespace, name: str, measured: ModuleType) -> None:
    """Runs these alone: they need no load, and inserting their rows takes minutes."""

    def say(text: str) -> None:
        console.print(text, highlight=False)

    with tempfile.TemporaryDirectory(prefix="regulars-bench-beside-") as folder, running_cluster() as cluster:
        sized: dict[str, Any] = {"scale": options.scale} if name in SCALED else {}
        if name in COMPARED and options.beside:
            sized = {"beside": {options.beside: _source_of(options.beside, Path(folder))}}
        times = measured.measure(cluster, say, is_quick=options.quick, **sized)
        machine = _machine(cluster)
    measured.show(times, say)
    path = options.output or RESULTS / "local" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine, name: measured.as_json(times)}, indent=2) + "\n", "utf-8")
    say(f"Written to {path}")
    is_reached = BARS.get(name)
    if is_reached is not None and not is_reached(times):
        sys.exit(1)


def _measure_work(console: Console, cluster: Cluster, organization: Organization, options: argparse.Namespace) -> None:
    """Measures the worker, unless only other groups were requested."""

    def say(text: str) -> None:
        console.print(text, highlight=False)

    if not options.only or "queues" in options.only:
        queues.measure(cluster, seconds=options.seconds if options.quick else IDLE_S, say=say)
    if not options.only or "webhooks" in options.only:
        webhooks.measure(cluster, organization, seconds=options.seconds, say=say)


def _choose(
    console: Console, cluster: Cluster, organization: Organization, options: argparse.Namespace
) -> list[Scenario]:
    """The scenarios of the chosen groups; growth adds its own."""
    groups = set(options.only or [*GROUPS])
    if "latency" in groups:
        groups |= {"sales"}
    chosen = [scenario for scenario in [*SCENARIOS, *close_scenarios(options.beside)] if scenario.group in groups]
    if "growth" in groups:
        chosen.append(grown_scenario("regulars", None, "0"))
        for sales in GROWTH_LONG if options.long else GROWTH:
            size = sales // 100 if options.quick else sales
            database = make_filled(cluster, organization, size, lambda text: console.print(text, highlight=False))
            label = f"{sales // 1_000_000} M" if not options.quick else f"{size:,}"
            chosen += [grown_scenario(app, database, label) for app in ("pgbench", "regulars")]
    return chosen


def _in_order(chosen: Sequence[Scenario]) -> list[Scenario]:
    order = {name: place for place, name in enumerate(report.IN_ORDER)}
    return sorted(chosen, key=lambda scenario: order.get(scenario.name, len(order)))


def _compare_in_turns(
    console: Console,
    cluster: Cluster,
    organizations: Sequence[Organization],
    chosen: Sequence[Scenario],
    options: argparse.Namespace,
) -> dict[str, list[Measurement]]:
    turns = max(2, options.repeats * options.seconds // TURN_S)
    console.print(f"{'; '.join(scenario.name for scenario in chosen)}: {turns} turns of {TURN_S} s", highlight=False)
    measured = measure_in_turns(cluster, organizations, chosen, turns=turns, warm_s=options.warm_up)
    for name, runs in measured.items():
        rate = statistics.median(run.rate for run in runs)
        database_us = statistics.median(run.database_us for run in runs)
        console.print(f"{name}: {rate:,.0f}/s, database {database_us:.0f} µs", highlight=False)
    return measured


def _latency(
    console: Console,
    cluster: Cluster,
    organizations: Sequence[Organization],
    rows: Sequence[dict[str, Any]],
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    highest = next((row["rate"] for row in rows if row["name"] == report.SALES), None)
    if highest is None or (options.only and "latency" not in options.only):
        return []
    return latency.measure(
        cluster,
        organizations,
        rate=highest / 4,
        seconds=options.seconds,
        repeats=options.repeats,
        warm_s=options.warm_up,
        say=lambda text: console.print(text, highlight=False),
    )


def _repeat(
    console: Console,
    cluster: Cluster,
    organizations: Sequence[Organization],
    chosen: Sequence[Scenario],
    runs: dict[str, list[Measurement]],
    *,
    repetition: int,
    options: argparse.Namespace,
) -> None:
    """Alternates the runners inside a repetition, so that a noisy minute of the machine affects all of them."""
    for scenario in chosen:
        name = f"r{repetition}"
        try:
            measured = measure(
                cluster, organizations, scenario, name=name, seconds=options.seconds, warm_s=options.warm_up
            )
        except (DidNotStartError, RuntimeError) as error:
            console.print(f"[red]{scenario.name}: {error}[/red]", highlight=False)
            continue
        runs[scenario.name].append(measured)
        console.print(
            f"[dim]{repetition + 1}/{options.repeats}[/dim] {scenario.name}: {measured.rate:,.0f}/s,"
            f" p99 {measured.p99_ms:.1f} ms, app {measured.app_us:.0f} µs, database {measured.database_us:.0f} µs"
            + (f", [red]{measured.errors} errors[/red]" if measured.errors else ""),
            highlight=False,
        )


def _row(scenario: Scenario, runs: Sequence[Measurement]) -> dict[str, Any]:
    """The median of each metric, and the spread of the rates.

    A run with errors counts as failed and has no rate, because refusals are faster than sales. If every run failed,
    the row has the rate 0 and no ratio.
    """
    valid = [run for run in runs if not run.errors]
    rates = [run.rate for run in valid]
    row: dict[str, Any] = {"name": scenario.name, "group": scenario.group, "workers": scenario.workers}
    for figure in as_json(runs[0]):
        row[figure] = statistics.median([as_json(run)[figure] for run in valid]) if valid else 0.0
    row["errors"] = sum(run.errors for run in runs)
    row["failed_runs"] = len(runs) - len(valid)
    row["spread"] = (max(rates) - min(rates)) / row["rate"] if rates else 0.0
    row["rates"] = rates
    row["cpu_us"] = [run.app_us + run.jobs_us + run.database_us + run.load_us for run in valid]
    # Rates of two rows are paired if both were measured in the same turns or repetitions.
    row["in_turns"] = scenario.group if scenario.is_in_turns else ""
    return row


def _machine(cluster: Cluster) -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "postgresql": cluster.settings(),
    }


def _write(result: dict[str, Any], output: Path | None) -> Path:
    path = output or RESULTS / "local" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    path.with_suffix(".md").write_text(report.markdown(result), "utf-8")
    return path


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help=", ".join(GROUPS))
    parser.add_argument("--seconds", type=int, default=8, help="length of one measurement")
    parser.add_argument("--repeats", type=int, default=3, help="how often each is measured")
    parser.add_argument("--warm-up", type=int, default=WARM_S, help="seconds of load before each measurement")
    parser.add_argument("--quick", action="store_true", help="3 seconds, once: to see that everything runs")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of segments and analytics: the share of a million customers"
    )
    parser.add_argument(
        "--beside", metavar="COMMIT", help="of turns, texts, sale and build: measure this commit in the same turns"
    )
    parser.add_argument("--long", action="store_true", help="also the growth to 10 million stored sales")
    parser.add_argument("--output", type=Path, help="where the JSON goes; default bench/results/local/")
    parser.add_argument("--document", action="store_true", help="put the results into docs/performance.md")
    options = parser.parse_args()
    unknown = set(options.only) - set(GROUPS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    if options.quick:
        options.seconds, options.repeats = 3, 1
    return options


if __name__ == "__main__":
    main()
