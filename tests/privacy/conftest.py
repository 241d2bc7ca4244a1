from collections.abc import AsyncIterator

import pytest
from tests.support.database_fixtures import LOCK_TIMEOUT_MS

from regulars.kit.db import Database


@pytest.fixture
async def database(columns_database_url: str) -> AsyncIterator[Database]:
    """Tests share it, each with its own organization."""
    opened = Database(columns_database_url, lock_timeout_ms=LOCK_TIMEOUT_MS)
    await opened.open()
    yield opened
    await opened.close()
