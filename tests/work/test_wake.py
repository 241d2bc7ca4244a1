import asyncio
import contextlib

import psycopg
from tests.support.waiting import until

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work.wake import CHANNEL, ORGANIZATIONS_PER_WAKE_MAX, Waker, listen_forever, payloads


@contextlib.asynccontextmanager
async def receiving(database):
    """Wake-ups that a worker with its own connection receives, in order, from when it listens."""
    received = []
    listens = asyncio.Event()

    def wake(queue, one):
        if queue == "trial":
            listens.set()
        else:
            received.append((queue, one))

    listening = asyncio.create_task(listen_forever(database, wake))
    async with asyncio.timeout(60), await database.dial() as connection:
        while not listens.is_set():
            await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"trial:{new_uuid().hex}"))
            await asyncio.sleep(0.02)
    try:
        yield received
    finally:
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


def test_the_first_wake_goes_at_once_and_those_of_the_interval_after_it_together(columns_database_url):
    first, second = new_uuid(), new_uuid()

    async def scenario():
        database = Database(columns_database_url)
        sent = []
        async with receiving(database) as received:
            waker = Waker(database)
            await waker.open()
            notify = waker._notify

            async def count(payload):
                sent.append(payload)
                await notify(payload)

            waker._notify = count
            waker.wake("outbox", first)
            await asyncio.sleep(0)
            for _ in range(100):
                waker.wake("outbox", first)
                waker.wake("outbox", second)
            await until(lambda: len(received) >= 3)
            await waker.close()
        return received, sent

    received, sent = asyncio.run(scenario())
    assert received[0] == ("outbox", first)
    assert set(received) == {("outbox", first), ("outbox", second)}
    assert len(sent) == 2


def test_every_organization_is_in_a_payload_that_postgresql_takes(columns_database_url):
    many = [new_uuid() for _ in range(ORGANIZATIONS_PER_WAKE_MAX * 3 + 1)]
    texts = list(payloads("outbox.retries", many))
    assert len(texts) == 4
    assert all(len(text.encode()) < 8000 for text in texts)

    async def scenario():
        database = Database(columns_database_url)
        async with receiving(database) as received:
            waker = Waker(database)
            await waker.open()
            for organization_id in many:
                waker.wake("outbox.retries", organization_id)
            await until(lambda: len(received) >= len(many))
            await waker.close()
        return received

    assert sorted(one for _, one in asyncio.run(scenario())) == sorted(many)


def test_closing_sends_what_is_still_waiting(columns_database_url):
    async def scenario():
        database = Database(columns_database_url)
        async with receiving(database) as received:
            waker = Waker(database)
            await waker.open()
            waker.wake("outbox", new_uuid())
            await asyncio.sleep(0)
            waker.wake("outbox", new_uuid())
            await waker.close()
            await until(lambda: len(received) == 2)

    asyncio.run(scenario())


def test_a_wake_up_that_fails_raises_nothing_and_the_next_one_dials_again(columns_database_url):
    async def scenario():
        database = Database(columns_database_url)
        waker = Waker(database)
        await waker.open()
        waker.wake("outbox", new_uuid())
        await until(waker._task.done)
        await waker._connection.close()
        async with receiving(database) as received:
            waker.wake("outbox", new_uuid())
            await until(lambda: len(received) == 1)
        await waker.close()

    asyncio.run(scenario())


def test_a_wake_on_a_closed_waker_is_ignored(columns_database_url):
    Waker(Database(columns_database_url)).wake("outbox", new_uuid())


def test_a_payload_of_another_program_is_ignored(columns_database_url):
    organization_id = new_uuid()

    async def scenario():
        async with receiving(Database(columns_database_url)) as received:
            with psycopg.connect(columns_database_url, autocommit=True) as connection:
                for payload in ("", "outbox", "outbox:", "outbox:not-an-id", f"outbox:{organization_id.hex}"):
                    connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            await until(lambda: received)
        return received

    assert asyncio.run(scenario()) == [("outbox", organization_id)]
