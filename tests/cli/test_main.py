"""What holds for every command: where it looks for a database, how it ends, what it says about itself."""

import importlib
import os
import signal
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, environment

from regulars.cli import error_handling, main
from regulars.cli.output import ExitCode
from regulars.postgres import embedded

SECONDS_MAX = 60
LOOKING = [
    ("organization", "list"),
    ("organization", "create", "Shop"),
    ("organization", "rename", "Shop", "Other"),
    ("organization", "set", "Shop", "--default-country", "FR"),
    ("organization", "delete", "Shop", "--confirm", "Shop"),
    ("key", "create", "--organization", "Shop"),
    ("key", "list", "--organization", "Shop"),
    ("backup", "today.dump"),
    ("worker",),
]


@pytest.mark.parametrize("arguments", LOOKING, ids=" ".join)
def test_a_command_that_finds_no_database_says_where_it_looked_and_makes_none(command, tmp_path, arguments):
    folder = tmp_path / "elsewhere"
    sentence = command(*arguments, REGULARS_DATA_DIR=str(folder)).complains(code=3)
    assert f"There is no database in {folder}" in sentence
    assert "REGULARS_DATA_DIR" in sentence
    assert not folder.exists()


def test_doctor_says_so_too_and_makes_none(command, tmp_path):
    examined = command("doctor", "--json", REGULARS_DATA_DIR=str(tmp_path / "elsewhere"))
    assert examined.code == 1
    found = {finding["name"]: finding["found"] for finding in examined.data}
    assert "There is no database in" in found["database"]
    assert not (tmp_path / "elsewhere").exists()


def test_migrate_makes_one_that_passes_every_check(command, migrated_data_dir):
    folder = str(migrated_data_dir)
    # The commands share it while it runs, which saves starting and stopping it twice.
    with embedded.running(migrated_data_dir):
        assert command("organization", "list", "--json", REGULARS_DATA_DIR=folder).data == []
        examined = command("doctor", "--json", REGULARS_DATA_DIR=folder)
    assert [finding for finding in examined.data if not finding["ok"]] == []
    assert examined.code == 0
    names = {finding["name"] for finding in examined.data}
    assert {"python", "settings", "disk", "database", "durability", "rights", "clock", "migrations"} <= names


def test_a_folder_that_cannot_be_entered_is_one_sentence(command, tmp_path):
    (tmp_path / "file").touch()
    sentence = command("organization", "list", REGULARS_DATA_DIR=str(tmp_path / "file" / "data")).complains(code=3)
    assert "cannot be used" in sentence


def test_the_version_is_that_of_the_clone(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert command("--version").out.strip() == project["project"]["version"]


def test_without_a_clone_the_installed_package_is_asked(monkeypatch):
    monkeypatch.setattr(main, "PROJECT_FILE", Path("nowhere"))
    monkeypatch.setattr(metadata, "version", lambda name: f"{name} 1.2.3")
    assert main.find_version() == "regulars 1.2.3"


def test_an_address_that_is_none_shows_an_example_that_can_be_read(command):
    sentence = command("organization", "list", DATABASE_URL="garbage").complains(code=2)
    assert "postgresql://user:password@host:5432/database" in sentence


def test_help_of_serve_shows_the_defaults(command):
    shown = " ".join(command("serve", "--help", COLUMNS="200").out.split())
    for default in ("REGULARS_PORT, else 8080", "REGULARS_HOST, else 127.0.0.1", "REGULARS_WORKERS, else 1"):
        assert default in shown


LOADED = """
import contextlib, shlex, sys
from regulars.cli.main import COMMANDS, main
*commands, every_command = sys.argv[1:]
for command in commands:
    sys.argv = ["regulars", *shlex.split(command)]
    with contextlib.suppress(SystemExit):
        main()
    print("after", command, *sys.modules, file=sys.stderr)
for name, lazy in COMMANDS.items():
    lazy.load(name)
print("after", every_command, *sys.modules, file=sys.stderr)
"""
# In this order: what a command must not load, no command before it loads either.
UNNEEDED = {
    "--help": {"psycopg", "pydantic", "regulars.cli.serve"},
    "key list -o Shop": {"pydantic", "starlette", "aiohttp", "babel", "phonenumbers"},
    "message list -o Shop": {"pydantic", "starlette", "aiohttp", "babel", "holidays"},
    # The libraries of columns, which only the analysis process needs.
    "every command": {"numpy", "polars", "pyarrow"},
}


def test_a_command_loads_only_what_it_needs(regulars, database_url, tmp_path):
    regulars("organization", "create", "Shop")
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, *UNNEEDED],
        env=environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(tmp_path / "data")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in ran.stderr.splitlines() if line.startswith("after ")]
    for line, (command, unneeded) in zip(lines, UNNEEDED.items(), strict=True):
        assert line.startswith(f"after {command} ")
        assert not unneeded & set(line.split())


def test_a_value_that_an_option_does_not_take_is_wrong_usage(command):
    for wrong in (("--limit", "0"), ("--limit", "many"), ("--state", "gone")):
        ran = command("message", "list", "-o", "Shop", *wrong)
        assert (ran.code, wrong[0] in ran.err) == (2, True)


@pytest.mark.parametrize("name", error_handling.EXIT_CODE_BY_ERROR)
def test_every_error_that_ends_in_a_sentence_exists(name):
    module, _, error = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), error), Exception)


def test_the_shell_can_complete_commands(command):
    completed = command(_REGULARS_COMPLETE="complete_bash", COMP_WORDS="regulars org", COMP_CWORD="1")
    assert completed.out.split() == ["organization"]


def test_a_command_that_is_interrupted_ends_with_one_sentence_and_its_own_code(regulars, database_url, tmp_path):
    regulars("organization", "create", "Shop")
    running = subprocess.Popen(
        [sys.executable, "-m", "regulars.cli", "organization", "delete", "Shop"],
        env=environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(tmp_path / "data")),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The tests may have been started in the background of a shell, where the signal is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads
    )
    # It has warned, so it waits for the name.
    assert running.stderr is not None
    assert "for good" in running.stderr.readline()
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=SECONDS_MAX)
    assert running.returncode == 130, said
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1].endswith("regulars: Interrupted.")


def test_a_backup_that_cannot_be_written_is_one_sentence(regulars):
    assert "cannot be written" in regulars("backup", f"/proc/{os.getpid()}/x.dump").complains(code=2)


def test_every_exit_code_is_documented():
    page = (ROOT / "docs" / "operations.md").read_text()
    for code in ("0 done", "1 could not be done", "2 wrong usage or settings", "3 the\ndatabase", "130 interrupted"):
        assert code in page


# The signal arrives in a callback, whose exceptions Python ignores.
ENDS_IN_A_CALLBACK = """
import os, signal, time, typer
from regulars.cli import error_handling

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)

app = typer.Typer()

@app.command()
def work():
    Callback()
    time.sleep(60)

error_handling.run(app)
"""


def test_a_signal_that_arrives_in_a_callback_ends_the_command_too():
    command = [sys.executable, "-c", ENDS_IN_A_CALLBACK]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr.strip()) == (ExitCode.TERMINATED, "regulars: Terminated.")
