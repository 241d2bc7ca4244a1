import contextlib
import io
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import pytest
from tests.support.database import copy_data_folder, new_data_folder, new_database

from regulars.cli.main import main

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """What a command wrote and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        assert self.out, self.err
        return json.loads(self.out)

    def complains(self, *, code: int) -> str:
        """The one sentence of a command that could not go on."""
        assert self.code == code, self.err
        assert "Traceback" not in self.err
        *before, sentence = self.err.strip().splitlines()
        # On a busy machine a service says how far its start is.
        assert all(json.loads(line)["level"] == "info" for line in before), self.err
        if sentence.startswith("{"):
            # A server or worker that logs as JSON.
            sentence = f"regulars: {json.loads(sentence)['reason'].removeprefix('regulars: ')}"
        assert sentence.startswith("regulars: ")
        assert sentence.endswith((".", "?"))
        return sentence


def environment(**variables: str) -> dict[str, str]:
    """Nothing of the developer's own settings, and a working folder without a settings file."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    inherited.pop("DATABASE_URL", None)
    return {**inherited, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "error", **variables}


Command = Callable[..., Ran]


def run_here(arguments: list[str], variables: dict[str, str], folder: Path, *, typed: str = "") -> Ran:
    """Run the command in this process: what a shell would see, without the time a new interpreter takes."""
    out, err = io.StringIO(), io.StringIO()
    handlers, code = list(logging.root.handlers), 0
    with (
        mock.patch.dict(os.environ, variables, clear=True),
        mock.patch.object(sys, "argv", ["regulars", *arguments]),
        # The program is named by its file, also where pytest itself was started as a module.
        mock.patch.object(sys.modules["__main__"], "__package__", None, create=True),
        mock.patch.object(sys, "stdin", io.StringIO(typed)),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        finally:
            logging.root.handlers[:] = handlers
    return Ran(code, out.getvalue(), err.getvalue())


def run_as_process(arguments: list[str], variables: dict[str, str], folder: Path) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "regulars.cli", *arguments],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run `regulars` with these arguments; keywords become environment variables."""

    def run(*arguments: str, typed: str = "", **variables: str) -> Ran:
        variables = environment(**{"REGULARS_DATA_DIR": str(tmp_path / "data"), **variables})
        return run_here(list(arguments), variables, tmp_path, typed=typed)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """The same in a process of its own, for what only a process shows."""

    def run(*arguments: str, **variables: str) -> Ran:
        variables = environment(**{"REGULARS_DATA_DIR": str(tmp_path / "data"), **variables})
        return run_as_process(list(arguments), variables, tmp_path)

    return run


@pytest.fixture
def regulars(command: Command, database_url: str) -> Command:
    """The same, on a migrated database of its own."""

    def run(*arguments: str, **variables: str) -> Ran:
        return command(*arguments, **{"DATABASE_URL": database_url, **variables})

    return run


@pytest.fixture(scope="session")
def shop_template(shared_database: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A migrated database with the organization Shop."""
    url, template = shared_database
    with new_database(url, template=template) as filled:
        made = run_here(
            ["organization", "create", "Shop"],
            environment(DATABASE_URL=filled, REGULARS_DATA_DIR=str(tmp_path_factory.mktemp("shop"))),
            ROOT,
        )
        assert made.code == 0, made.err
        yield filled


@pytest.fixture
def shop_database_url(shop_template: str) -> Iterator[str]:
    """A copy; it saves the command that creates the organization."""
    with copy_of(shop_template) as copy:
        yield copy


def copy_of(database_url: str) -> contextlib.AbstractContextManager[str]:
    """A copy of a database to which no connection is open."""
    return new_database(database_url, template=urlsplit(database_url).path.removeprefix("/"))


@contextlib.contextmanager
def new_data_dir(*, copied_from: Path | None = None) -> Iterator[Path]:
    """A short path for an embedded database, because a socket's path has few characters.

    A copy of `migrated_template` saves initdb and the migrations.
    """
    folder = new_data_folder()
    if copied_from is not None:
        copy_data_folder(copied_from, folder)
    yield folder
    assert not (folder / "cluster" / "postmaster.pid").exists(), "a command left its PostgreSQL running"
    shutil.rmtree(folder.parent)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with new_data_dir() as folder:
        yield folder


@pytest.fixture(scope="session")
def migrated_template() -> Iterator[Path]:
    """A data folder with a migrated database that does not run."""
    folder = new_data_folder()
    made = run_here(["migrate"], environment(REGULARS_DATA_DIR=str(folder)), folder.parent)
    assert made.code == 0, made.err
    yield folder
    shutil.rmtree(folder.parent)


@pytest.fixture
def migrated_data_dir(migrated_template: Path) -> Iterator[Path]:
    with new_data_dir(copied_from=migrated_template) as folder:
        yield folder
