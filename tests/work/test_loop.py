"""The loop over queues, with a small queue as a room would write it: letters are read in the transaction."""

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import psycopg
import pytest
from tests.support.database import new_database
from tests.support.waiting import until

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work import loop as loop_module
from regulars.work.loop import Loop
from regulars.work.queue import Due, RowQueue, Schedule

TABLES = """
CREATE TABLE letters (
    organization_id uuid NOT NULL, id uuid NOT NULL, word text NOT NULL, attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz, owner uuid, lapses integer NOT NULL DEFAULT 0, PRIMARY KEY (organization_id, id)
);
CREATE INDEX letters_due ON letters (due_at, organization_id) WHERE due_at IS NOT NULL;
"""


class Letter(NamedTuple):
    id: UUID
    word: str
    attempts: int


class Letters(RowQueue[Letter]):
    name = "letters"
    due = Due(table="letters")
    poll_every_s = 0.2
    batch_rows = 3
    schedule = Schedule(waits_s=(60,))

    def __init__(self):
        self.read: list[tuple[UUID, str]] = []

    async def take(self, tx, organization_id, *, limit):
        rows = await tx.fetch(
            "SELECT id, word, attempts FROM letters WHERE organization_id = %s AND due_at <= %s"
            " ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED",
            (organization_id, tx.now, limit),
        )
        return [Letter(*row) for row in rows]

    async def act(self, tx, organization_id, rows):
        await tx.execute(
            "UPDATE letters SET due_at = NULL WHERE organization_id = %s AND id = ANY (%s)",
            (organization_id, [row.id for row in rows]),
        )
        if any(row.word == "poison" for row in rows):
            raise RuntimeError("planted")
        self.read += [(organization_id, row.word) for row in rows]

    async def postpone(self, tx, organization_id, row, *, attempts, due_at):
        await tx.execute(
            "UPDATE letters SET attempts = %s, due_at = %s WHERE organization_id = %s AND id = %s",
            (attempts, due_at, organization_id, row.id),
        )


@pytest.fixture(scope="module")
def letters_url(shared_database):
    server_url, template = shared_database
    with new_database(server_url, template=template) as fresh, psycopg.connect(fresh, autocommit=True) as connection:
        connection.execute(TABLES)
        yield fresh


@pytest.fixture
def url(letters_url):
    """Tests of a module share the database. A loop works for every organization in it, so each begins without letters."""
    with psycopg.connect(letters_url, autocommit=True) as connection:
        connection.execute("DELETE FROM letters")
    return letters_url


def post(url, organization_id, *words, due_in=timedelta(0)):
    with psycopg.connect(url) as connection:
        for word in words:
            connection.execute(
                "INSERT INTO letters (organization_id, id, word, due_at) VALUES (%s, %s, %s, now() + %s)",
                (organization_id, new_uuid(), word, due_in),
            )


def rows(url, sql):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql).fetchall()


@contextlib.asynccontextmanager
async def served(url, *queues):
    database = Database(url, pool_max=6)
    await database.open()
    loop = Loop(database, queues)
    database.after_commit = loop.wake
    running = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await database.close()


def test_what_is_due_is_found_without_a_wake_up_and_what_is_not_due_is_left(url):
    one, other = new_uuid(), new_uuid()
    post(url, one, "first")
    post(url, one, "later", due_in=timedelta(hours=1))

    async def scenario():
        letters = Letters()
        async with served(url, letters):
            await until(lambda: letters.read)
            post(url, other, "second")
            # Read, and committed: a loop that stops before that leaves the row to the next.
            await until(lambda: rows(url, "SELECT word FROM letters WHERE due_at IS NOT NULL") == [("later",)])
        return letters.read

    assert asyncio.run(scenario()) == [(one, "first"), (other, "second")]


def test_a_queue_that_cannot_be_looked_at_holds_up_no_other(url):
    class Lost(Letters):
        name = "lost"
        due = Due(table="no_such_table")

    async def scenario():
        letters = Letters()
        async with served(url, Lost(), letters):
            for word in ("first", "second"):
                post(url, new_uuid(), word)
                await until(lambda word=word: word in [read for _, read in letters.read])

    asyncio.run(scenario())


def test_a_long_backlog_of_one_does_not_starve_another(url):
    busy, quiet = new_uuid(), new_uuid()
    post(url, busy, *["backlog"] * 90)

    async def scenario():
        letters = Letters()
        letters.passes_at_once = 1
        async with served(url, letters) as loop:
            await until(lambda: letters.read)
            post(url, quiet, "urgent")
            already = len(letters.read)
            loop.wake("letters", quiet)
            await until(lambda: (quiet, "urgent") in letters.read)
            place = letters.read.index((quiet, "urgent"))
            await until(lambda: len(letters.read) == 91)
        return place - already

    # At most the batch that was running, and one that had begun meanwhile.
    assert asyncio.run(scenario()) <= 3 * Letters.batch_rows


def test_a_wake_up_during_a_turn_gives_another_turn(url):
    organization_id = new_uuid()

    class Slow(Letters):
        poll_every_s = 3600.0

        async def act(self, tx, organization_id, rows):
            await super().act(tx, organization_id, rows)
            if len(self.read) == 1:
                post(url, organization_id, "second")
                self.loop.wake("letters", organization_id)

    async def scenario():
        letters = Slow()
        async with served(url, letters) as loop:
            letters.loop = loop
            post(url, organization_id, "first")
            loop.wake("letters", organization_id)
            await until(lambda: len(letters.read) == 2)
        return letters.read

    assert [word for _, word in asyncio.run(scenario())] == ["first", "second"]


def test_a_poisonous_row_waits_and_is_parked_while_its_neighbours_go_on(url):
    organization_id = new_uuid()
    post(url, organization_id, "one", "poison", "three")

    async def scenario():
        letters = Letters()
        async with served(url, letters):
            await until(lambda: len(letters.read) == 2)
            await until(lambda: rows(url, "SELECT attempts FROM letters WHERE word = 'poison'") == [(1,)])
            rows(url, "UPDATE letters SET due_at = now() WHERE word = 'poison' RETURNING 1")
            await until(lambda: rows(url, "SELECT attempts, due_at FROM letters WHERE word = 'poison'") == [(2, None)])
        return letters.read

    assert [word for _, word in asyncio.run(scenario())] == ["one", "three"]


def test_a_turn_that_fails_is_taken_again_and_holds_up_no_other_organization(url, monkeypatch):
    monkeypatch.setattr(loop_module, "AFTER_FAILURE_S", 0.1)
    bad, good = new_uuid(), new_uuid()

    class Broken(Letters):
        poll_every_s = 3600.0
        passes_at_once = 1
        failures = 0

        async def take(self, tx, organization_id, *, limit):
            if organization_id == bad and self.failures < 2:
                self.failures += 1
                raise RuntimeError("planted")
            return await super().take(tx, organization_id, limit=limit)

    async def scenario():
        letters = Broken()
        post(url, bad, "patient")
        post(url, good, "quick")
        async with served(url, letters):
            await until(lambda: len(letters.read) == 2)
        return letters.read

    assert asyncio.run(scenario()) == [(good, "quick"), (bad, "patient")]


def test_a_schedule_waits_longer_by_its_jitter_and_never_shorter():
    schedule = Schedule(waits_s=(10, 100), jitter=0.1)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert schedule.due_at(now, attempts=1) == now + timedelta(seconds=10)
    assert schedule.due_at(now, attempts=2, random_share=1.0) == now + timedelta(seconds=110)
    assert schedule.due_at(now, attempts=3) is None
