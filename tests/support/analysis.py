"""Runs the analysis process beside the test server, as `regulars serve` does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.fork_server import fork_server
from tests.support.server import Server
from tests.support.waiting import wait_until

from regulars.columns.protocol import socket_path
from regulars.kit.settings import Settings

STOP_SECONDS_MAX = 90


@pytest.fixture(scope="session")
def analysis(server: Server) -> Iterator[None]:
    with running_analysis(server):
        yield


@contextmanager
def running_analysis(server: Server) -> Iterator[None]:
    with analysis_process(server.environment):
        yield


@contextmanager
def analysis_process(environment: dict[str, str]) -> Iterator[None]:
    """The process of this data folder, which has to be there."""
    path = socket_path(Settings(data_dir=Path(environment["REGULARS_DATA_DIR"])))
    log = Path(environment["REGULARS_DATA_DIR"]) / "analysis.log"
    process = fork_server().start("tests.support.cli", "analysis", environment=environment, log=log)
    try:
        wait_until(lambda: path.exists() or not process.is_alive(), show=log.read_text)
        assert process.is_alive(), log.read_text()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS_MAX)
        process.close()
