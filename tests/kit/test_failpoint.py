"""Places where a process can be made to break: named once, known to the harness, and never set by the program itself."""

import ast
import os
import signal
import subprocess
import sys
import time

import psycopg
import pytest
from tests.crash.failpoints import FAILPOINTS
from tests.support import syntax
from tests.support.project import PACKAGE

from regulars.kit import failpoint
from regulars.kit.settings import declarations


@pytest.fixture(autouse=True)
def disarmed():
    yield
    failpoint.disarm()


def calls_of(name: str) -> list[tuple[str, ast.Call]]:
    return [
        (str(path), node)
        for path in PACKAGE.rglob("*.py")
        if "failpoint" in path.read_text()
        for node in ast.walk(syntax.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "failpoint"
    ]


def test_the_harness_knows_every_place_and_no_other():
    named = {node.args[0].value for _, node in calls_of("hit") if isinstance(node.args[0], ast.Constant)}
    assert named == {place.name for place in FAILPOINTS}
    assert len(calls_of("hit")) == len([node for _, node in calls_of("hit") if isinstance(node.args[0], ast.Constant)])


def test_no_program_of_ours_sets_a_trap_and_no_setting_speaks_of_one():
    assert calls_of("arm") == []
    assert [path.name for path in PACKAGE.rglob("*.py") if "import arm" in path.read_text()] == []
    assert [name for name in declarations() if "fail" in name or "trap" in name] == []
    source = (PACKAGE / "kit" / "failpoint.py").read_text()
    assert "environ" not in source
    assert "settings" not in source.split('"""')[2]


def test_without_a_trap_nothing_happens():
    failpoint.hit("write.committed")
    assert "write.committed" not in failpoint.armed


def test_a_trap_springs_once_after_its_passes_and_says_so_before():
    before_failing = []
    failpoint.arm("start", "raise", passes=2, before_failing=lambda *what: before_failing.append(what))
    failpoint.hit("start")
    failpoint.hit("drain")
    failpoint.hit("start")
    assert before_failing == []
    with pytest.raises(psycopg.OperationalError, match="a failpoint at start"):
        failpoint.hit("start")
    assert before_failing == [("start", "raise")]
    failpoint.hit("start")


def test_a_place_loses_its_own_connection_where_it_has_one():
    cut = []
    failpoint.arm("start", "cut")
    failpoint.hit("start", lambda: cut.append(True))
    assert cut == [True]
    failpoint.arm("start", "cut")
    with pytest.raises(psycopg.OperationalError):
        failpoint.hit("start")


def test_a_trap_can_make_the_process_stand_still(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    failpoint.arm("start", "sleep", seconds=2.5)
    failpoint.hit("start")
    assert slept == [2.5]


def test_a_trap_can_kill_the_process_at_once():
    program = "from regulars.kit import failpoint as f; f.arm('x', 'kill'); f.hit('x'); print('alive')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == b""
