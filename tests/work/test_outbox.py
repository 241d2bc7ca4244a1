import asyncio
import contextlib
from typing import ClassVar
from uuid import UUID

import psycopg
import pytest

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.facts import Fact
from regulars.work.outbox import ATTEMPTS_MAX, CHUNK_ROWS, RETRY_SCHEDULE_S


class SaleSeen(Fact, frozen=True):
    topic: ClassVar[str] = "test.sale_seen"
    number: int


class StoreOpened(Fact, frozen=True):
    topic: ClassVar[str] = "test.store_opened"
    name: str


class Listening:
    """Notes what it hears, and the order; fails for numbers that it is told to."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.failing: set[int] = set()

    async def __call__(self, tx, organization_id, facts) -> None:
        for fact in facts:
            await tx.execute("INSERT INTO heard (number) VALUES (%s)", (fact.number,))
            if fact.number in self.failing:
                raise RuntimeError("planted")
            self.heard.append(fact.number)


@pytest.fixture
def database(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE heard (number integer NOT NULL)")
    return Database(database_url, pool_max=4)


@pytest.fixture
def organization_id() -> UUID:
    return new_uuid()


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


def query(database, sql, *params):
    with psycopg.connect(database.url, autocommit=True) as connection:
        return connection.execute(sql, params).fetchall()


def make_due(database):
    query(database, "UPDATE outbox SET not_before = NULL WHERE not_before < 'infinity' RETURNING 1")


def test_facts_of_one_topic_become_one_row_in_the_order_given(database, organization_id):
    async def work():
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [SaleSeen(number=2), StoreOpened(name="Ré"), SaleSeen(number=1)])

    run(database, work)
    rows = query(database, "SELECT topic, payload FROM outbox ORDER BY id")
    assert rows == [
        ("test.sale_seen", [{"number": 2}, {"number": 1}]),
        ("test.store_opened", [{"name": "Ré"}]),
    ]


def test_nothing_is_recorded_when_the_transaction_rolls_back(database, organization_id):
    async def work():
        with contextlib.suppress(RuntimeError):
            async with database.transaction() as tx:
                await outbox.record(tx, organization_id, [SaleSeen(number=1)])
                raise RuntimeError

    run(database, work)
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]


def test_no_facts_write_no_row(database, organization_id):
    async def work():
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [])

    run(database, work)
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_drain_hands_over_every_fact_in_order_and_empties_the_outbox(database, organization_id):
    listening = Listening()
    numbers = list(range(CHUNK_ROWS * 2 + 3))

    async def work():
        await record(database, organization_id, *numbers)
        return await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    assert run(database, work) == len(numbers)
    assert listening.heard == numbers
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]
    assert query(database, "SELECT number FROM heard") == [(number,) for number in numbers]


def test_another_organization_is_left_alone(database, organization_id):
    listening = Listening()
    other = new_uuid()

    async def work():
        await record(database, other, 1)
        return await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    assert run(database, work) == 0
    assert listening.heard == []
    assert query(database, "SELECT organization_id FROM outbox") == [(other,)]


def test_a_topic_nobody_knows_waits_for_the_release_that_does(database, organization_id):
    async def work():
        await record(database, organization_id, 1)
        return await outbox.drain(database, organization_id, {StoreOpened: []})

    assert run(database, work) == 0
    assert query(database, "SELECT attempts, not_before FROM outbox") == [(0, None)]


def test_a_failing_row_loses_only_its_own_writes_and_waits(database, organization_id):
    listening = Listening()
    listening.failing = {2}

    async def work():
        await record(database, organization_id, 1, 2, 3)
        return await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    assert run(database, work) == 2
    # All three were tried together first; what that did was undone, so each took effect once.
    assert listening.heard == [1, 1, 3]
    assert query(database, "SELECT number FROM heard ORDER BY 1") == [(1,), (3,)]
    ((attempts, wait),) = query(database, "SELECT attempts, extract(epoch FROM not_before - now())::float FROM outbox")
    assert attempts == 1
    assert RETRY_SCHEDULE_S[0] - 1 < wait <= RETRY_SCHEDULE_S[0]


def test_a_waiting_row_is_not_tried_before_its_time(database, organization_id):
    listening = Listening()
    listening.failing = {1}

    async def work():
        await record(database, organization_id, 1)
        await outbox.drain(database, organization_id, {SaleSeen: [listening]})
        listening.failing = set()
        return await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    assert run(database, work) == 0
    make_due(database)

    async def later():
        return await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    database = Database(database.url)
    assert run(database, later) == 1
    assert listening.heard == [1]


def test_a_poisonous_row_is_parked_and_blocks_nobody(database, organization_id):
    listening = Listening()
    listening.failing = {1}

    async def work():
        await record(database, organization_id, 1)
        for _ in range(ATTEMPTS_MAX):
            make_due(database)
            await outbox.drain(database, organization_id, {SaleSeen: [listening]})
        await record(database, organization_id, 2)
        await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    run(database, work)
    assert listening.heard == [2]
    rows = query(database, "SELECT attempts, not_before = 'infinity' FROM outbox")
    assert rows == [(ATTEMPTS_MAX, True)]


def test_a_payload_that_does_not_decode_is_parked_like_any_failure(database, organization_id):
    listening = Listening()

    async def work():
        await record(database, organization_id, 1)
        query(database, """UPDATE outbox SET payload = '[{"number": "x"}]' RETURNING 1""")
        return await outbox.drain(database, organization_id, {SaleSeen: [listening]})

    assert run(database, work) == 0
    assert query(database, "SELECT attempts FROM outbox") == [(1,)]


def test_drains_at_the_same_time_hand_over_each_fact_once(database, organization_id):
    listening = Listening()
    numbers = list(range(120))

    async def work():
        await record(database, organization_id, *numbers)
        drains = [outbox.drain(database, organization_id, {SaleSeen: [listening]}) for _ in range(4)]
        return sum(await asyncio.gather(*drains))

    assert run(database, work) == len(numbers)
    assert sorted(listening.heard) == numbers
    assert query(database, "SELECT count(*), count(DISTINCT number) FROM heard") == [(120, 120)]
