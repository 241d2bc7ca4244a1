"""Measures latency at a fixed rate: of the server with an open-loop client, and of `pgbench --rate`."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pgbench
from database import Cluster, Organization
from load import wrk
from scenarios import CONNECTIONS, Scenario, start

CLIENT = Path(__file__).parent / "load" / "open_loop.py"
# Above this share of a core the client itself limits the result.
CLIENT_CPU_SHARE_MAX = 0.6


def measure(
    cluster: Cluster,
    organizations: Sequence[Organization],
    *,
    rate: float,
    seconds: int,
    repeats: int,
    warm_s: int,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for repetition in range(repeats):
        url = cluster.clone("bench_latency")
        done = pgbench.run(cluster, organizations[0], "bench_latency", seconds=seconds, rate=rate)
        theirs.append({"p50_ms": done.p50_ms, "p99_ms": done.p99_ms})
        with start(Scenario("latency", "latency", "regulars"), url) as server:
            key = organizations[0].key
            wrk.run(server.url, "sales", name=f"l{repetition}w", keys=[key], connections=CONNECTIONS, seconds=warm_s)
            ours.append(open_loop(server.port, key, rate=rate, seconds=seconds, name=f"l{repetition}"))
        cluster.drop("bench_latency")
        say(
            f"latency at {rate:,.0f}/s: Regulars p50 {ours[-1]['p50_ms']:.1f} p99 {ours[-1]['p99_ms']:.1f} ms,"
            f" pgbench p50 {done.p50_ms:.1f} p99 {done.p99_ms:.1f} ms"
        )
    return [_row("Regulars sales, 1 worker", rate, ours), _row("pgbench --rate", rate, theirs)]


def open_loop(port: int, key: str, *, rate: float, seconds: int, name: str, distinct: bool = False) -> dict[str, Any]:
    """Sends sales at a fixed rate; `distinct`: each of another existing customer."""
    command = [sys.executable, str(CLIENT), "--port", str(port), "--key", key, "--rate", f"{rate:.1f}"]
    command += ["--seconds", str(seconds), "--name", name, *(["--distinct"] if distinct else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the open-loop client failed: {done.stderr[-800:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _row(name: str, rate: float, runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "at_rate": rate}
    for figure in ("p50_ms", "p99_ms"):
        row[figure] = statistics.median(run[figure] for run in runs)
    row["p99_ms_of_each"] = [run["p99_ms"] for run in runs]
    row["errors"] = sum(run.get("errors", 0) for run in runs)
    row["client_is_bottleneck"] = any(run.get("client_cpu_share", 0) > CLIENT_CPU_SHARE_MAX for run in runs)
    return row
