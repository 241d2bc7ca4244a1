import asyncio

import psycopg

from regulars.kit.ids import new_uuid
from regulars.work.wake import INTERVAL_S, Waker


def waiting_jobs(url):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(
            "SELECT task_name, queue_name, args, queueing_lock FROM procrastinate_jobs WHERE status = 'todo' ORDER BY id"
        ).fetchall()


def test_many_wakes_of_many_organizations_become_one_job(database_url):
    first, second = new_uuid(), new_uuid()

    async def scenario():
        waker = Waker(database_url)
        await waker.open()
        for _ in range(100):
            waker.wake(first)
            waker.wake(second)
        await asyncio.sleep(INTERVAL_S * 4)
        waker.wake(first)
        await waker.close()

    asyncio.run(scenario())
    jobs = waiting_jobs(database_url)
    assert [(job[0], job[2]) for job in jobs] == [
        ("work.drain", {"organization_ids": sorted([str(first), str(second)])})
    ]


def test_closing_sends_what_is_still_waiting(database_url):
    async def scenario():
        waker = Waker(database_url)
        await waker.open()
        waker.wake(new_uuid())
        await waker.close()

    asyncio.run(scenario())
    assert len(waiting_jobs(database_url)) == 1


def test_a_wake_up_that_fails_hurts_nobody(empty_database_url):
    async def scenario():
        waker = Waker(empty_database_url)
        await waker.open()
        waker.wake(new_uuid())
        await asyncio.sleep(INTERVAL_S * 4)
        waker.wake(new_uuid())
        await waker.close()

    asyncio.run(scenario())


def test_a_wake_on_a_closed_waker_is_ignored(database_url):
    Waker(database_url).wake(new_uuid())
    assert waiting_jobs(database_url) == []
