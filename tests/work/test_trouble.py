"""A database that takes no writes parks nothing: whatever waits is still there when it does again."""

import asyncio
from typing import ClassVar

import psycopg
import pytest
from psycopg.errors import DiskFull, ReadOnlySqlTransaction
from tests.support.drain_queues import drain

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.facts import Fact


class Rung(Fact, frozen=True):
    topic: ClassVar[str] = "test.rung"
    number: int


@pytest.mark.parametrize("trouble", [DiskFull, ReadOnlySqlTransaction])
def test_a_database_that_takes_no_writes_is_no_rows_guilt(database_url, trouble):
    received: list[int] = []

    async def cannot(*_) -> None:
        raise trouble("planted")

    async def listen(_tx, _organization_id, facts) -> None:
        received.extend(fact.number for fact in facts)

    async def work() -> None:
        database, organization_id = Database(database_url, pool_max=4), new_uuid()
        await database.open()
        try:
            async with database.transaction() as tx:
                await outbox.record(tx, organization_id, [Rung(number=1)])
            with pytest.raises(trouble):
                await drain(database, organization_id, {Rung: {"a": cannot}})
            with psycopg.connect(database_url) as connection:
                assert connection.execute("SELECT count(*) FROM outbox_retries").fetchall() == [(0,)]
            await drain(database, organization_id, {Rung: {"a": listen}})
        finally:
            await database.close()

    asyncio.run(work())
    assert received == [1]
