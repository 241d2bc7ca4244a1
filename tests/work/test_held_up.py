"""A listener that waits for a lock, or takes too long, steps aside and holds up no other."""

from dataclasses import dataclass

import psycopg
import pytest
from psycopg.errors import QueryCanceled
from tests.work.test_outbox import Listening, SaleSeen, query, record, retry, run

from regulars.kit.db import Database
from regulars.work import outbox
from regulars.work.outbox import OutboxQueue
from regulars.work.queue import BATCH_ROWS, Due, RowQueue, Schedule
from regulars.work.retries import RetryQueue


@pytest.fixture
def database(database_url: str) -> Database:
    opened = Database(database_url, pool_max=4, lock_timeout_ms=100)
    make(opened, "CREATE TABLE received (number integer NOT NULL)")
    return opened


def make(database, sql):
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(sql)


class HeldUp(Listening):
    """Waits for a locked row, or for longer than a statement may; accepts the facts once `statement` is unset."""

    def __init__(self, statement: str, mark: int = 0) -> None:
        super().__init__(mark)
        self.statement: str | None = statement

    async def __call__(self, tx, organization_id, facts) -> None:
        if self.statement is not None:
            self.calls.append([fact.number for fact in facts])
            await tx.execute(self.statement)
        await super().__call__(tx, organization_id, facts)


@pytest.mark.parametrize("statement", ["SELECT FROM held FOR UPDATE", "SELECT pg_sleep(60)"])
@pytest.mark.parametrize("fails_too", [False, True])
def test_a_listener_that_is_held_up_holds_up_no_other(database, organization_id, monkeypatch, statement, fails_too):
    monkeypatch.setattr(outbox, "STATEMENT_MS_MAX", 700)
    held_up, good = HeldUp(statement), Listening(mark=1000)
    good.failing = {7} if fails_too else set()
    listeners = {SaleSeen: {"good": good, "held up": held_up}}

    async def work():
        make(database, "CREATE TABLE held AS SELECT 1 AS id")
        await record(database, organization_id, *range(BATCH_ROWS + 50))
        with psycopg.connect(database.url) as holder:
            holder.execute("SELECT FROM held FOR UPDATE")
            queue = OutboxQueue(listeners)
            while await queue.run_pass(database, organization_id):
                pass
        # Not a half was tried again, and the second batch did not wait at all.
        assert len(held_up.calls) <= 2
        received = [(1000 + number,) for number in range(BATCH_ROWS + 50) if number not in good.failing]
        assert query(database, "SELECT number FROM received ORDER BY 1") == received
        assert query(database, "SELECT count(*) FROM outbox") == [(0,)]
        assert query(
            database, "SELECT attempts, count(*) FROM outbox_retries WHERE listener = 'held up' GROUP BY 1"
        ) == [(0, BATCH_ROWS + 50)]
        held_up.statement = None
        retries = RetryQueue(listeners)
        while await retries.run_pass(database, organization_id):
            pass

    run(database, work)
    assert query(database, "SELECT number FROM received WHERE number < 1000 ORDER BY 1") == [
        (number,) for number in range(BATCH_ROWS + 50)
    ]
    assert query(database, "SELECT count(*) FROM outbox_retries WHERE listener = 'held up'") == [(0,)]


def test_a_batch_that_runs_out_of_time_is_halved_from_turn_to_turn(database_url, database, organization_id):
    """A statement that takes too long for more than five facts, and no time for fewer."""
    impatient = Database(database_url, pool_max=4, statement_timeout_ms=400)
    slow, other = Listening(), Listening(mark=1000)

    async def take_a_while(tx, organization_id, facts):
        await tx.execute("SELECT pg_sleep(%s)", (60 if len(facts) > 5 else 0,))
        await slow(tx, organization_id, facts)

    listeners = {SaleSeen: {"slow": take_a_while, "other": other}}

    async def work():
        await record(impatient, organization_id, *range(16))
        queue, retries = OutboxQueue(listeners), RetryQueue(listeners)
        while await queue.run_pass(impatient, organization_id):
            pass
        assert query(impatient, "SELECT number FROM received ORDER BY 1") == [(1000 + number,) for number in range(16)]
        turns = 0
        while await retries.run_pass(impatient, organization_id):
            turns += 1
        assert turns < 12

    run(impatient, work)
    assert query(impatient, "SELECT number FROM received WHERE number < 1000 ORDER BY 1") == [(n,) for n in range(16)]
    assert query(impatient, "SELECT count(*) FROM outbox_retries") == [(0,)]


def test_waiting_for_a_lock_parks_nothing_and_the_rows_behind_go_on(database, organization_id):
    listening = Listening()

    async def lock_its_own(tx, organization_id, facts):
        await tx.execute("SELECT FROM numbers WHERE number = ANY (%s) FOR UPDATE", ([fact.number for fact in facts],))
        await listening(tx, organization_id, facts)

    listeners = {SaleSeen: {"a": lock_its_own}}

    async def work():
        make(database, "CREATE TABLE numbers AS SELECT generate_series(0, 9) AS number")
        await record(database, organization_id, *range(10))
        with psycopg.connect(database.url) as holder:
            holder.execute("SELECT FROM numbers WHERE number = 0 FOR UPDATE")
            await OutboxQueue(listeners).run_pass(database, organization_id)
            retries = RetryQueue(listeners)
            while await retries.run_pass(database, organization_id):
                pass
            assert query(database, "SELECT number FROM received ORDER BY 1") == [(number,) for number in range(1, 10)]
            assert query(database, "SELECT attempts, due_at > now() - interval '1 s' FROM outbox_retries") == [
                (0, True)
            ]
        await retry(database, organization_id, listeners)

    run(database, work)
    assert query(database, "SELECT number FROM received ORDER BY 1") == [(number,) for number in range(10)]


@pytest.mark.parametrize("first", ["failing", "locked"])
def test_a_failing_row_and_a_locked_row_hold_up_no_other(database_url, database, organization_id, first):
    impatient = Database(database_url, pool_max=4, lock_timeout_ms=50)
    failing, locked = (0, 9) if first == "failing" else (9, 0)
    listening = Listening()

    async def fail_or_lock_its_own(tx, organization_id, facts):
        await listening(tx, organization_id, facts)
        await tx.execute("SELECT FROM numbers WHERE number = ANY (%s) FOR UPDATE", ([fact.number for fact in facts],))

    listeners = {SaleSeen: {"a": fail_or_lock_its_own}}

    async def work():
        make(database, "CREATE TABLE numbers AS SELECT generate_series(0, 9) AS number")
        await record(impatient, organization_id, *range(10))
        with psycopg.connect(database.url) as holder:
            holder.execute("SELECT FROM numbers WHERE number = %s FOR UPDATE", (locked,))
            # The outbox leaves all of them to the retries, where only one of them fails.
            await OutboxQueue(listeners).run_pass(impatient, organization_id)
            listening.failing = {failing}
            retries = RetryQueue(listeners)
            while await retries.run_pass(impatient, organization_id):
                pass

    run(impatient, work)
    assert query(database, "SELECT number FROM received ORDER BY 1") == [(number,) for number in range(1, 9)]
    assert query(database, "SELECT payload -> 0 -> 'number', attempts > 0 FROM outbox_retries ORDER BY 2") == [
        (locked, False),
        (failing, True),
    ]


def test_a_listener_that_loses_the_connection_leaves_the_others_their_turn(database, organization_id):
    losing, good = HeldUp("SELECT pg_terminate_backend(pg_backend_pid())", mark=1000), Listening()
    listeners = {SaleSeen: {"a": losing, "b": good}}

    async def work():
        losing.failing = good.failing = {1}
        statement, losing.statement = losing.statement, None
        await record(database, organization_id, 1)
        await OutboxQueue(listeners).run_pass(database, organization_id)
        losing.statement, good.failing = statement, set()
        # The loop tries again later what could not be done.
        with pytest.raises(psycopg.OperationalError):
            await retry(database, organization_id, listeners)

    run(database, work)
    assert query(database, "SELECT number FROM received") == [(1,)]
    assert query(database, "SELECT listener, attempts FROM outbox_retries") == [("a", 1)]


@dataclass(frozen=True)
class Letter:
    number: int
    attempts: int


class Letters(RowQueue[Letter]):
    """Finding more rows than `quick_rows` takes too long."""

    name = "letters"
    due = Due(table="letters")
    schedule = Schedule(waits_s=(60.0,))
    batch_rows = 16
    quick_rows = 5

    async def take(self, tx, organization_id, *, limit):
        await tx.execute("SELECT pg_sleep(%s)", (60 if limit > self.quick_rows else 0,))
        return [Letter(*row) for row in await tx.fetch("SELECT number, attempts FROM letters LIMIT %s", (limit,))]

    async def act(self, tx, organization_id, rows):
        await tx.execute("DELETE FROM letters WHERE number = ANY (%s)", ([row.number for row in rows],))

    async def postpone(self, tx, organization_id, row, *, attempts, due_at):
        await tx.execute("UPDATE letters SET attempts = %s WHERE number = %s", (attempts, row.number))


def test_rows_that_take_too_long_to_find_are_fewer_from_turn_to_turn_and_none_fails(database_url, organization_id):
    impatient = Database(database_url, pool_max=4, statement_timeout_ms=400)
    make(impatient, "CREATE TABLE letters AS SELECT generate_series(1, 6) AS number, 0 AS attempts")

    async def work():
        letters = Letters()
        assert await letters.run_pass(impatient, organization_id)
        assert await letters.run_pass(impatient, organization_id)
        assert await letters.run_pass(impatient, organization_id)
        assert query(impatient, "SELECT count(*), max(attempts) FROM letters") == [(2, 0)]
        # A row that cannot even be read in time is not to blame either.
        letters.quick_rows = 0
        while letters._sizes.of(organization_id) > 1:
            assert await letters.run_pass(impatient, organization_id)
        with pytest.raises(QueryCanceled):
            await letters.run_pass(impatient, organization_id)

    run(impatient, work)
    assert query(impatient, "SELECT count(*), max(attempts) FROM letters") == [(2, 0)]
