"""How long each test takes, and which one takes longer than it may.

The time of a fixture that several tests share is counted apart, since the random order decides which test makes it.
"""

import json
import re
import statistics
import time
from collections.abc import Generator, Mapping
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
FIXED_WORK_S = 0.004
REPORTS_PER_TIMING = 50
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

    def find_over_limit(self) -> list[str]:
        """Describes the tests and fixtures that are over their limit and not named in `SLOW_TESTS`."""
        slowness = max(1.0, statistics.median(self.fixed_work or [0.0]) / FIXED_WORK_S)
        over = []
        for name, seconds in sorted((self.tests | self.fixtures).items()):
            limit = slowness * (DAILY_S if find_reason(name, NOT_DAILY) is None else WHOLE_S)
            if seconds > limit and find_reason(name, SLOW_TESTS) is None:
                over.append(f"{name} took {seconds:.1f} s; its limit is {limit:.1f} s (tests/slow_tests.py)")
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
    """Runs in the process that gets all reports: adds them up, writes the file and fails the run for slow tests."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._durations = Durations()
        self._over_limit: list[str] = []
        self._reports = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            return
        tests = self._durations.tests
        tests[report.nodeid] = tests.get(report.nodeid, 0.0) + report.duration
        if report.when == "setup":
            shared = dict(report.user_properties)[SHARED_FIXTURES]
            tests[report.nodeid] -= sum(shared.values())
            self._durations.fixtures |= {name: s for name, s in shared.items() if not name.startswith("::")}
        self._reports += 1
        if self._reports % REPORTS_PER_TIMING == 0:
            self._durations.fixed_work.append(_time_fixed_work())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(asdict(self._durations), indent=1, sort_keys=True), encoding="utf-8")
        self._over_limit = self._durations.find_over_limit()
        if self._over_limit and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._over_limit:
            terminalreporter.write_line(f"TOO SLOW {line}")


def _time_fixed_work() -> float:
    started = time.perf_counter()
    found = {}
    for number in range(8000):
        found[str(number)] = (number, [number])
    sorted(found, key=lambda name: found[name][0])
    return time.perf_counter() - started
