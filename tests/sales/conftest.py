from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import pytest
from tests.sales.counter import Counter, open_counter
from tests.sales.desk import STORE, Desk
from tests.support import database as databases
from tests.support.database_fixtures import database_url

from regulars.catalog.entries import register_product_keys
from regulars.kit.db import Database
from regulars.profiles.facts import ProfilesChanged
from regulars.work.outbox import register_interest

__all__ = ["database_url"]


@pytest.fixture
async def desk(database: Database, organization_id: UUID) -> Desk:
    opened = Desk(database, organization_id)
    await opened.open_store(STORE)
    return opened


@pytest.fixture
async def quick(database: Database, organization_id: UUID) -> AsyncIterator[Counter]:
    counter = open_counter(database, organization_id, quick=True)
    await open_shop(counter)
    yield counter
    await counter.close()


@pytest.fixture(scope="session")
def plain_database_url(shared_database: tuple[str, str]) -> Iterator[str]:
    url, template = shared_database
    with databases.new_database(url, template=template) as fresh:
        yield fresh


@pytest.fixture
async def plain(plain_database_url: str, organization_id: UUID) -> AsyncIterator[Counter]:
    """The other path, for the same organization, so in another database."""
    opened = Database(plain_database_url)
    await opened.open()
    counter = open_counter(opened, organization_id, quick=False)
    await open_shop(counter)
    yield counter
    await counter.close()
    await opened.close()


async def open_shop(counter: Counter) -> None:
    await counter.desk.open_store(STORE, "LYON-02")
    async with counter.desk.database.transaction() as tx:
        await register_product_keys(tx, counter.desk.organization_id, ["colour"])
        await register_interest(tx, counter.desk.organization_id, ProfilesChanged, needed_by="test")
