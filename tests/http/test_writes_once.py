"""Idempotency keys in the write engine: waiting, replaying, conflicting, expiring, and racing with another process."""

import asyncio
import contextlib
from datetime import timedelta

import psycopg
import pytest
from tests.http.workshop import Workshop, is_replay, status
from tests.support.waiting import until

from regulars.http import in_flight
from regulars.http import writes as engine
from regulars.idempotency.errors import IdempotencyConflict, IdempotencyInProgress
from regulars.idempotency.model import fingerprint
from regulars.kit.db import Database
from regulars.kit.errors import Unavailable
from regulars.stores.model import StoreNotFound

pytestmark = pytest.mark.anyio
TARGET = b"/v1/things"


async def plant(workshop, key: str, body: bytes, *, age: timedelta = timedelta(), answer: bytes = b"planted") -> None:
    """Store an answer as another process would have, on a connection of its own."""
    async with await psycopg.AsyncConnection.connect(workshop.database.url, autocommit=True) as other:
        await other.execute(
            "INSERT INTO idempotency_keys VALUES (%s, %s, %s, 201, %s, date_trunc('milliseconds', now()) - %s)",
            (workshop.organization_id, key, fingerprint("POST", TARGET, body), answer, age),
        )


async def test_a_second_request_is_answered_with_the_bytes_of_the_first(workshop):
    first = await workshop.call("a", key="k")
    second = await workshop.call("a", key="k")
    assert (first.status, first.body, is_replay(first)) == (201, b'{"made":"a"}', False)
    assert (second.status, second.body, is_replay(second)) == (201, first.body, True)
    assert await workshop.things() == ["a"]
    assert await workshop.stored() == {"k": 201}


async def test_the_same_key_in_flight_waits_and_replays_without_a_batch_of_its_own(workshop):
    workshop.gate.clear()
    calls = [workshop.call("a", key="k") for _ in range(50)]
    other = workshop.call("b", key="k")
    await until(lambda: workshop.batches)
    first = workshop.writes.in_flight._keys[workshop.organization_id, "k"]
    # All others wait for its outcome.
    await until(lambda: first.completed and len(first.completed._waiters) == len(calls))
    assert not any(call.done() for call in calls)
    assert workshop.writes.in_flight.coalescer.waiting_items == 0
    workshop.gate.set()
    responses = await asyncio.gather(*calls)
    assert {(answer.status, answer.body) for answer in responses} == {(201, b'{"made":"a"}')}
    assert [is_replay(answer) for answer in responses].count(False) == 1
    assert isinstance(await other, IdempotencyConflict)
    assert workshop.batches == [["a"]]
    assert not workshop.writes.in_flight.has_key(workshop.organization_id, "k")


async def test_waiting_for_the_first_request_has_an_end(workshop, monkeypatch):
    monkeypatch.setattr(in_flight, "WAIT_FOR_SAME_KEY_S", 0.05)
    workshop.gate.clear()
    first = workshop.call("a", key="k")
    await until(lambda: workshop.batches)
    refused = await workshop.call("a", key="k")
    assert isinstance(refused, IdempotencyInProgress)
    assert (b"retry-after", b"1") in refused.headers
    workshop.gate.set()
    assert status(await first) == 201
    assert is_replay(await workshop.call("a", key="k"))


async def test_a_first_request_without_a_decision_lets_one_waiter_run(workshop):
    decisions = [Unavailable("Not now.")]

    async def fail_once(_tx, _write):
        return decisions.pop() if decisions else None

    workshop.acts["a"] = fail_once
    workshop.gate.clear()
    calls = [workshop.call("a", key="k") for _ in range(20)]
    await until(lambda: workshop.batches)
    workshop.gate.set()
    responses = await asyncio.gather(*calls)
    assert sorted((answer.status, is_replay(answer)) for answer in responses) == [
        (201, False),
        *[(201, True)] * 18,
        (503, False),
    ]
    assert workshop.batches == [["a"], ["a"]]
    assert await workshop.stored() == {"k": 201}


@pytest.mark.parametrize(("name", "target"), [("b", TARGET), ("a", b"/v1/things?x=1"), (5, TARGET)])
async def test_a_key_used_for_another_request_is_a_conflict_and_runs_nothing(workshop, name, target):
    await workshop.call("a", key="k")
    answer = await workshop.call(name, key="k", target=target)
    assert (status(answer), is_replay(answer)) == (409, False)
    assert b"IDEMPOTENCY_CONFLICT" in answer.body
    assert workshop.batches == [["a"]]
    assert await workshop.stored() == {"k": 201}


async def test_refusals_of_the_operation_are_stored_and_say_so(workshop):
    async def refuse(_tx, _write):
        return StoreNotFound("No such store.")

    workshop.acts["a"] = refuse
    for name, expected in (("a", 404), (5, 400)):
        first, second = [await workshop.call(name, key=str(expected)) for _ in range(2)]
        assert status(first) == status(second) == expected
        assert first.body == second.body
        assert b"kept for its Idempotency-Key" in first.body
        assert (is_replay(first), is_replay(second)) == (False, True)
    assert await workshop.stored() == {"404": 404, "400": 400}
    assert workshop.batches == [["a"]]


async def test_known_and_new_keys_share_a_batch_with_writes_that_have_none(workshop):
    await workshop.call("a", key="ka")
    await plant(workshop, "kb", b'"other"')
    responses = await workshop.one_batch("a", "b", "c", "d", keys={"a": "ka", "b": "kb", "c": "kc"})
    assert [(status(answer), is_replay(answer)) for answer in responses] == [
        (201, True),
        (409, False),
        (201, False),
        (201, False),
    ]
    assert await workshop.things() == ["a", "c", "d"]
    assert set(await workshop.stored()) == {"ka", "kb", "kc"}


async def test_an_answer_expires_exactly_24_hours_after_the_first_call_swept_or_not(workshop):
    day = timedelta(hours=24)
    await plant(workshop, "old", b'"a"', age=day)
    await plant(workshop, "young", b'"b"', age=day - timedelta(minutes=1))
    fresh, replayed = await workshop.call("a", key="old"), await workshop.call("b", key="young")
    assert (fresh.body, is_replay(fresh)) == (b'{"made":"a"}', False)
    assert (replayed.body, is_replay(replayed)) == (b"planted", True)
    again = await workshop.call("a", key="old")
    assert (again.body, is_replay(again)) == (fresh.body, True)
    assert await workshop.things() == ["a"]


async def test_an_expired_key_is_free_for_another_request(workshop):
    await plant(workshop, "old", b'"other"', age=timedelta(hours=25))
    assert status(await workshop.call("a", key="old")) == 201
    assert status(await workshop.call("other", key="old")) == 409


@pytest.mark.parametrize(("body", "expected"), [(b'"b"', (201, b"planted", True)), (b'"another"', (409, None, False))])
async def test_a_key_that_another_process_stores_meanwhile_takes_the_write_back(workshop, body, expected):
    """It is stored after this batch looked for it and before the batch stores its own."""
    raced = []

    async def be_overtaken(_tx, _write):
        if not raced:
            raced.append(True)
            await plant(workshop, "k", body)

    workshop.acts["b"] = be_overtaken
    responses = await workshop.one_batch("a", "b", "c", keys={"a": "ka", "b": "k"})
    assert [status(answer) for answer in responses] == [201, expected[0], 201]
    assert is_replay(responses[1]) == expected[2]
    if expected[1] is not None:
        assert responses[1].body == expected[1]
    assert workshop.batches == [["first"], ["a", "b", "c"], ["a", "c"]]
    assert await workshop.things() == ["a", "c"]
    assert set(await workshop.stored()) == {"k", "ka"}


async def test_two_processes_with_one_key_run_it_once(workshop, database, organization_id):
    """Both look, both run; the one that stores second waits for the first, is taken back and replays."""
    other = Workshop(database, organization_id)
    both_ran = asyncio.Barrier(2)

    runs = []

    async def meet(_tx, _write):
        runs.append(True)
        if len(runs) <= 2:
            await both_ran.wait()

    workshop.acts["a"] = other.acts["a"] = meet
    async with database.reading() as tx:
        # The key decides here, not the thing itself.
        await tx.execute("ALTER TABLE things DROP CONSTRAINT things_pkey")
    async with asyncio.timeout(20):
        one, two = await asyncio.gather(workshop.call("a", key="k"), other.call("a", key="k"))
    assert (one.status, one.body) == (two.status, two.body) == (201, b'{"made":"a"}')
    assert sorted([is_replay(one), is_replay(two)]) == [False, True]
    assert await workshop.things() == ["a"]


async def test_an_answer_whose_person_was_erased_is_not_found_and_runs_nothing(workshop):
    await workshop.call("a", key="k")
    async with workshop.database.reading() as tx:
        await tx.execute("UPDATE idempotency_keys SET body = NULL")
    answer = await workshop.call("a", key="k")
    assert (status(answer), is_replay(answer)) == (404, True)
    assert b"PROFILE_NOT_FOUND" in answer.body
    assert workshop.batches == [["a"]]


@contextlib.asynccontextmanager
async def held_elsewhere(workshop, key: str, body: bytes):
    """Another process that has written the key and has not committed yet; commits at the end of the block."""
    async with await psycopg.AsyncConnection.connect(workshop.database.url) as other:
        await other.execute(
            "INSERT INTO idempotency_keys VALUES (%s, %s, %s, 201, 'theirs', date_trunc('milliseconds', now()))",
            (workshop.organization_id, key, fingerprint("POST", TARGET, body)),
        )
        yield
        await other.commit()


@pytest.fixture
async def impatient(workshop, database_url, organization_id):
    """The same engine with a lock timeout that is shorter than that of other tests, as a real server has."""
    database = Database(database_url, lock_timeout_ms=100)
    await database.open()
    yield Workshop(database, organization_id)
    await database.close()


class Asked(list[float]):
    """When a key that another process holds was requested again, by a clock of the test's own."""

    now = 5000.0


@pytest.fixture
def asked_at(monkeypatch):
    asked_at = Asked()
    ask_again = in_flight.InFlight._add_again_now

    def count(*arguments):
        asked_at.append(asked_at.now)
        ask_again(*arguments)

    for module in (engine, in_flight):
        monkeypatch.setattr(module, "monotonic", lambda: asked_at.now)
    monkeypatch.setattr(in_flight.InFlight, "_add_again_now", count)
    return asked_at


async def test_a_key_in_flight_in_another_process_is_waited_for_and_replayed(impatient, asked_at):
    workshop = impatient
    async with held_elsewhere(workshop, "k", b'"a"'):
        waiting = workshop.call("a", key="k")
        neighbour = workshop.call("b")
        assert status(await neighbour) == 201
        await until(lambda: asked_at)
        assert not waiting.done()
    answer = await waiting
    assert (answer.body, is_replay(answer)) == (b"theirs", True)
    assert await workshop.things() == ["b"]
    assert not workshop.writes.in_flight.has_key(workshop.organization_id, "k")


async def test_waiting_for_another_process_ends_after_eight_seconds_and_not_before(impatient, asked_at):
    workshop = impatient
    async with held_elsewhere(workshop, "k", b'"a"'):
        waiting = workshop.call("a", key="k")
        await until(lambda: asked_at)
        asked_at.now += 7.5
        # The second was added after the first was tried at this time, and refused no caller.
        await until(lambda: asked_at.count(asked_at.now) == 2)
        assert not waiting.done()
        asked_at.now += 0.5
        answer = await waiting
        assert (status(answer), b"IDEMPOTENCY_IN_PROGRESS" in answer.body) == (409, True)
        assert (b"retry-after", b"1") in answer.headers
    assert is_replay(await workshop.call("a", key="k"))
    assert await workshop.things() == []
