"""A pytest plugin: records for each test that passes which probes it reached, in any process, and how long it took.

A fixture of a session, package or module is set up once, for all tests that use it. What its set-up reached is
recorded for each of them.
"""

import base64
import json
import os
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path
from typing import Final

import pytest

SHARED_VARIABLE: Final = "REGULARS_MUTANTS_SHARED"
RECORDS_VARIABLE: Final = "REGULARS_MUTANTS_RECORDS"
# The name of the record of what the imports of the package and of the tests reach.
IMPORTS: Final = "imports"


class Recorder:
    def __init__(self, shared: mmap, records: Path) -> None:
        self._shared = shared
        self._records = records
        # Sets of probes are numbers of a byte per probe. The last of the stack is what runs at the moment.
        self._stack: list[int] = [0]
        self._by_fixture: dict[int, int] = defaultdict(int)
        self._passed: dict[str, bool] = {}
        self._fixture_s = 0.0

    def _flush(self) -> None:
        """Adds what was reached since the last flush to the fixture or test that runs."""
        reached = self._shared[:]
        self._shared[:] = bytes(len(reached))
        self._stack[-1] |= int.from_bytes(reached, "little")

    def pytest_collection_finish(self) -> None:
        self._flush()
        self._write(IMPORTS, 0.0, self._stack[-1])

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self._flush()
        self._stack.append(0)
        started = time.monotonic()
        try:
            return (yield)
        finally:
            self._fixture_s += time.monotonic() - started
            self._flush()
            reached = self._stack.pop()
            self._by_fixture[id(fixturedef)] |= reached
            self._stack[-1] |= reached

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> Iterator[None]:
        self._flush()
        self._stack = [0]
        self._fixture_s = 0.0
        started = time.monotonic()
        result = yield
        seconds = time.monotonic() - started - self._fixture_s
        self._flush()
        reached = self._stack[-1]
        for name in item.fixturenames:
            for fixturedef in item._fixtureinfo.name2fixturedefs.get(name, ()):
                reached |= self._by_fixture[id(fixturedef)]
        if self._passed.pop(item.nodeid, False):
            self._write(item.nodeid, seconds, reached)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed[report.nodeid] = report.passed and self._passed.get(report.nodeid, True)

    def _write(self, test: str, seconds: float, reached: int) -> None:
        packed = zlib.compress(reached.to_bytes(len(self._shared), "little"))
        record = {"test": test, "seconds": round(max(seconds, 0.0), 3), "reached": base64.b85encode(packed).decode()}
        with self._records.open("a") as file:
            file.write(json.dumps(record) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    with open(os.environ[SHARED_VARIABLE], "r+b") as file:  # noqa: PTH123  # mmap needs the descriptor
        recorder = Recorder(mmap(file.fileno(), 0), Path(os.environ[RECORDS_VARIABLE]))
    config.pluginmanager.register(recorder, "recorder")
