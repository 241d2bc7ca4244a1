from uuid import UUID

import pytest
from tests.sales.desk import STORE, Desk
from tests.support.room import anyio_backend, database, organization_id

from regulars.kit.db import Database

__all__ = ["anyio_backend", "database", "organization_id"]


@pytest.fixture
async def desk(database: Database, organization_id: UUID) -> Desk:
    opened = Desk(database, organization_id)
    await opened.open_store(STORE)
    return opened
