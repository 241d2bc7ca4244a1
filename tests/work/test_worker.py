import asyncio
import contextlib
from typing import ClassVar

import psycopg
import pytest
from psycopg.types.json import Jsonb

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.app import create_app
from regulars.work.facts import Fact
from regulars.work.jobs import STALLED_AFTER_S, register, rescue_stalled_jobs
from regulars.work.outbox import OutboxQueue
from regulars.work.run import run_worker
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
        self.heard: list[int] = []
        self.heard_something = asyncio.Event()
        self.stop = asyncio.Event()

    async def listen(self, tx, organization_id, facts):
        self.heard.extend(fact.number for fact in facts)
        self.heard_something.set()

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


def test_a_worker_finds_facts_by_polling_when_nobody_woke_it(database_url):
    async def scenario():
        house = House(database_url)
        async with house.worker():
            await house.ring(1)
            await asyncio.wait_for(house.heard_something.wait(), 10)
        return house.heard

    assert asyncio.run(scenario()) == [1]


def test_a_wake_up_does_not_wait_for_the_poll(database_url, monkeypatch):
    # The next look is further away than anybody here waits.
    monkeypatch.setattr(OutboxQueue, "look_every_s", 600.0)

    async def scenario():
        house = House(database_url)
        waker = Waker(Database(database_url))
        await waker.open()
        async with house.worker():
            await house.ring(0)
            # Until the worker listens nobody hears that it is woken.
            async with asyncio.timeout(60):
                while not house.heard:
                    waker.wake("outbox", house.organization_id)
                    await asyncio.sleep(0.05)
            for number in range(1, 5):
                house.heard_something.clear()
                await house.ring(number)
                waker.wake("outbox", house.organization_id)
                await asyncio.wait_for(house.heard_something.wait(), 60)
            await waker.close()
        return house.heard

    assert asyncio.run(scenario()) == [0, 1, 2, 3, 4]


def test_a_stopped_worker_leaves_no_worker_row_behind(database_url):
    async def scenario():
        house = House(database_url)
        async with house.worker():
            await asyncio.sleep(0.5)
            assert query(database_url, "SELECT count(*) FROM procrastinate_workers") == [(1,)]

    asyncio.run(scenario())
    assert query(database_url, "SELECT count(*) FROM procrastinate_workers") == [(0,)]


def test_a_worker_goes_on_after_its_connections_were_cut(database_url):
    async def scenario():
        house = House(database_url)
        async with house.worker():
            await house.ring(1)
            await asyncio.wait_for(house.heard_something.wait(), 10)
            house.heard_something.clear()
            query(
                database_url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            async with asyncio.timeout(60):
                while True:
                    with contextlib.suppress(psycopg.OperationalError):
                        await house.ring(2)
                        break
                # The first may be heard again: the cut may have come before what was done about it was committed.
                while 2 not in house.heard:
                    house.heard_something.clear()
                    await house.heard_something.wait()
        return house.heard

    heard = asyncio.run(scenario())
    assert heard[0] == 1
    assert set(heard) == {1, 2}


def stalled_job(url: str, *, queueing_lock: str | None = None) -> int:
    ((worker_id,),) = query(
        url,
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - make_interval(secs => %s)) RETURNING id",
        STALLED_AFTER_S + 5,
    )
    ((job_id,),) = query(
        url,
        """
        INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, worker_id, queueing_lock)
        VALUES ('drain', 'work.drain', %s, 'doing', %s, %s) RETURNING id
        """,
        Jsonb({"organization_ids": [str(new_uuid())]}),
        worker_id,
        queueing_lock,
    )
    return job_id


async def rescue(url: str) -> int:
    app = create_app(url, pool_max=2)
    async with app.open_async():
        return await rescue_stalled_jobs(app)


def test_a_job_whose_worker_died_is_queued_again(database_url):
    job_id = stalled_job(database_url)
    assert asyncio.run(rescue(database_url)) == 1
    assert query(database_url, "SELECT status::text FROM procrastinate_jobs WHERE id = %s", job_id) == [("todo",)]


def test_a_stalled_job_that_already_waits_again_is_dropped(database_url):
    job_id = stalled_job(database_url, queueing_lock="same")
    query(
        database_url,
        "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock) VALUES ('drain', 'work.drain', 'same')",
    )
    assert asyncio.run(rescue(database_url)) == 1
    rows = query(database_url, "SELECT id, status::text FROM procrastinate_jobs")
    assert [status for _, status in rows] == ["todo"]
    assert job_id not in [identifier for identifier, _ in rows]


def test_a_job_of_a_live_worker_is_left_alone(database_url):
    stalled_job(database_url)
    query(database_url, "UPDATE procrastinate_workers SET last_heartbeat = now()")
    assert asyncio.run(rescue(database_url)) == 0


def test_the_housekeeping_of_jobs_is_on_the_schedule(database_url):
    app = create_app(database_url, pool_max=1)
    register(app, lambda queue, organization_id: None)
    assert {task.task.name for task in app.periodic_registry.periodic_tasks.values()} == {"work.rescue", "work.forget"}


def test_a_server_of_the_release_before_wakes_the_worker_with_a_job(database_url):
    woken = []
    app = create_app(database_url, pool_max=2)
    register(app, lambda queue, organization_id: woken.append((queue, organization_id)))
    organization_id = new_uuid()

    async def scenario():
        async with app.open_async():
            await app.configure_task("work.drain", queue="drain").defer_async(organization_ids=[str(organization_id)])
            await app.run_worker_async(wait=False, install_signal_handlers=False)

    asyncio.run(scenario())
    assert woken == [("outbox", organization_id)]


@pytest.mark.parametrize("table", ["procrastinate_jobs", "procrastinate_workers", "procrastinate_events"])
def test_the_job_tables_exist_after_migration(database_url, table):
    assert query(database_url, "SELECT to_regclass(%s) IS NOT NULL", table) == [(True,)]
