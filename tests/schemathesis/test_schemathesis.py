"""Schemathesis over the served document: every operation, every check, valid and invalid data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.api import StartServer
from tests.support.client import post_url
from tests.support.server import ROOT
from tests.support.tenant import new_tenant

SECONDS_MAX = 400
STORE, CUSTOMER = "fuzz-store", "fuzz-customer"
HERE = Path(__file__).parent
# One run for all operations: to start one takes longer than the calls of most operations.
RUNS = {
    "valid data": ["--phases=examples,coverage,fuzzing", "--mode=positive", "--max-examples=2"],
    "invalid data": ["--phases=coverage,fuzzing", "--mode=negative", "--max-examples=6"],
    "calls that follow one another": ["--phases=stateful", "--max-examples=12"],
}


@pytest.mark.timeout(SECONDS_MAX + 60)
@pytest.mark.parametrize("amount", RUNS.values(), ids=RUNS)
def test_the_interface_does_what_its_description_says(
    start_server: StartServer, api_database_url: str, tmp_path: Path, amount: list[str]
) -> None:
    server = start_server(rate_limit_per_s="0")
    key = new_tenant(api_database_url).key
    for path, name in (("/v1/stores", STORE), ("/v1/profiles", CUSTOMER)):
        body = {"external_id": name}
        created = post_url(server.url + path, json=body, headers={"x-api-key": key})
        assert created.status_code == 201
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "SCHEMATHESIS_HOOKS": "tests.schemathesis.hooks",
        "REGULARS_TEST_FUZZ_URL": server.url,
        "REGULARS_TEST_FUZZ_KEY": key,
        "REGULARS_TEST_FUZZ_STORE": STORE,
        "REGULARS_TEST_FUZZ_CUSTOMER": CUSTOMER,
    }
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            f"--config-file={HERE / 'schemathesis.toml'}",
            "run",
            f"{server.url}/v1/openapi.json",
            f"--header=x-api-key:{key}",
            "--seed=1",
            *amount,
            "--no-color",
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
