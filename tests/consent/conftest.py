import asyncio
from collections.abc import Iterator

import pytest
from tests.consent.desk import Desk
from tests.support.desks import cancel_other_tasks, open_for_desks

from regulars.kit.db import Database


@pytest.fixture(scope="module")
def desk_database(api_database_url: str) -> Iterator[tuple[asyncio.Runner, Database]]:
    with open_for_desks(api_database_url) as opened:
        yield opened


@pytest.fixture
def desk(desk_database: tuple[asyncio.Runner, Database]) -> Iterator[Desk]:
    """An organization of its own on a database that tests share, as organizations do."""
    runner, database = desk_database
    yield Desk(runner, database)
    runner.run(cancel_other_tasks())
