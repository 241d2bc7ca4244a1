"""The release before keeps running on the schema of this one: its own code, from the history, on a migrated database."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
RELEASE_BEFORE = "e7efa2f"
SECONDS_MAX = 60
CONSENT = {"phone_number": "+33612345678", "consent_source": "WEBSITE", "consented_at": "2026-01-01T00:00:00Z"}
SALE = {
    "external_id": "S1:1",
    "type": "PURCHASE",
    "occurred_at": "2026-03-01T10:00:00Z",
    "store_id": "S1",
    "currency": "EUR",
    "total_amount_cents": 100,
    "total_discount_cents": 0,
    "profile_id": "C2",
    "line_items": [{"quantity": 1, "total_price_cents": 100}],
}


@pytest.fixture(scope="module")
def old_source(tmp_path_factory) -> Path:
    found = subprocess.run(
        ["git", "archive", "--format=tar", RELEASE_BEFORE, "src"], cwd=ROOT, check=False, capture_output=True
    )
    if found.returncode != 0:
        pytest.skip(f"needs the history of the repository down to {RELEASE_BEFORE}: git fetch --unshallow")
    folder = tmp_path_factory.mktemp("release-before")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder)  # noqa: S202  # made by git from our own history a line above
    return folder / "src"


@pytest.fixture
def environment(old_source, database_url, tmp_path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    folder = str(tmp_path / "data")
    return {**inherited, "PYTHONPATH": str(old_source), "DATABASE_URL": database_url, "REGULARS_DATA_DIR": folder}


def run(environment: dict[str, str], *arguments: str) -> str:
    # Its own source comes before this one's, which the environment also knows.
    code = "import sys; from regulars.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        cwd=environment["PYTHONPATH"],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_is_the_code_of_then(environment, old_source):
    code = "import regulars; print(regulars.__file__)"
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True, cwd=old_source
    )
    assert shown.stdout.startswith(str(old_source))


def test_its_commands_and_its_server_write_and_read(environment, tmp_path):
    run(environment, "organization", "create", "Shop")
    key = run(environment, "key", "create", "--organization", "Shop")
    (tmp_path / "people.ndjson").write_text('{"external_id":"C1","attributes":{"tier":"gold"}}\n')
    run(environment, "import", "profiles", str(tmp_path / "people.ndjson"), "--organization", "Shop")
    code = "import sys; from regulars.cli.main import main; main()"
    serving = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0"],
        env=environment,
        cwd=environment["PYTHONPATH"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert serving.stdout is not None
        address = serving.stdout.readline().split()[-1]
        headers = {"x-api-key": key, "content-type": "application/json"}
        with httpx.Client(base_url=address, headers=headers, timeout=SECONDS_MAX, trust_env=False) as client:
            for path, body, status in (
                ("/v1/stores", {"external_id": "S1", "name": "Paris"}, 201),
                ("/v1/sales-events", SALE, 201),
                ("/v1/sales-events", {**SALE, "total_amount_cents": 7}, 200),
                ("/v1/sales-events/batch", {"items": [{**SALE, "external_id": "S1:2"}]}, 200),
                ("/v1/profiles", {"external_id": "C1", "first_name": "Ada"}, 200),
                ("/v1/subscriptions/opt-in", {**CONSENT, "profile_id": "C1"}, 201),
                ("/v1/subscriptions/opt-out", {"phone_number": CONSENT["phone_number"]}, 200),
            ):
                answer = client.post(path, content=json.dumps(body), headers={"idempotency-key": f"{path}:{status}"})
                assert answer.status_code == status, (path, answer.text)
            assert client.get("/v1/sales-events").json()["data"][0]["external_id"] == "S1:1"
            assert client.get("/v1/subscriptions").json()["data"][0]["status"] == "UNSUBSCRIBED"
            assert client.delete("/v1/profiles/C1").status_code == 204
    finally:
        serving.terminate()
        serving.communicate(timeout=SECONDS_MAX)
    assert serving.returncode == 0
