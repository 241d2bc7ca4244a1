import asyncio
from collections.abc import Iterator

import pytest
from tests.segments.desk import Desk
from tests.segments.fed_shop import FedShop

from regulars.kit.db import Database


@pytest.fixture
def opened(api_database_url: str) -> Iterator[tuple[asyncio.Runner, Database]]:
    with asyncio.Runner() as runner:
        database = Database(api_database_url, pool_max=8, lock_timeout_ms=20_000)
        runner.run(database.open())
        try:
            yield runner, database
        finally:
            runner.run(database.close())


@pytest.fixture
def desk(opened: tuple[asyncio.Runner, Database]) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened)


@pytest.fixture
def shop(opened: tuple[asyncio.Runner, Database]) -> FedShop:
    """One whose columns are fed and counted by hand."""
    return FedShop(*opened)
