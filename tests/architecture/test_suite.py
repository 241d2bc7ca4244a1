"""The choice, the order and the limits of the tests themselves."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from tests.not_daily import NOT_DAILY
from tests.slow_tests import SLOW_TESTS
from tests.support import suite
from tests.support.durations import DAILY_S, FIXED_WORK_S, WHOLE_S, Durations, find_reason
from tests.support.project import ROOT

# Ten tests in two modules: one fails, one is not daily, and one needs a slow fixture of its module.
CONFTEST = """
import pytest, time
from tests.not_daily import NOT_DAILY

pytest_plugins = ["tests.support.suite"]
NOT_DAILY["test_first.py::test_it*4"] = "another number"

@pytest.fixture(scope="module")
def slow():
    time.sleep(2)
"""
MODULE = """
import pytest

@pytest.mark.parametrize("number", range(5))
def test_it(number, {fixture}):
    assert number != {failing}
"""
JUDGE = """
import sys
from pathlib import Path
from tests.support import durations

durations.DAILY_S, durations.FIXED_WORK_S = 1.5, 1.0
sys.exit(durations.fail_slow_tests(Path("build/durations.json")))
"""


@pytest.fixture
def small_suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_first.py").write_text(MODULE.format(fixture="slow", failing=9), encoding="utf-8")
    (tmp_path / "test_second.py").write_text(MODULE.format(fixture="tmp_path", failing=3), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    return run_python(folder, "-m", "pytest", "-p", "no:cacheprovider", "-v", *arguments).stdout


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_every_pattern_names_a_file_that_exists_and_has_a_reason() -> None:
    for pattern, reason in (NOT_DAILY | SLOW_TESTS).items():
        assert (ROOT / pattern.partition("::")[0]).is_file(), pattern
        assert reason


def test_a_pattern_fits_the_beginning_of_a_test() -> None:
    table = {"tests/a.py::test_x[*-wide": "wide", "tests/b.py": "all of it"}
    assert find_reason("tests/a.py::test_x[home-wide-dark]", table) == "wide"
    assert find_reason("tests/a.py::test_x[home-narrow]", table) is None
    assert find_reason("tests/b.py::test_y", table) == "all of it"


def test_a_run_says_what_it_left_out_and_how_to_run_what_failed(small_suite: Path) -> None:
    printed = run(small_suite, "-n", "2", "--seed", "7", "--durations-file", "build/durations.json")
    assert "1 failed, 8 passed" in printed
    assert "Run it alone: bin/test 'test_second.py::test_it[3]'" in printed
    assert "Run all in this order: --seed 7" in printed
    assert "1 tests left out: another number (1). Run them as well: bin/test --all" in printed
    durations = json.loads((small_suite / "build/durations.json").read_text(encoding="utf-8"))
    assert len(durations["tests"]) == 9


def test_what_is_slow_beside_others_runs_again_alone(small_suite: Path) -> None:
    fixture, test = "test_first.py::slow", "test_second.py::test_it[2]"
    beside_others = Durations(
        tests={test: 9.0}, fixtures={fixture: 9.0}, fixture_tests={fixture: "test_first.py::test_it[0]"}
    )
    (small_suite / "build").mkdir()
    (small_suite / "build/durations.json").write_text(json.dumps(asdict(beside_others)), encoding="utf-8")
    judged = run_python(small_suite, "-c", JUDGE)
    assert f"runs again alone: {fixture} took 9.0 s; its limit is 1.5 s" in judged.stdout
    assert f"runs again alone: {test} took 9.0 s; its limit is 1.5 s" in judged.stdout
    assert "2 passed" in judged.stdout
    too_slow = [line.split()[2] for line in judged.stdout.splitlines() if line.startswith("TOO SLOW")]
    assert too_slow == [fixture], "neither the other test nor the first test of the fixture is slow itself"
    assert judged.returncode == 1


def test_a_named_test_runs_in_any_case(small_suite: Path) -> None:
    assert "1 passed" in run(small_suite, "test_first.py::test_it[4]")


@dataclass(frozen=True)
class NamedItem:
    nodeid: str

    @property
    def path(self) -> Path:
        return Path(self.nodeid.partition("::")[0])


def test_a_seed_orders_modules_and_their_tests_and_slow_ones_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SLOW_TESTS, "c.py", "waits")
    items = [NamedItem(f"{module}.py::test[{number}]") for module in "abcd" for number in range(6)]

    def order(seed: int) -> list[str]:
        return [item.nodeid for item in suite.shuffle(list(items), seed=seed)]  # type: ignore[arg-type]  # only these two members are read

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == sorted(item.nodeid for item in items)
    assert order(1)[:6] == [f"c.py::test[{number}]" for number in range(6)]
    modules = [name.partition("::")[0] for name in order(1)]
    assert all(len(set(modules[start : start + 6])) == 1 for start in range(0, 24, 6)), "a module stays together"


@pytest.mark.parametrize(
    ("seconds", "work_s", "is_over"),
    [
        (DAILY_S + 0.1, FIXED_WORK_S, True),
        (DAILY_S - 0.1, FIXED_WORK_S, False),
        (DAILY_S - 0.1, FIXED_WORK_S / 2, False),
        (DAILY_S + 0.1, FIXED_WORK_S * 2, False),
        (2 * DAILY_S + 0.1, FIXED_WORK_S * 2, True),
    ],
)
def test_the_limit_of_a_test_grows_with_the_slowness_of_the_machine(
    seconds: float, work_s: float, *, is_over: bool
) -> None:
    durations = Durations(tests={"tests/x.py::test": seconds}, fixed_work=[work_s, work_s, 100 * work_s])
    assert bool(durations.find_over_limit()) is is_over


def test_a_test_that_is_not_daily_has_a_longer_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOT_DAILY, "tests/x.py", "repeats")
    assert not Durations(tests={"tests/x.py::test": WHOLE_S - 1}).find_over_limit()
    assert Durations(tests={"tests/x.py::test": WHOLE_S + 1}).find_over_limit()
