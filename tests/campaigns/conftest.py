import asyncio
from collections.abc import Iterator

import pytest
from tests.campaigns.desk import Desk

from regulars.kit.db import Database


@pytest.fixture
def desk(api_database_url: str) -> Iterator[Desk]:
    """An organization of its own on a database that tests share, as organizations do."""
    with asyncio.Runner() as runner:
        database = Database(api_database_url, pool_max=8, lock_timeout_ms=20_000)
        runner.run(database.open())
        try:
            yield Desk(runner, database)
        finally:
            runner.run(database.close())
