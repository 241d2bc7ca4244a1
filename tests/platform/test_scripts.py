import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.support.project import ROOT

CLI = '"""Stands in for the package."""\nimport sys\n\n\ndef main():\n    print("ran with", sys.argv[1:])\n'

CHECK = [
    f"src/regulars/{name}.py"
    for name in (
        *("__init__", "kit/__init__", "kit/settings", "kit/setting_kinds"),
        *("processes/__init__", "processes/listening", "processes/start_check"),
    )
]

# Installing pip into a new environment takes seconds; the stand-in lends it the one of the environment we run in.
QUICK_PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
    "{python}" -m venv --without-pip "$3"
    ln -s "{python}" "$3/bin/pip"
    echo "{packages}" >"$("$3/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/lent.pth"
else
    exec "{python}" "$@"
fi
"""


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """A clone with the real scripts and lists without packages, so that nothing is downloaded."""
    project = tmp_path / "a clone"
    shutil.copytree(ROOT / "bin", project / "bin")
    (project / "requirements").mkdir()
    for name in ("runtime", "dev"):
        (project / "requirements" / f"{name}.txt").write_text(f"# the {name} list\n")
    (project / "pyproject.toml").write_text('[project.scripts]\nregulars = "stand_in:main"\n')
    (project / "src").mkdir()
    (project / "src" / "stand_in.py").write_text(CLI)
    # What the check of the arguments needs without a package.
    for name in CHECK:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    python = tmp_path / "python"
    python.write_text(QUICK_PYTHON.format(python=sys.executable, packages=sysconfig.get_path("purelib")))
    python.chmod(0o755)
    monkeypatch.setenv("PYTHON", str(python))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return project


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        check=False,
        cwd="/",
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_serve_makes_its_environment_once_and_installs_a_changed_list(clone):
    first = run(clone / "bin" / "serve", "--port", "0", "--no-worker")
    assert first.stdout == "ran with ['serve', '--port', '0', '--no-worker']\n", first.stderr
    assert "Making .venv" in first.stderr
    # Loading the program may take some seconds more.
    assert first.stderr.endswith("\nStarting Regulars.\n")
    second = run(clone / "bin" / "serve")
    assert second.stdout == "ran with ['serve']\n"
    assert second.stderr == ""
    (clone / "requirements" / "runtime.txt").write_text("# changed\n")
    again = run(clone / "bin" / "setup", "runtime", ".venv")
    assert again.stderr.startswith("Installing packages.\n")
    assert "Making" not in again.stderr
    assert run(clone / "bin" / "setup", "runtime", ".venv").stderr == ""


def test_a_mistake_shows_before_anything_is_installed(clone):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        mistakes = [
            (["--prot", "1"], {}, 2, "--prot"),
            (["a b"], {}, 2, "a b"),
            (["--port", "70000"], {}, 2, "from 0 to 65535"),
            (["--workers", "0"], {}, 2, "from 1 to 64"),
            ([], {"REGULARS_PROT": "1"}, 2, "did you mean REGULARS_PORT?"),
            (["--host", "no such host"], {}, 1, "is not an address"),
            (["--port", port], {}, 1, f"Port {port} on 127.0.0.1 is already in use"),
        ]
        for arguments, variables, code, sentence in mistakes:
            answer = run(clone / "bin" / "serve", *arguments, **variables)
            assert (answer.returncode, answer.stdout) == (code, ""), arguments
            assert sentence in answer.stderr
            assert "Making" not in answer.stderr
    assert not list(clone.glob(".venv*"))


def test_a_clone_that_was_moved_makes_its_environment_again(clone):
    assert run(clone / "bin" / "setup", "runtime", ".venv").returncode == 0
    moved = clone.rename(clone.with_name("moved"))
    answer = run(moved / "bin" / "serve")
    assert answer.stdout == "ran with ['serve']\n"
    assert "Making .venv" in answer.stderr


def test_two_set_ups_at_once_both_succeed(clone):
    command = [str(clone / "bin" / "serve")]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=100)[0] for process in pair]
    assert answers == ["ran with ['serve']\n"] * 2
    assert not (clone / ".venv.lock").exists()


def test_a_lock_left_by_a_crash_is_removed_and_an_environment_for_tests_also_serves(clone):
    dead = subprocess.Popen(["true"])
    dead.wait()
    (clone / ".venv.lock").mkdir()
    (clone / ".venv.lock" / "pid").write_text(f"{dead.pid}\n")
    assert run(clone / "bin" / "setup", "dev", ".venv").returncode == 0
    assert run(clone / "bin" / "serve").stderr == ""


@pytest.mark.parametrize(
    ("microseconds", "chosen"),
    [
        ({"python3.13": 90, "python3.11": 40, "python3": 39}, "python3.11"),
        ({"python3.13": 40, "python3.11": 38, "python3": 80}, "python3.13"),
    ],
)
def test_the_fastest_python_is_taken_and_among_equals_the_newest(clone, tmp_path, microseconds, chosen):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, taken in microseconds.items():
        program = tools / name
        program.write_text(
            f'#!/bin/sh\n[ "$1" = - ] && {{ cat >/dev/null; echo {taken}; exit; }}\nexec "{tmp_path}/python" "$@"\n'
        )
        program.chmod(0o755)
    (tools / "python3.12").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3.12").chmod(0o755)
    answer = run(clone / "bin" / "setup", "runtime", ".venv", PATH=f"{tools}:{os.environ['PATH']}", PYTHON="")
    assert f"Making .venv with {chosen}.\n" in answer.stderr
    assert answer.returncode == 0


def test_without_a_python_the_message_says_what_to_do(clone, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", "sed", "cat", "cmp", "mkdir", "rm", "sleep"):
        (tools / tool).symlink_to(Path(shutil.which(tool) or tool))
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    answer = run(clone / "bin" / "setup", "runtime", ".venv", PATH=str(tools), PYTHON="")
    assert answer.returncode == 1
    assert answer.stderr == (
        "Regulars needs Python 3.11 or later, and none was found; install one or set PYTHON to its path.\n"
    )


def test_without_venv_the_message_says_what_to_do(clone, tmp_path):
    without = tmp_path / "python-without-venv"
    without.write_text(f'#!/bin/sh\n[ "$1" = -m ] && exit 1\nexec "{sys.executable}" "$@"\n')
    without.chmod(0o755)
    answer = run(clone / "bin" / "setup", "runtime", ".venv", PYTHON=str(without))
    assert answer.returncode == 1
    assert "apt install python3-venv" in answer.stderr
    assert not (clone / ".venv.lock").exists()
