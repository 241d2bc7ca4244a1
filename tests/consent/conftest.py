import asyncio
from collections.abc import Iterator

import pytest
from tests.consent.desk import Desk

from regulars.kit.db import Database

CONNECTIONS_MAX = 8
LOCK_TIMEOUT_MS = 20_000


@pytest.fixture
def desk(api_database_url: str) -> Iterator[Desk]:
    """An organization of its own on a database that tests share, as organizations do."""
    with asyncio.Runner() as runner:
        database = Database(api_database_url, pool_max=CONNECTIONS_MAX, lock_timeout_ms=LOCK_TIMEOUT_MS)
        runner.run(database.open())
        try:
            yield Desk(runner, database)
        finally:
            runner.run(database.close())
