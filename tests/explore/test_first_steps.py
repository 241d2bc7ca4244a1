"""The commands of the first page are typed in as they stand there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.explore.pages import read
from tests.support.server import ROOT, Server

COMMAND = '#!/bin/sh\nexec "{python}" -m regulars.cli "$@"\n'


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page shows curl, and this machine has none")
def test_the_first_steps_work_as_they_stand(server: Server, api_database_url: str, tmp_path: Path):
    command = tmp_path / ".venv" / "bin" / "regulars"
    command.parent.mkdir(parents=True)
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    create, store, ticket, back, consent, files = read(server, "/").blocks
    (tmp_path / "tickets.csv").write_text(
        "external_id,type,occurred_at,store_id,currency,total_amount_cents,total_discount_cents,"
        "line_items.quantity,line_items.total_price_cents\n"
        "PARIS-1:1,PURCHASE,2026-01-15T10:30:00Z,PARIS-1,EUR,1990,0,1,1990\n"
    )
    # The last line of the last block makes two years of tickets, which other tests do.
    commands = [create, store, ticket, ticket, back, consent, files.splitlines()[0]]
    done = subprocess.run(
        ["sh", "-e", "-c", "\necho\n".join(commands)],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "DATABASE_URL": api_database_url,
            "REGULARS_DATA_DIR": str(tmp_path),
            "NO_PROXY": "*",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    stored, first, again, found, consented = answers
    assert consented["outcome"] == "created"
    assert re.search(r"created +1", done.stdout)
    assert stored["external_id"] == "PARIS-1"
    assert first["automation"]["state"] == "eligible"
    assert again["sales_event"] == first["sales_event"] == found
    assert found["profile"]["external_id"] == "C-100"
