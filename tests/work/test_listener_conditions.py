import asyncio
from typing import ClassVar

from tests.support.drain_queues import drain

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.facts import Fact, needed_if


class SaleSeen(Fact, frozen=True):
    topic: ClassVar[str] = "test.sale_seen"
    number: int


def test_a_listener_with_a_condition_is_called_only_while_the_condition_holds(database_url):
    database, organization_id = Database(database_url, pool_max=2), new_uuid()
    always, sometimes = [], []

    async def listen_always(_tx, _organization_id, facts):
        always.extend(fact.number for fact in facts)

    @needed_if("to_regclass('wanted') IS NOT NULL")
    async def listen_sometimes(_tx, _organization_id, facts):
        sometimes.extend(fact.number for fact in facts)

    async def work():
        await database.open()
        for number in (1, 2):
            async with database.transaction() as tx:
                await outbox.record(tx, organization_id, [SaleSeen(number)])
            assert await drain(database, organization_id, {SaleSeen: {"a": listen_always, "b": listen_sometimes}}) == 1
            async with database.transaction() as tx:
                await tx.execute("CREATE TABLE IF NOT EXISTS wanted (number integer)")
        await database.close()

    asyncio.run(work())
    assert (always, sometimes) == ([1, 2], [2])
