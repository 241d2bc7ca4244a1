"""The commands of the first page are typed in as they stand there."""

import json
import os
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
    create, store, ticket, back = read(server, "/").blocks
    commands = [create, store, ticket, ticket, back]
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
    stored, first, again, found = answers
    assert stored["external_id"] == "PARIS-1"
    assert first["automation"]["state"] == "eligible"
    assert again["sales_event"] == first["sales_event"] == found
    assert found["profile"]["external_id"] == "C-100"
