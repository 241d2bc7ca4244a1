import asyncio
from typing import ClassVar
from uuid import UUID

from tests.support.drain_queues import drain

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.facts import Fact, needed_if


class SaleSeen(Fact, frozen=True):
    topic: ClassVar[str] = "test.sale_seen"
    number: int

    def subjects(self):
        return [UUID(int=self.number)]


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


def test_a_condition_may_depend_on_what_the_facts_are_about(database_url):
    database, organization_id = Database(database_url, pool_max=2), new_uuid()
    calls = []

    @needed_if("EXISTS (SELECT FROM unnest(%(subjects)s::uuid[]) AS it (id) WHERE it.id::text LIKE '%%7')")
    async def listen(_tx, _organization_id, facts):
        calls.append([fact.number for fact in facts])

    async def work():
        await database.open()
        for numbers in ([1], [2, 7], [3]):
            async with database.transaction() as tx:
                await outbox.record(tx, organization_id, [SaleSeen(number) for number in numbers])
            await drain(database, organization_id, {SaleSeen: {"a": listen}})
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [SaleSeen(4)])
            await tx.execute("UPDATE outbox SET payload = '[{}]'")
        # What cannot be read waits for each listener, whatever its condition says.
        await drain(database, organization_id, {SaleSeen: {"a": listen}})
        async with database.transaction() as tx:
            assert await tx.fetch("SELECT listener FROM outbox_retries") == [("a",)]
        await database.close()

    asyncio.run(work())
    assert calls == [[2, 7]]
