"""Fixtures: open databases for tests that run use cases from outside an event loop.

One stays open for all tests of a process, because new connections and their empty caches take longer than most tests.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.database import new_database
from tests.support.open_database import cancel_other_tasks

from regulars.kit.db import Database

CONNECTIONS_MAX = 8
LOCK_TIMEOUT_MS = 20_000

Opened = tuple[asyncio.Runner, Database]


@pytest.fixture(scope="session")
def columns_database_url(shared_database: tuple[str, str]) -> Iterator[str]:
    """Beside the one that servers use: an analysis process there would merge and fold what tests do by hand."""
    url, template = shared_database
    with new_database(url, template=template) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def _api_desks(api_database_url: str) -> Iterator[Opened]:
    with _open(api_database_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def _columns_desks(columns_database_url: str) -> Iterator[Opened]:
    with _open(columns_database_url) as opened:
        yield opened


@pytest.fixture
def desk_database(_api_desks: Opened) -> Iterator[Opened]:
    """Of the database that servers of the test use, too."""
    yield _api_desks
    _api_desks[0].run(cancel_other_tasks())


@pytest.fixture
def opened(_columns_desks: Opened) -> Iterator[Opened]:
    """Of the database without servers."""
    yield _columns_desks
    _columns_desks[0].run(cancel_other_tasks())


@contextmanager
def _open(url: str) -> Iterator[Opened]:
    with asyncio.Runner() as runner:
        database = Database(url, pool_max=CONNECTIONS_MAX, lock_timeout_ms=LOCK_TIMEOUT_MS)
        runner.run(database.open())
        try:
            yield runner, database
        finally:
            runner.run(database.close())
