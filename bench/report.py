"""Formats the results: medians, spread, and the ratios that the project promises."""

import statistics
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

CEILING = "pgbench"
# The peer is the fastest of its set-ups in the run; a slower one would flatter us.
PEERS = ("FastAPI, 1 worker", "FastAPI, 2 workers")
PEER = "fastest FastAPI"
SALES = "Regulars sales, 1 worker"
KEYS = "Regulars sales, 1 worker, keys"
BATCH = "Regulars batch of 100 (rows/s)"
ORGANIZATIONS = "Regulars sales, 200 organizations"
OPT_INS = "Regulars opt-ins"
LONE = "Regulars sales, 1 connection"


def in_turns(name: str) -> str:
    return f"{name}, in turns"


# Rows near their promised ratio: measured alternately, a few seconds at a time.
CLOSE = tuple(map(in_turns, (CEILING, SALES, KEYS, BATCH, ORGANIZATIONS, OPT_INS, LONE, *PEERS)))
# Rows that `--beside` also measures for another commit, alternately.
COMPARED = (SALES, KEYS, OPT_INS, LONE)
# The promises: a row, the row it is compared with, and the smallest ratio.
GOALS = (
    (SALES, CEILING, 0.5),
    (in_turns(SALES), in_turns(CEILING), 0.85),
    (SALES, PEER, 10.0),
    (in_turns(SALES), in_turns(PEER), 10.0),
    (KEYS, SALES, 0.7),
    (in_turns(KEYS), in_turns(SALES), 0.85),
    (in_turns(BATCH), in_turns(CEILING), 1.5),
    (in_turns(ORGANIZATIONS), in_turns(SALES), 0.5),
    (in_turns(OPT_INS), in_turns(SALES), 0.45),
    ("Regulars GET profile by external_id", SALES, 0.8),
    ("Regulars GET sale by external_id", SALES, 0.8),
    ("Regulars profiles, all new", SALES, 0.5),
    ("Regulars profiles, one attribute", SALES, 0.5),
    ("Regulars profiles in batches of 500 (rows/s)", SALES, 1.5),
    (OPT_INS, SALES, 0.35),
    ("Regulars duplicates", SALES, 0.8),
    (f"{SALES}, 1 M stored", f"{SALES}, 0 stored", 0.9),
    (f"{SALES}, 10 M stored", f"{SALES}, 0 stored", 0.8),
)
# The same promises for processor time.
GOALS_BY_CPU = ((in_turns(SALES), in_turns(CEILING), 1.1),)
# Rows that a goal compares are measured one after the other, because the speed of the machine drifts.
IN_ORDER = (BATCH, CEILING, SALES, KEYS, *(name for name, other, _ in GOALS if other == SALES and name != KEYS), *PEERS)
MEMORY_MIB_MAX = 200
OTHERS_CORES_MAX = 0.2
RESULTS_BEGIN = "<!-- results -->"
RESULTS_END = "<!-- /results -->"
HEADINGS = (
    "per second",
    "spread",
    "x pgbench",
    "by CPU",
    "x FastAPI",
    "p50 ms",
    "p99 ms",
    "app µs",
    "jobs µs",
    "db µs",
    "load µs",
    "MiB",
    "others",
)


def add_ratios(rows: list[dict[str, Any]]) -> None:
    """Adds the rate of each row as a share of pgbench's and as a multiple of the peer's, if those were measured."""
    named = _by_name(rows)
    for row in rows:
        ceiling = named.get(in_turns(CEILING) if row["name"] in CLOSE else CEILING)
        row["to_pgbench"] = _compare(row, ceiling)
        row["to_pgbench_by_cpu"] = _compare_cpu(row, ceiling)
        row["to_fastapi"] = _compare(row, named.get(in_turns(PEER) if row["name"] in CLOSE else PEER))


def _by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    named = {row["name"]: row for row in rows}
    for peer, names in ((PEER, PEERS), (in_turns(PEER), tuple(map(in_turns, PEERS)))):
        peers = [named[name] for name in names if name in named]
        if peers:
            named[peer] = max(peers, key=lambda row: row["rate"])
    return named


def _compare(row: dict[str, Any], other: dict[str, Any] | None) -> float | None:
    """The median ratio over the repetitions (or turns), each of which measured both at nearly the same time.

    If a run failed, or only one of the two was measured in turns, it is the ratio of the medians.
    """
    if other is None or not row["rate"] or not other["rate"]:
        return None
    if _are_paired(row, other):
        return statistics.median(one / two for one, two in zip(row["rates"], other["rates"], strict=True))
    return float(row["rate"] / other["rate"])


def _compare_cpu(row: dict[str, Any], other: dict[str, Any] | None) -> float | None:
    """The same for the processor time per row in all processes, which decides the rate on busy cores."""
    if other is None or not row["rate"] or not other["rate"]:
        return None
    if _are_paired(row, other):
        return statistics.median(two / one for one, two in zip(row["cpu_us"], other["cpu_us"], strict=True))
    return statistics.median(other["cpu_us"]) / statistics.median(row["cpu_us"])


def _are_paired(row: dict[str, Any], other: dict[str, Any]) -> bool:
    is_alike = row["in_turns"] == other["in_turns"] and len(row["rates"]) == len(other["rates"])
    return is_alike and not row["failed_runs"] and not other["failed_runs"]


def print_table(console: Console, result: dict[str, Any]) -> None:
    others = statistics.mean(row["others_cores"] for row in result["rows"]) if result["rows"] else 0.0
    if others > OTHERS_CORES_MAX:
        console.print(
            f"[red]Other processes kept {others:.1f} cores busy: the rates say little.[/red]", highlight=False
        )
    title = f"{result['repeats']} x {result['seconds']} s each, median (spread = highest - lowest, of the median)"
    table = Table(title=title)
    table.add_column("what", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    table.add_column("errors", justify="right", style="red")
    for row in result["rows"]:
        table.add_row(*_cells(row))
    console.print(table)


def markdown(result: dict[str, Any]) -> str:
    """The table and its notes, for a page of the documentation."""
    headings = ["what", *HEADINGS, "errors"]
    lines = [f"| {' | '.join(headings)} |", "|---" + "|---:" * (len(headings) - 1) + "|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in result["rows"]]
    lines += [""] + [
        f"- {row['name']} at {row['at_rate']:,.0f}/s: p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms"
        for row in result["latency_at_fixed_rate"]
    ]
    lines += [
        f"- {name}: {ratio:.2f} (promised {least:g}: {'reached' if ratio >= least else 'missed'})"
        for name, ratio, least in goals(result["rows"])
    ]
    others = statistics.mean(row["others_cores"] for row in result["rows"]) if result["rows"] else 0.0
    if others > OTHERS_CORES_MAX:
        lines += ["", f"Other processes kept {others:.1f} cores busy during this run: go by the processor time."]
    machine = result["machine"]
    lines += ["", f"{result['repeats']} x {result['seconds']} s each, {machine['cores']} cores, {machine['system']},"]
    lines += [f"Python {machine['python']}, PostgreSQL {machine['postgresql']['server_version']}, {result['made_at']}."]
    return "\n".join(lines) + "\n"


def document(page: Path, text: str) -> None:
    """Replaces the results in the page."""
    before, _, rest = page.read_text("utf-8").partition(RESULTS_BEGIN)
    _, _, after = rest.partition(RESULTS_END)
    page.write_text(f"{before}{RESULTS_BEGIN}\n{text}{RESULTS_END}{after}", "utf-8")


def goals(rows: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Each measured goal: its text, the result, and the promise."""
    named = _by_name(rows)
    measured = [
        (f"{name} / {other}", ratio, least)
        for name, other, least in GOALS
        if name in named and (ratio := _compare(named[name], named.get(other))) is not None
    ]
    measured += [
        (f"{name} / {other}, by processor time", ratio, least)
        for name, other, least in GOALS_BY_CPU
        if name in named and (ratio := _compare_cpu(named[name], named.get(other))) is not None
    ]
    memory = max((row["memory_mib"] for row in rows if row["name"].startswith("Regulars")), default=0.0)
    return [*measured, (f"{MEMORY_MIB_MAX} MiB / largest worker", MEMORY_MIB_MAX / memory, 1.0)] if memory else measured


def print_goals(console: Console, measured: list[tuple[str, float, float]]) -> None:
    for name, ratio, least in measured:
        mark = "[green]reached[/green]" if ratio >= least else "[red]missed[/red]"
        console.print(f"{mark} {name}: {ratio:.2f}, promised {least:g}", highlight=False)


def print_latency(console: Console, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        note = " (the client was the bottleneck)" if row["client_is_bottleneck"] else ""
        console.print(
            f"{row['name']} at {row['at_rate']:,.0f}/s: p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms{note}",
            highlight=False,
        )


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["name"],
        f"{row['rate']:,.0f}",
        f"{row['spread']:.0%}",
        _ratio(row["to_pgbench"]),
        _ratio(row["to_pgbench_by_cpu"]),
        _ratio(row["to_fastapi"]),
        f"{row['p50_ms']:.1f}",
        f"{row['p99_ms']:.1f}",
        f"{row['app_us']:.0f}" if row["app_us"] else "",
        f"{row['jobs_us']:.0f}" if row["jobs_us"] else "",
        f"{row['database_us']:.0f}",
        f"{row['load_us']:.0f}",
        f"{row['memory_mib']:.0f}" if row["memory_mib"] else "",
        f"{row['others_cores']:.1f}",
        f"{row['errors']} in {row['failed_runs']} runs, left out" if row["failed_runs"] else "",
    ]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
