"""How long each test takes, and which one takes longer than it may.

The time of a fixture that several tests share is counted apart, since the random order decides which test makes it.
A test over its limit runs once more, alone, and fails the check if it is over its limit again (`python -m
tests.support.durations FILE`): beside others, a test may wait for a processor that another one uses.
"""

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.not_daily import NOT_DAILY
from tests.slow_tests import SLOW_TESTS

DAILY_S = 5.0
WHOLE_S = 30.0
# What `_time_fixed_work` takes during a run on the machine for which the limits were chosen. A slower one gets longer limits.
FIXED_WORK_S = 0.0075
REPORTS_PER_TIMING = 50
LAST_TIMINGS = 5
SHARED_FIXTURES = "shared fixtures"


def find_reason(test: str, table: Mapping[str, str]) -> str | None:
    """Returns the reason of the first pattern that fits the beginning of a test's id."""
    for pattern, reason in table.items():
        if _compile(pattern).match(test):
            return reason
    return None


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")))


@dataclass
class Durations:
    """Seconds of tests, of fixtures shared by the tests of a module, and of a fixed piece of work between them."""

    tests: dict[str, float] = field(default_factory=dict)
    fixtures: dict[str, float] = field(default_factory=dict)
    fixed_work: list[float] = field(default_factory=list)
    fixture_tests: dict[str, str] = field(default_factory=dict)
    """The test that made each fixture."""

    def find_over_limit(self) -> dict[str, str]:
        """Describes the tests and fixtures that are over their limit and not named in `SLOW_TESTS`, by name."""
        slowness = max(1.0, statistics.median(self.fixed_work or [0.0]) / FIXED_WORK_S)
        over = {}
        for name, seconds in sorted((self.tests | self.fixtures).items()):
            limit = slowness * (DAILY_S if find_reason(name, NOT_DAILY) is None else WHOLE_S)
            if seconds > limit and find_reason(name, SLOW_TESTS) is None:
                over[name] = f"{name} took {seconds:.1f} s; its limit is {limit:.1f} s (tests/slow_tests.py)"
        return over


class FixtureTimer:
    """Runs in the process of the tests: times fixtures that tests share, and attaches the times to the test's report."""

    def __init__(self) -> None:
        self._shared: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        started = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                # A session's fixture belongs to no test; its time is only taken off the test that happened to need it first.
                owner = request.node.nodeid if fixturedef.scope == "module" else ""
                self._shared[f"{owner}::{fixturedef.argname}"] = time.perf_counter() - started

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "setup":
            report.user_properties.append((SHARED_FIXTURES, self._shared))
            self._shared = {}
        return report


class DurationsRecorder:
    """Runs in the process that gets all reports: adds them up and writes the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._durations = Durations()
        self._reports = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            return
        tests = self._durations.tests
        tests[report.nodeid] = tests.get(report.nodeid, 0.0) + report.duration
        if report.when == "setup":
            shared = dict(report.user_properties)[SHARED_FIXTURES]
            tests[report.nodeid] -= sum(shared.values())
            made = {name: s for name, s in shared.items() if not name.startswith("::")}
            self._durations.fixtures |= made
            self._durations.fixture_tests |= dict.fromkeys(made, report.nodeid)
        self._reports += 1
        if self._reports % REPORTS_PER_TIMING == 0:
            self._durations.fixed_work.append(_time_fixed_work())

    def pytest_sessionfinish(self) -> None:
        # A run of a few tests has no other timings.
        self._durations.fixed_work += [_time_fixed_work() for _ in range(LAST_TIMINGS)]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(asdict(self._durations), indent=1, sort_keys=True), encoding="utf-8")


def fail_slow_tests(file: Path) -> int:
    """Runs the tests again that were over their limit, alone. Returns 1 if one of them fails or is over it again."""
    durations = Durations(**json.loads(file.read_text(encoding="utf-8")))
    over = durations.find_over_limit()
    if not over:
        return 0
    _say(f"Slow beside other tests, runs again alone: {description}" for description in over.values())
    again_file = file.with_suffix(".again.json")
    tests = sorted({durations.fixture_tests.get(name, name) for name in over})
    command = [sys.executable, "-m", "pytest", "--no-header", f"--durations-file={again_file}", *tests]
    failed = subprocess.run(command, check=False).returncode != 0
    again = Durations(**json.loads(again_file.read_text(encoding="utf-8"))).find_over_limit()
    too_slow = sorted(over.keys() & again.keys())
    _say(f"TOO SLOW {again[name]}" for name in too_slow)
    return int(failed or bool(too_slow))


def _say(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def _time_fixed_work() -> float:
    started = time.perf_counter()
    found = {}
    for number in range(8000):
        found[str(number)] = (number, [number])
    sorted(found, key=lambda name: found[name][0])
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(fail_slow_tests(Path(sys.argv[1])))
