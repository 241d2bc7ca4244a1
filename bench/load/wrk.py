"""wrk: as many requests as the server answers over a fixed number of connections."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import ended_children_cpu_s

SCRIPT = Path(__file__).parent / "tickets.lua"
# Fixed for one run of the benchmark, so that repeated tickets are the same ones in the warm-up and afterwards.
EPOCH = int(time.time())


@dataclass(frozen=True)
class Load:
    requests: int
    rate: float
    p50_ms: float
    p99_ms: float
    errors: int
    cpu_s: float


def ensure_installed() -> None:
    if shutil.which("wrk"):
        return
    apt = shutil.which("apt-get")
    if apt and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([apt, "install", "--yes", "--no-install-recommends", "wrk"], check=True, env=environment)
        return
    raise SystemExit("The benchmark needs wrk: `sudo apt-get install wrk`, or `brew install wrk`.")


def run(url: str, scenario: str, *, name: str, keys: Sequence[str], connections: int, seconds: int) -> Load:
    with tempfile.NamedTemporaryFile("w", prefix="regulars-keys-") as file:
        file.write("\n".join(keys) + "\n")
        file.flush()
        command = ["wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
        command += ["--timeout", "10s", "--script", str(SCRIPT), url, "--", scenario, name, file.name, str(EPOCH)]
        cpu_before = ended_children_cpu_s()
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise RuntimeError(f"wrk gave no result: {done.stdout[-500:]} {done.stderr[-500:]}")
    result = json.loads(line.removeprefix("RESULT "))
    return Load(
        requests=result["requests"],
        rate=result["requests"] / result["duration_us"] * 1e6,
        p50_ms=result["p50_us"] / 1000,
        p99_ms=result["p99_us"] / 1000,
        errors=sum(value for key, value in result.items() if key.endswith("_errors")),
        cpu_s=ended_children_cpu_s() - cpu_before,
    )
