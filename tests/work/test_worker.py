import asyncio
import contextlib
from typing import ClassVar

import psycopg

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.facts import Fact
from regulars.work.loop import run_worker
from regulars.work.outbox import OutboxQueue
from regulars.work.wake import Waker


class Rang(Fact, frozen=True):
    topic: ClassVar[str] = "test.rang"
    number: int


class House:
    """A worker's world: one organization, a listener that notes, and the worker running in the background."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url, pool_max=4)
        self.organization_id = new_uuid()
        self.received: list[int] = []
        self.has_received = asyncio.Event()
        self.stop = asyncio.Event()

    async def listen(self, tx, organization_id, facts):
        self.received.extend(fact.number for fact in facts)
        self.has_received.set()

    def queues(self):
        return [OutboxQueue({Rang: {"house": self.listen}})]

    async def ring(self, number: int) -> None:
        async with self.database.transaction() as tx:
            await outbox.record(tx, self.organization_id, [Rang(number=number)])

    @contextlib.asynccontextmanager
    async def worker(self):
        await self.database.open()
        running = asyncio.create_task(run_worker(self.database, self.queues(), stop=self.stop, grace_s=5))
        try:
            yield
        finally:
            self.stop.set()
            await asyncio.wait_for(running, 10)
            await self.database.close()


def query(url, sql, *params):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def test_a_worker_finds_facts_by_polling_without_a_wake_up(database_url):
    async def scenario():
        house = House(database_url)
        async with house.worker():
            await house.ring(1)
            await asyncio.wait_for(house.has_received.wait(), 10)
        return house.received

    assert asyncio.run(scenario()) == [1]


def test_a_wake_up_does_not_wait_for_the_poll(database_url, monkeypatch):
    # The next poll is later than the end of the test.
    monkeypatch.setattr(OutboxQueue, "poll_every_s", 600.0)

    async def scenario():
        house = House(database_url)
        waker = Waker(Database(database_url))
        await waker.open()
        async with house.worker():
            await house.ring(0)
            # A wake-up before the worker listens is lost.
            async with asyncio.timeout(60):
                while not house.received:
                    waker.wake("outbox", house.organization_id)
                    await asyncio.sleep(0.05)
            for number in range(1, 5):
                house.has_received.clear()
                await house.ring(number)
                waker.wake("outbox", house.organization_id)
                await asyncio.wait_for(house.has_received.wait(), 60)
            await waker.close()
        return house.received

    assert asyncio.run(scenario()) == [0, 1, 2, 3, 4]


def test_a_worker_goes_on_after_its_connections_were_cut(database_url):
    async def scenario():
        house = House(database_url)
        async with house.worker():
            await house.ring(1)
            await asyncio.wait_for(house.has_received.wait(), 10)
            house.has_received.clear()
            query(
                database_url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            async with asyncio.timeout(60):
                while True:
                    with contextlib.suppress(psycopg.OperationalError):
                        await house.ring(2)
                        break
                # The first may be received again: the cut may have come before what was done about it was committed.
                while 2 not in house.received:
                    house.has_received.clear()
                    await house.has_received.wait()
        return house.received

    received = asyncio.run(scenario())
    assert received[0] == 1
    assert set(received) == {1, 2}
