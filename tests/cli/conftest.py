import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.database import new_data_folder

ROOT = Path(__file__).parents[2]


class Ran:
    """What a command wrote and how it ended."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def data(self):
        return json.loads(self.out)

    def complains(self, *, code: int) -> str:
        """The one sentence of a command that could not go on."""
        assert self.code == code, self.err
        assert "Traceback" not in self.err
        (sentence,) = self.err.strip().splitlines()
        assert sentence.startswith("regulars: ")
        assert sentence.endswith((".", "?"))
        return sentence


def environment(**variables: str) -> dict[str, str]:
    """Nothing of the developer's own settings, and a working folder without a settings file."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    kept.pop("DATABASE_URL", None)
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "error", **variables}


Command = Callable[..., Ran]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run `regulars` with these arguments; keywords become environment variables."""

    def run(*arguments: str, **variables: str) -> Ran:
        folder = variables.pop("REGULARS_DATA_DIR", str(tmp_path / "data"))
        done = subprocess.run(
            [sys.executable, "-m", "regulars.cli", *arguments],
            env=environment(REGULARS_DATA_DIR=folder, **variables),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ran(done)

    return run


@pytest.fixture
def regulars(command: Command, database_url: str) -> Command:
    """The same, on a migrated database of its own."""

    def run(*arguments: str, **variables: str) -> Ran:
        return command(*arguments, **{"DATABASE_URL": database_url, **variables})

    return run


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A short path for an embedded database: a socket's path has few characters."""
    folder = new_data_folder()
    yield folder
    assert not (folder / "cluster" / "postmaster.pid").exists(), "a command left its PostgreSQL running"
    shutil.rmtree(folder.parent)
