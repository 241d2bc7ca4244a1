"""Measures redirects of short links at a fixed rate: each request has another personal link, as after a campaign."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from database import Cluster
from processes import cpu_s, free_port, regulars_command, running_server, wait_until_started
from regulars.kit.migrate import migrate

DATABASE = "bench_redirects"
CLIENT = Path(__file__).parent / "load" / "open_loop.py"
RATE = 1_000.0
P99_MS_MAX = 20.0
PREFIX = "benc"
LINKS = 200_000
SECONDS = 20
WARM_S = 3
WRITTEN_S_MAX = 10.0
_FILL = """
INSERT INTO organizations (id, name, secret, created_at)
VALUES ('00000000-0000-7000-8000-000000000001', 'Redirects', '\\x00', now());
INSERT INTO link_prefixes VALUES ('benc', '00000000-0000-7000-8000-000000000001');
INSERT INTO links
    (organization_id, code, url, origin_kind, origin_id, step, created_at, personal_since, text_id, profile_id)
SELECT '00000000-0000-7000-8000-000000000001', lpad(to_hex(n), 8, '0'), 'https://shop.example/sale', 'campaign',
       '00000000-0000-7000-8000-000000000002', '1', now(), now(), gen_random_uuid(), gen_random_uuid()
FROM generate_series(1, %s) AS n;
ANALYZE links;
"""


@dataclass(frozen=True)
class Redirects:
    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    errors: int
    # Processor time of the server and its children per redirect, including the insert of its click.
    processor_us: float
    requests: int
    clicks: int

    @property
    def is_reached(self) -> bool:
        return self.p99_ms <= P99_MS_MAX and not self.errors and self.clicks == self.requests


def measure(cluster: Cluster, *, is_quick: bool) -> Redirects:
    links, seconds = (20_000, 5) if is_quick else (LINKS, SECONDS)
    cluster.drop(DATABASE)
    cluster.execute(f"CREATE DATABASE {DATABASE}")
    url = cluster.url_of(DATABASE)
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection, psycopg.ClientCursor(connection) as cursor:
        cursor.execute(_FILL, (links,))  # type: ignore[arg-type,unused-ignore]  # a constant of this file
    port = free_port()
    environment = {"DATABASE_URL": url, "REGULARS_PORT": str(port), "REGULARS_LOG_LEVEL": "warning"}
    with (
        tempfile.TemporaryDirectory(prefix="regulars-bench-") as folder,
        running_server(
            regulars_command(with_worker=False), {**environment, "REGULARS_DATA_DIR": folder}, port=port
        ) as server,
    ):
        wait_until_started(server.pid)
        first = int(RATE * WARM_S)
        _run(port, folder, range(1, first), seconds=WARM_S)
        _wait_for_clicks(cluster, first)
        before, counted = cpu_s(server.pid), cluster.count("clicks", DATABASE)
        result = _run(port, folder, range(first, links), seconds=seconds)
        clicks = _wait_for_clicks(cluster, counted + result["sent"]) - counted
        processor_us = (cpu_s(server.pid) - before) / result["sent"] * 1e6
    cluster.drop(DATABASE)
    return Redirects(
        RATE,
        result["p50_ms"],
        result["p99_ms"],
        result["max_ms"],
        result["errors"],
        processor_us,
        result["sent"],
        clicks,
    )


def show(found: Redirects, say: Callable[[str], None]) -> None:
    verdict = "reached" if found.is_reached else "MISSED"
    say(
        f"redirects at {found.rate:,.0f}/s: p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms (bar {P99_MS_MAX:.0f}:"
        f" {verdict}), slowest {found.max_ms:.0f} ms, {found.errors} errors, {found.processor_us:.0f} us each of the"
        f" server; {found.clicks:,} of {found.requests:,} clicks counted"
    )


def _run(port: int, folder: str, numbers: range, *, seconds: int) -> dict[str, Any]:
    paths = Path(folder) / "paths"
    paths.write_text("\n".join(f"/l/{PREFIX}{number:08x}" for number in numbers))
    command = [sys.executable, str(CLIENT), "--port", str(port), "--paths", str(paths), "--rate", str(RATE)]
    command += ["--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the open-loop client failed: {done.stderr[-800:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _wait_for_clicks(cluster: Cluster, expected: int) -> int:
    deadline = time.monotonic() + WRITTEN_S_MAX
    while (counted := cluster.count("clicks", DATABASE)) < expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return counted


if __name__ == "__main__":
    from database import running_cluster

    with running_cluster() as opened:
        show(measure(opened, is_quick="--quick" in sys.argv), print)
