import asyncio

import pytest
from tests.attribution.desk import Desk
from tests.segments.conftest import columns_database_url, open_columns, opened  # noqa: F401  # fixtures

from regulars.kit.db import Database


@pytest.fixture
def desk(opened: tuple[asyncio.Runner, Database]) -> Desk:  # noqa: F811  # the fixture
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened)
