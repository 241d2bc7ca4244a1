import asyncio
import contextlib
from datetime import timedelta

from tests.support.drain_queues import drain
from tests.work.outbox_desk import (
    Listening,
    SaleSeen,
    StoreOpened,
    Whispered,
    database,
    query,
    record,
    retry,
    run,
)

from regulars.kit.ids import new_uuid
from regulars.work import outbox
from regulars.work.outbox import RETRIES, OutboxQueue, register_interest, withdraw_interest
from regulars.work.retries import RetryQueue

__all__ = ["database"]

ATTEMPTS_MAX = len(RETRIES.waits_s) + 1


def test_listeners_that_hold_a_lock_until_the_commit_are_called_last_of_all_kinds(database, organization_id):
    received = []

    def listener(name):
        async def listen(tx, organization_id, facts):
            received.append(name)

        return listen

    listeners = {
        SaleSeen: {"holder.sales": listener("holder.sales"), "other.sales": listener("other.sales")},
        StoreOpened: {"holder.stores": listener("holder.stores"), "other.stores": listener("other.stores")},
    }

    async def work():
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [SaleSeen(number=1), StoreOpened(name="Ré")])
        queue = OutboxQueue(listeners, last={"holder.sales", "holder.stores"})
        assert not await queue.run_pass(database, organization_id)

    run(database, work)
    assert sorted(received[:2]) == ["other.sales", "other.stores"]
    assert sorted(received[2:]) == ["holder.sales", "holder.stores"]
    assert query(database, "SELECT 1 FROM outbox") == []


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
    woken = []

    async def work():
        database.after_commit = lambda queue, organization: woken.append((queue, organization))
        with contextlib.suppress(RuntimeError):
            async with database.transaction() as tx:
                await outbox.record(tx, organization_id, [SaleSeen(number=1)])
                raise RuntimeError

    run(database, work)
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]
    assert woken == []


def test_recording_a_fact_wakes_the_worker_once_it_is_committed(database, organization_id):
    woken = []

    async def work():
        database.after_commit = lambda queue, organization: woken.append((queue, organization))
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [SaleSeen(number=1)])
            await outbox.record(tx, organization_id, [SaleSeen(number=2)])
            assert woken == []
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [Whispered(word="nobody waits for it")])

    run(database, work)
    assert woken == [("outbox", organization_id)]


def test_no_facts_write_no_row(database, organization_id):
    async def work():
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [])

    run(database, work)
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_fact_that_needs_interest_is_recorded_only_while_interest_is_registered(database, organization_id):
    other = new_uuid()

    async def whisper(word):
        async with database.transaction() as tx:
            await outbox.record(tx, organization_id, [Whispered(word=word)])

    async def work():
        async with database.transaction() as tx:
            await register_interest(tx, other, Whispered, needed_by="another organization")
        await whisper("too early")
        async with database.transaction() as tx:
            await register_interest(tx, organization_id, Whispered, needed_by="first")
            await register_interest(tx, organization_id, Whispered, needed_by="first")
            await register_interest(tx, organization_id, Whispered, needed_by="second")
        await whisper("for two")
        async with database.transaction() as tx:
            await withdraw_interest(tx, organization_id, Whispered, needed_by="first")
        await whisper("for one")
        async with database.transaction() as tx:
            await withdraw_interest(tx, organization_id, Whispered, needed_by="second")
        await whisper("too late")

    run(database, work)
    words = [payload[0]["word"] for (payload,) in query(database, "SELECT payload FROM outbox ORDER BY id")]
    assert words == ["for two", "for one"]


def test_another_organization_is_left_alone(database, organization_id):
    listening = Listening()
    other = new_uuid()

    async def work():
        await record(database, other, 1)
        return await drain(database, organization_id, {SaleSeen: {"a": listening}})

    assert run(database, work) == 0
    assert listening.received == []
    assert query(database, "SELECT organization_id FROM outbox") == [(other,)]


def test_an_unknown_topic_waits_for_the_release_that_knows_it(database, organization_id):
    async def work():
        await record(database, organization_id, 1)
        return await drain(database, organization_id, {StoreOpened: {}})

    assert run(database, work) == 0
    assert query(database, "SELECT attempts, not_before FROM outbox") == [(0, None)]


def test_a_row_of_the_release_before_waits_for_its_time_and_is_then_taken(database, organization_id):
    listening = Listening()
    insert = (
        "INSERT INTO outbox (organization_id, id, topic, payload, created_at, not_before)"
        " VALUES (%s, %s, 'test.sale_seen', '[{\"number\": 7}]', now(), now() + %s) RETURNING 1"
    )

    async def work():
        query(database, insert, organization_id, new_uuid(), timedelta(hours=1))
        assert await drain(database, organization_id, {SaleSeen: {"a": listening}}) == 0
        query(database, insert, organization_id, new_uuid(), None)
        assert await drain(database, organization_id, {SaleSeen: {"a": listening}}) == 1

    run(database, work)
    assert listening.received == [7]


def test_a_failing_row_loses_only_its_own_writes_and_waits(database, organization_id):
    listening = Listening()
    listening.failing = {2}

    async def work():
        await record(database, organization_id, 1, 2, 3)
        [(before,)] = query(database, "SELECT date_trunc('milliseconds', now())")
        handed_over = await drain(database, organization_id, {SaleSeen: {"a": listening}})
        [(after,)] = query(database, "SELECT now()")
        return handed_over, before, after

    handed_over, before, after = run(database, work)
    assert handed_over == 2
    assert query(database, "SELECT number FROM received ORDER BY 1") == [(1,), (3,)]
    ((listener, attempts, due_at),) = query(database, "SELECT listener, attempts, due_at FROM outbox_retries")
    assert (listener, attempts) == ("a", 1)
    assert before <= due_at - timedelta(seconds=RETRIES.waits_s[0]) <= after
    assert query(database, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_guilty_row_is_found_by_bisection(database, organization_id):
    listening = Listening()
    listening.failing = {77}

    async def work():
        await record(database, organization_id, *range(128))
        return await drain(database, organization_id, {SaleSeen: {"a": listening}})

    assert run(database, work) == 127
    # The whole, then the whole alone in its savepoint, then two parts for each of seven levels.
    assert len(listening.calls) == 2 + 2 * 7


def test_listeners_of_one_fact_do_not_suffer_from_each_other(database, organization_id):
    good, bad = Listening(), Listening(mark=100)
    bad.failing = {2}
    listeners = {SaleSeen: {"bad": bad, "good": good}}

    async def work():
        await record(database, organization_id, 1, 2, 3)
        await drain(database, organization_id, listeners)
        assert query(database, "SELECT number FROM received ORDER BY 1") == [(1,), (2,), (3,), (101,), (103,)]
        bad.failing = set()
        await retry(database, organization_id, listeners)

    run(database, work)
    # Only the listener that failed was called again.
    assert query(database, "SELECT number FROM received ORDER BY 1") == [(1,), (2,), (3,), (101,), (102,), (103,)]
    assert query(database, "SELECT count(*) FROM outbox_retries") == [(0,)]


def test_a_waiting_row_is_not_tried_before_its_time(database, organization_id):
    listening = Listening()
    listening.failing = {1}

    async def work():
        await record(database, organization_id, 1)
        await drain(database, organization_id, {SaleSeen: {"a": listening}})
        listening.failing = set()
        query(database, "UPDATE outbox_retries SET due_at = now() + interval '1 hour' RETURNING 1")
        await RetryQueue({SaleSeen: {"a": listening}}).run_pass(database, organization_id)
        assert listening.received == []
        await retry(database, organization_id, {SaleSeen: {"a": listening}})

    run(database, work)
    assert listening.received == [1]


def test_a_poisonous_row_is_parked_and_blocks_no_other(database, organization_id):
    listening = Listening()
    listening.failing = {1}
    listeners = {SaleSeen: {"a": listening}}

    async def work():
        await record(database, organization_id, 1)
        await drain(database, organization_id, listeners)
        for _ in range(ATTEMPTS_MAX + 2):
            await retry(database, organization_id, listeners)
        await record(database, organization_id, 2)
        await drain(database, organization_id, listeners)

    run(database, work)
    assert listening.received == [2]
    assert query(database, "SELECT attempts, due_at FROM outbox_retries") == [(ATTEMPTS_MAX, None)]


def test_a_payload_that_does_not_decode_waits_like_any_failure(database, organization_id):
    listening = Listening()

    async def work():
        await record(database, organization_id, 1)
        query(database, """UPDATE outbox SET payload = '[{"number": "x"}]' RETURNING 1""")
        return await drain(database, organization_id, {SaleSeen: {"a": listening}})

    assert run(database, work) == 0
    assert query(database, "SELECT attempts FROM outbox_retries") == [(1,)]


def test_what_waits_for_a_listener_that_is_gone_is_dropped_after_an_hour(database, organization_id):
    listening = Listening()
    listening.failing = {1}

    async def work():
        await record(database, organization_id, 1)
        await drain(database, organization_id, {SaleSeen: {"old name": listening}})
        # It may be a name of the next release, which is just starting.
        await RetryQueue({SaleSeen: {"new name": listening}}).run_pass(database, organization_id)
        assert query(database, "SELECT listener FROM outbox_retries") == [("old name",)]
        query(database, "UPDATE outbox_retries SET due_at = now() - interval '61 minutes' RETURNING 1")
        await RetryQueue({SaleSeen: {"new name": listening}}).run_pass(database, organization_id)

    run(database, work)
    assert query(database, "SELECT listener FROM outbox_retries") == []
    assert listening.received == []


def test_drains_at_the_same_time_hand_over_each_fact_once(database, organization_id):
    listening = Listening()
    numbers = list(range(120))

    async def work():
        await record(database, organization_id, *numbers)
        await asyncio.gather(*[drain(database, organization_id, {SaleSeen: {"a": listening}}) for _ in range(4)])

    run(database, work)
    assert sorted(listening.received) == numbers
    assert query(database, "SELECT count(*), count(DISTINCT number) FROM received") == [(120, 120)]
