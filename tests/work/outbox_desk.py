"""Facts, a listener that records them, and the database of a test of the outbox."""

import asyncio
from typing import ClassVar

import psycopg
import pytest

from regulars.kit.db import Database
from regulars.work import outbox
from regulars.work.facts import Fact
from regulars.work.retries import RetryQueue


class SaleSeen(Fact, frozen=True):
    topic: ClassVar[str] = "test.sale_seen"
    number: int


class StoreOpened(Fact, frozen=True):
    topic: ClassVar[str] = "test.store_opened"
    name: str


class Whispered(Fact, frozen=True):
    topic: ClassVar[str] = "test.whispered"
    on_interest: ClassVar[bool] = True
    word: str


class Listening:
    """Records the facts that it gets, and their order; fails for the numbers in `failing`."""

    def __init__(self, mark: int = 0) -> None:
        self.mark = mark
        self.received: list[int] = []
        self.calls: list[list[int]] = []
        self.failing: set[int] = set()

    async def __call__(self, tx, organization_id, facts) -> None:
        self.calls.append([fact.number for fact in facts])
        for fact in facts:
            await tx.execute("INSERT INTO received (number) VALUES (%s)", (self.mark + fact.number,))
            if fact.number in self.failing:
                raise RuntimeError("planted")
            self.received.append(fact.number)


@pytest.fixture
def database(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE received (number integer NOT NULL)")
    return Database(database_url, pool_max=4)


def run(database, work):
    """Run one asynchronous scenario with the pool open."""

    async def scenario():
        await database.open()
        try:
            return await work()
        finally:
            await database.close()

    return asyncio.run(scenario())


async def record(database, organization_id, *numbers):
    for number in numbers:
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [SaleSeen(number=number)])


async def retry(database, organization_id, listeners):
    query(database, "UPDATE outbox_retries SET due_at = created_at WHERE due_at IS NOT NULL RETURNING 1")
    return await RetryQueue(listeners).run_pass(database, organization_id)


def query(database, sql, *params):
    with psycopg.connect(database.url, autocommit=True) as connection:
        return connection.execute(sql, params).fetchall()
