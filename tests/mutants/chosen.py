"""A pytest plugin: runs chosen tests in a chosen order, and writes their failures to a file."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

# A JSON list of node ids, each with its time limit in seconds.
CHOSEN_VARIABLE: Final = "REGULARS_MUTANTS_CHOSEN"
FAILURE_VARIABLE: Final = "REGULARS_MUTANTS_FAILURE"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    chosen: list[tuple[str, float]] = json.loads(Path(os.environ[CHOSEN_VARIABLE]).read_text())
    collected = {item.nodeid: item for item in items}
    items[:] = []
    for test, seconds_max in chosen:
        if test in collected:
            collected[test].add_marker(pytest.mark.timeout(seconds_max))
            items.append(collected[test])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        with Path(os.environ[FAILURE_VARIABLE]).open("a") as file:
            file.write(
                json.dumps({"test": report.nodeid, "timed_out": "from pytest-timeout" in str(report.longrepr)}) + "\n"
            )
