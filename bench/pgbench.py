"""Measures the upper limit: pgbench inserts the same row into the same table, one transaction each."""

import json
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from database import Cluster, Organization
from processes import cpu_s, ended_children_cpu_s, machine_cpu_s
from tickets import CUSTOMERS, STORES, stored_lines

CLIENTS = 64
THREADS = 2
# Two scripts, so that one ticket in five has three lines. The lines are a variable: in prepared mode they are sent and
# checked as a parameter each time, as for every other client.
SCRIPT = """\
\\set ticket random(1, 9000000000000000000)
\\set store random(1, {stores})
\\set customer random(1, {customers})
\\set age random(60, 172800)
\\set amount random(1000, 30000)
INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at, total_amount_cents, \
total_discount_cents, total_tax_cents, external_id, type, currency, source, payments, loyalty, metadata, line_items) \
VALUES ('{organization}'::uuid, uuidv7(), ('00000000-0000-7000-8000-' || lpad(:store::text, 12, '0'))::uuid, \
('00000000-0000-7000-9000-' || lpad(:customer::text, 12, '0'))::uuid, now() - :age::int * interval '1 second', now(), \
:amount, 0, 2080, 'S001:' || :ticket::text, 'PURCHASE', 'EUR', 'pos', NULL, NULL, NULL, :{lines}::json);
"""
SCRIPTS = (("lines2", 2, 4), ("lines3", 3, 1))


@dataclass(frozen=True)
class InsertResult:
    rate: float
    transactions: int
    p50_ms: float
    p99_ms: float
    database_us: float
    load_us: float
    others_cores: float


def run(
    cluster: Cluster, organization: Organization, database: str, *, seconds: int, rate: float | None = None
) -> InsertResult:
    with tempfile.TemporaryDirectory(prefix="regulars-pgbench-") as folder:
        command = _command(cluster, organization, database, Path(folder), seconds)
        if rate is not None:
            command.append(f"--rate={rate:.0f}")
        load_before, machine_before = ended_children_cpu_s(), machine_cpu_s()
        database_before, started = cpu_s(cluster.postmaster_pid), time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
        output, errors = process.communicate(timeout=seconds + 60)
        elapsed = time.monotonic() - started
        # The processor time of an ended backend counts once its parent has collected it.
        time.sleep(0.3)
        database_s = cpu_s(cluster.postmaster_pid) - database_before
        load_s = ended_children_cpu_s() - load_before
        others_s = machine_cpu_s() - machine_before - database_s - load_s
        if process.returncode != 0:
            raise RuntimeError(f"pgbench failed after {elapsed:.0f} s: {errors[-1000:]}")
        latencies = sorted(_latencies_us(Path(folder)))
    transactions = int(_found(r"number of transactions actually processed: (\d+)", output))
    return InsertResult(
        rate=float(_found(r"tps = ([\d.]+)", output)),
        transactions=transactions,
        p50_ms=latencies[len(latencies) // 2] / 1000,
        p99_ms=latencies[len(latencies) * 99 // 100] / 1000,
        database_us=database_s / transactions * 1e6,
        load_us=load_s / transactions * 1e6,
        others_cores=others_s / elapsed,
    )


def _command(cluster: Cluster, organization: Organization, database: str, folder: Path, seconds: int) -> list[str]:
    command = [
        str(cluster.programs / "pgbench"),
        "--no-vacuum",
        "--protocol=prepared",
        f"--client={CLIENTS}",
        f"--jobs={THREADS}",
        f"--time={seconds}",
        "--log",
        "--sampling-rate=0.1",
        f"--log-prefix={folder}/latency",
    ]
    for name, lines, weight in SCRIPTS:
        file = folder / f"{name}.sql"
        file.write_text(
            SCRIPT.format(organization=organization.id, stores=STORES, customers=CUSTOMERS, lines=name), "utf-8"
        )
        command += [f"--file={file}@{weight}", f"--define={name}={json.dumps(stored_lines(lines))}"]
    return [*command, cluster.url_of(database)]


def _latencies_us(folder: Path) -> list[int]:
    return [int(line.split()[2]) for file in folder.glob("latency.*") for line in file.read_text().splitlines()]


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"pgbench did not say {pattern!r}: {text[-500:]}")
    return match[1]
