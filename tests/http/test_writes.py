"""The write engine on a real database: what a batch does when one of its items, a lock or the connection fails."""

import asyncio
from functools import partial

import msgspec
import psycopg
import pytest
from tests.http.workshop import Workshop, is_replay, status
from tests.support.database_fixtures import request
from tests.support.waiting import until

from regulars.http.fast_requests import FastRequests
from regulars.http.in_flight import WAIT_FOR_SAME_KEY_S
from regulars.http.rate_limit import RateLimiter
from regulars.http.reads import Reads
from regulars.http.request import ApiResponse
from regulars.idempotency.model import fingerprint
from regulars.kit.clock import monotonic
from regulars.kit.coalesce import QUEUE_ITEMS_MAX
from regulars.kit.errors import Unavailable
from regulars.stores.model import StoreNotFound

pytestmark = pytest.mark.anyio
RETRY_AFTER = (b"retry-after", b"1")


async def other_connection(workshop) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(workshop.database.url, autocommit=True)


async def divide_by_zero(tx, _write):
    await tx.execute("SELECT 1 / 0")


async def test_a_lone_write_is_answered_after_its_commit(workshop):
    answer = await workshop.call("a")
    assert (answer.status, answer.body) == (201, b'{"made":"a"}')
    assert await workshop.things() == ["a"]


async def test_what_arrives_together_is_one_transaction_in_order_of_arrival(workshop):
    names = [f"n{number:03}" for number in range(100)]
    responses = await workshop.one_batch(*names)
    assert [msgspec.json.decode(answer.body)["made"] for answer in responses] == names
    assert workshop.batches == [["first"], names]


@pytest.mark.parametrize("place", [0, 13, 31])
async def test_only_the_guilty_item_of_a_batch_fails(workshop, place):
    names = [f"n{number:02}" for number in range(32)]
    guilty = names[place]
    workshop.acts[guilty] = divide_by_zero
    responses = await workshop.one_batch(*names)
    assert {name: status(answer) for name, answer in zip(names, responses, strict=True)} == {
        name: 500 if name == guilty else 201 for name in names
    }
    assert await workshop.things() == [name for name in names if name != guilty]
    # Halving: two runs a level below the first, not one transaction for each neighbour.
    assert len(workshop.batches) - 1 == 1 + 2 * 5


async def test_an_item_that_repeats_another_is_the_guilty_one(workshop):
    responses = await workshop.one_batch("a", "b", "a", "c")
    assert sorted(map(status, responses)) == [201, 201, 201, 503]
    assert await workshop.things() == ["a", "b", "c"]


async def test_a_refusal_that_a_use_case_raises_is_the_answer_of_the_guilty_only(workshop):
    async def refuse(_tx, _write):
        raise Unavailable("Not now.")

    workshop.acts["b"] = refuse
    responses = await workshop.one_batch("a", "b", "c")
    assert [status(answer) for answer in responses] == [201, 503, 201]
    assert RETRY_AFTER in responses[1].headers
    assert await workshop.things() == ["a", "c"]


async def test_a_refusal_that_a_use_case_returns_fails_no_other_write(workshop):
    async def refuse(_tx, _write):
        return StoreNotFound("No such store.")

    workshop.acts["b"] = refuse
    responses = await workshop.one_batch("a", "b", "c")
    assert [status(answer) for answer in responses] == [201, 404, 201]
    assert len(workshop.batches) == 2


async def test_a_deadlock_is_tried_again(workshop):
    """The transaction that waits first detects the deadlock and is rolled back: here, the engine's."""
    async with await other_connection(workshop) as other:
        await other.execute("CREATE TABLE locks AS SELECT x FROM generate_series(1, 2) x")
        other_asked: list[asyncio.Task] = []

        async def cross(tx, _write):
            if other_asked:
                await other_asked[0]
            await tx.execute("SET LOCAL deadlock_timeout = '100ms'")
            await tx.fetch("SELECT x FROM locks WHERE x = 1 FOR UPDATE")
            if not other_asked:
                await other.execute("BEGIN")
                await other.execute("SET LOCAL deadlock_timeout = '60s'")
                await other.execute("SELECT x FROM locks WHERE x = 2 FOR UPDATE")
                other_asked.append(
                    asyncio.create_task(other.execute("SELECT x FROM locks WHERE x = 1 FOR UPDATE; COMMIT"))
                )
            await tx.fetch("SELECT x FROM locks WHERE x = 2 FOR UPDATE")

        workshop.acts["b"] = cross
        responses = await workshop.one_batch("a", "b", "c")
    assert [status(answer) for answer in responses] == [201, 201, 201]
    assert workshop.batches == [["first"], ["a", "b", "c"], ["a", "b", "c"]]
    assert await workshop.things() == ["a", "b", "c"]


async def test_a_deadlock_that_never_ends_fails_only_the_write_that_causes_it(workshop):
    async def deadlock(tx, _write):
        await tx.execute("DO $$ BEGIN RAISE deadlock_detected; END $$")

    workshop.acts["b"] = deadlock
    responses = await workshop.one_batch("a", "b")
    assert [status(answer) for answer in responses] == [201, 503]
    assert RETRY_AFTER in responses[1].headers
    assert workshop.batches.count(["a", "b"]) == 3
    assert await workshop.things() == ["a"]


async def test_a_lock_that_is_not_given_refuses_only_who_needs_it(workshop):
    async with await other_connection(workshop) as other:
        await other.execute("CREATE TABLE locks AS SELECT 1 AS x")
        await other.execute("BEGIN")
        await other.execute("SELECT x FROM locks FOR UPDATE")

        async def wait_in_vain(tx, _write):
            await tx.execute("SET LOCAL lock_timeout = '20ms'")
            await tx.fetch("SELECT x FROM locks FOR UPDATE")

        workshop.acts["b"] = wait_in_vain
        responses = await workshop.one_batch("a", "b", "c", "d")
    assert [status(answer) for answer in responses] == [201, 503, 201, 201]
    assert RETRY_AFTER in responses[1].headers
    assert await workshop.things() == ["a", "c", "d"]


async def test_a_lost_connection_refuses_the_whole_batch_and_the_next_one_works(workshop):
    async def lose_the_connection(tx, _write):
        async with await other_connection(workshop) as other:
            await other.execute("SELECT pg_terminate_backend(%s, 5000)", (tx.connection.info.backend_pid,))

    workshop.acts["b"] = lose_the_connection
    responses = await workshop.one_batch("a", "b", "c", keys={"a": "key-a"})
    assert [status(answer) for answer in responses] == [503, 503, 503]
    assert all(RETRY_AFTER in answer.headers for answer in responses)
    assert await workshop.things() == []
    assert await workshop.stored() == {}
    workshop.acts.clear()
    assert [status(answer) for answer in await workshop.one_batch("a", "b", "c")] == [201, 201, 201]
    assert await workshop.things() == ["a", "b", "c"]


async def test_a_full_queue_refuses_at_once_and_then_takes_again(workshop):
    workshop.gate.clear()
    first = workshop.call("first")
    await until(lambda: workshop.batches)
    names = [f"n{number:04}" for number in range(QUEUE_ITEMS_MAX)]
    calls = [workshop.call(name) for name in names]
    await until(lambda: workshop.writes.in_flight.coalescer.waiting_items == QUEUE_ITEMS_MAX)
    refused = await asyncio.gather(workshop.call("late"), workshop.call("late", key="late"))
    assert [type(answer) for answer in refused] == [Unavailable, Unavailable]
    assert all(RETRY_AFTER in answer.headers for answer in refused)
    workshop.gate.set()
    assert {status(answer) for answer in await asyncio.gather(first, *calls)} == {201}
    assert status(await workshop.call("late", key="late")) == 201
    assert max(map(len, workshop.batches)) == 256
    assert await workshop.things() == ["late", *names]


async def test_a_mistake_of_ours_on_the_lane_is_left_to_the_long_way_which_answers(workshop, database, organization_id):
    """Raised on the lane, it would end the connection and leave the caller without a word."""
    workshop = Workshop(database, organization_id, body=str)
    body = b"this is not what the command of these tests is read from"
    asked = request(organization_id, body=body)
    lane = FastRequests(
        [workshop.route],
        cached_caller=lambda _key: asked.caller,
        rate_limiter=RateLimiter(per_s=0, burst=1),
        reads=Reads(database),
        writes=workshop.writes,
    )
    headers = [(b"host", b"h"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    head, key = lane.read_head(b"/v1/things", headers, keep_alive=True)
    assert not lane.take(head, key, body, None)
    with pytest.raises(msgspec.DecodeError):
        await workshop.writes.submit(workshop.route, asked, target=b"", key=None, charge=lambda _: None)


def queue(workshop, asked, *, send=lambda *_: None):
    """Queue a write as the lane does."""
    in_flight = workshop.writes.in_flight
    asked.route, asked.arrived_at, asked.send = workshop.route, monotonic(), send
    in_flight.add(in_flight.find_queue(workshop.route, asked), asked)


async def test_callers_that_wait_for_the_same_key_get_the_answer_also_when_the_first_caller_is_gone(workshop):
    workshop.gate.clear()
    asked = request(workshop.organization_id, body=b'"a"')

    def fail(_asked, _answer):
        raise OSError("gone")

    asked.command, asked.key, asked.fingerprint = "a", "k", fingerprint("POST", b"/v1/things", asked.body)
    queue(workshop, asked, send=fail)
    waiting = workshop.call("a", key="k")
    await until(lambda: workshop.batches)
    workshop.gate.set()
    async with asyncio.timeout(WAIT_FOR_SAME_KEY_S / 2):
        assert is_replay(await waiting)


async def test_the_queue_that_is_asked_for_room_is_the_one_the_write_goes_to(database, organization_id, monkeypatch):
    workshop = Workshop(database, organization_id, parallel_batches=2)
    coalescer, asked_for, gone_to = workshop.writes.in_flight.coalescer, [], []
    has_room, add = coalescer.has_room, coalescer.add

    def ask(queue, *, size):
        asked_for.append(queue)
        return has_room(queue, size=size)

    def go(queue, item, *, size):
        gone_to.append(queue)
        add(queue, item, size=size)

    monkeypatch.setattr(coalescer, "has_room", ask)
    monkeypatch.setattr(coalescer, "add", go)
    workshop.gate.clear()
    for number in range(4):
        asked = request(organization_id, body=b'"a"')
        asked.command = f"thing {number}"
        queue(workshop, asked)
    assert asked_for == gone_to
    assert [chosen[-1] for chosen in asked_for] == [0, 1, 0, 1]
    workshop.gate.set()
    await coalescer.drain()


async def test_the_quick_way_answers_what_it_can_and_the_careful_way_does_the_rest(database, organization_id):
    async with database.reading() as tx:
        await tx.execute("CREATE TABLE things (name text PRIMARY KEY, key text)")
    failures = [psycopg.errors.UniqueViolation(), psycopg.errors.LockNotAvailable(), psycopg.errors.DeadlockDetected()]

    async def run_fast(_organization_id, requests):
        if requests[0].command == "x":
            raise failures.pop()
        return [partial(bytes, b"quick") if asked.command.startswith("q") else None for asked in requests]

    workshop = Workshop(database, organization_id, run_fast=run_fast)
    responses = await workshop.one_batch("q1", "c1", 5, "q2", "c2", keys={"5": "five"})
    assert [answer.status for answer in responses] == [201, 201, 400, 201, 201]
    assert [answer.body for answer in responses if answer.body == b"quick"] == [b"quick"] * 2
    assert await workshop.things() == ["c1", "c2"]
    while failures:
        responses = await workshop.one_batch("x", f"q{len(failures)}")
        assert isinstance(responses[0], ApiResponse)
        assert isinstance(responses[1], ApiResponse)
        assert [answer.status for answer in responses] == [201, 201]
        assert b"quick" not in {answer.body for answer in responses}
        async with database.reading() as tx:
            await tx.execute("DELETE FROM things WHERE name = 'x'")
