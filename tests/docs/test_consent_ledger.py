"""The lines of docs/consent-ledger.md, run on a real export: they hold it, and see what was changed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regulars.kit import ids

PAGE = (Path(__file__).parents[2] / "docs" / "consent-ledger.md").read_text(encoding="utf-8")
LINES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def export(api):
    """A history with a consent, an update with a proof that needs escapes, a withdrawal, and the ids it belongs to."""
    consent = {"phone_number": "+33612345678", "consent_source": "WEBSITE", "consented_at": "2026-01-01T10:00:00Z"}
    proof = {"source_text": 'J\u2019accepte "tout" \\ \u2028 \u00e9\n\t\u0001 \U0001f600', "terms_version": "2"}
    made = api.post("/v1/subscriptions/opt-in", consent).json()["subscription"]["id"]
    api.post("/v1/subscriptions/opt-in", {**consent, "consented_at": "2026-01-02T10:00:00Z", "consent_proof": proof})
    api.post("/v1/subscriptions/opt-out", {"phone_number": consent["phone_number"], "reason": "STOP"})
    entries = api.pages(f"/v1/subscriptions/{made}/history", limit=2)
    assert len(entries) == 3
    return entries, ids.ORGANIZATION.encode(api.tenant.organization_id), made


def run(tmp_path, entries, organization, subscription) -> "subprocess.CompletedProcess[str]":
    (source,) = LINES
    (tmp_path / "check.py").write_text(source)
    (tmp_path / "export.json").write_text(json.dumps(entries))
    command = [sys.executable, "check.py", "export.json", organization, subscription]
    return subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)


def test_the_lines_hold_an_export(tmp_path, export):
    entries, organization, subscription = export
    checked = run(tmp_path, entries, organization, subscription)
    assert checked.returncode == 0, checked.stderr
    assert f"3 entries hold; the last hash is {entries[-1]['hash']}" in checked.stdout


def test_the_lines_hold_an_export_whose_person_was_erased(tmp_path, export):
    entries, organization, subscription = export
    blank = [{**entry, "payload": None, "salt": None} for entry in entries]
    assert run(tmp_path, blank, organization, subscription).returncode == 0


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (0, {"outcome": "updated"}),
        (1, {"effective_at": "2026-01-03T10:00:00.000Z"}),
        (1, {"payload": {"said": "something else"}}),
        (2, {"previous_hash": "0" * 64}),
    ],
)
def test_the_lines_see_a_change(tmp_path, export, place, change):
    entries, organization, subscription = export
    entries[place] = {**entries[place], **change}
    assert f"entry {place + 1}" in run(tmp_path, entries, organization, subscription).stderr


def test_the_lines_see_an_entry_that_is_missing_and_another_number_s(tmp_path, export):
    entries, organization, subscription = export
    assert run(tmp_path, [entries[0], entries[2]], organization, subscription).returncode == 1
    assert run(tmp_path, entries, organization, subscription[:-2] + "00").returncode == 1
