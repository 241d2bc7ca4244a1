import asyncio
from collections.abc import Iterator

import pytest
from tests.segments.desk import Desk
from tests.segments.fed_shop import FedShop
from tests.support.database import new_database
from tests.support.desks import cancel_other_tasks, open_for_desks

from regulars.kit.db import Database


@pytest.fixture(scope="session")
def columns_database_url(shared_database: tuple[str, str]) -> Iterator[str]:
    """Beside the one that servers use: an analysis process there would merge and fold what tests do by hand."""
    url, template = shared_database
    with new_database(url, template=template) as fresh:
        yield fresh


@pytest.fixture(scope="module")
def open_columns(columns_database_url: str) -> Iterator[tuple[asyncio.Runner, Database]]:
    with open_for_desks(columns_database_url) as opened:
        yield opened


@pytest.fixture
def opened(open_columns: tuple[asyncio.Runner, Database]) -> Iterator[tuple[asyncio.Runner, Database]]:
    yield open_columns
    open_columns[0].run(cancel_other_tasks())


@pytest.fixture
def desk(opened: tuple[asyncio.Runner, Database]) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened)


@pytest.fixture
def shop(opened: tuple[asyncio.Runner, Database]) -> FedShop:
    """One whose columns are fed and counted by hand."""
    return FedShop(*opened)
