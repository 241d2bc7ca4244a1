"""Chooses and orders the tests of a run, and says how to run what it left out or what failed.

`bin/test` runs the daily set, `bin/test --all` everything. Tests named on the command line run in any case.
Modules run in a random order, and so do the tests of a module, by a seed that the run prints.
"""

import random
import secrets
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.not_daily import NOT_DAILY
from tests.slow_tests import SLOW_TESTS
from tests.support.durations import DurationsRecorder, FixtureTimer, find_reason

SEEDS = 1_000_000
LEFT_OUT = "left_out"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption("--all", action="store_true", help="run everything, not only the daily set")
    group.addoption("--seed", type=int, help="run modules, and the tests of each, in the order of this seed")
    group.addoption("--durations-file", type=Path, help="write each test's seconds here")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FixtureTimer())
    if _is_worker(config):
        config.option.all, config.option.seed = config.workerinput["all"], config.workerinput["seed"]
        return
    config.option.all = config.option.all or config.args_source is pytest.Config.ArgsSource.ARGS
    if config.option.seed is None:
        config.option.seed = secrets.randbelow(SEEDS)
    config.pluginmanager.register(Reporter(config), Reporter.name)
    if config.option.durations_file:
        config.pluginmanager.register(DurationsRecorder(config.option.durations_file))


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of the tests: --seed {config.option.seed}"


@pytest.hookimpl(tryfirst=True)  # pytest then groups what a parametrized fixture of a module needs
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out: Counter[str] = Counter()
    chosen: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        reason = None if config.option.all else find_reason(item.nodeid, NOT_DAILY)
        if reason is None:
            chosen.append(item)
        else:
            left_out[reason] += 1
            deselected.append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
    items[:] = shuffle(chosen, seed=config.option.seed)
    if _is_worker(config):
        config.workeroutput[LEFT_OUT] = dict(left_out)
    elif reporter := config.pluginmanager.get_plugin(Reporter.name):
        reporter.left_out = left_out


def shuffle(items: list[pytest.Item], *, seed: int) -> list[pytest.Item]:
    """Slow tests first, in their order; then modules, and the tests of each, in a random order."""
    randomness = random.Random(seed)
    modules: dict[Path, list[pytest.Item]] = defaultdict(list)
    slow = []
    for item in items:
        if find_reason(item.nodeid, SLOW_TESTS):
            slow.append(item)
        else:
            modules[item.path].append(item)
    groups = list(modules.values())
    randomness.shuffle(groups)
    for group in groups:
        randomness.shuffle(group)
    return [*slow, *(item for group in groups for item in group)]


class Reporter:
    """Ends the run's summary with the commands for failed tests and for those that were left out."""

    name = "suite-reporter"

    def __init__(self, config: pytest.Config) -> None:
        self.left_out: Counter[str] = Counter()
        self._seed: int = config.option.seed
        self._all: bool = config.option.all

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Sends pytest-xdist's processes what this one decided."""
        node.workerinput |= {"all": self._all, "seed": self._seed}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # Each process collects all tests, and leaves the same ones out.
        self.left_out = Counter(getattr(node, "workeroutput", {}).get(LEFT_OUT, {}))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
        failed = {report.nodeid for report in reports}
        for test in sorted(failed):
            terminalreporter.write_line(f"Run it alone: bin/test {shlex.quote(test)}")
        if failed:
            terminalreporter.write_line(f"Run all in this order: --seed {self._seed}")
        if self.left_out:
            reasons = ", ".join(f"{reason} ({count})" for reason, count in sorted(self.left_out.items()))
            terminalreporter.write_line(
                f"{self.left_out.total()} tests left out: {reasons}. Run them as well: bin/test --all"
            )


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
