"""Look-ups on a real database: what shares a statement, what it sees, and who pays when something fails."""

import asyncio

import msgspec
import pytest
from tests.support.database_fixtures import request
from tests.support.waiting import until

from regulars.http import reads as engine
from regulars.http.reads import Reads
from regulars.http.request import ApiResponse
from regulars.http.route import LookUpRoute
from regulars.kit.coalesce import QUEUE_ITEMS_MAX
from regulars.stores.model import StoreNotFound

pytestmark = pytest.mark.anyio


class Shelf:
    """Things that are looked up by name; a look-up waits at the gate before its statement is sent."""

    def __init__(self, database, organization_id):
        self.database = database
        self.organization_id = organization_id
        self.batches = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.reads = Reads(database)
        self.route = LookUpRoute(
            path="/v1/things/{thing_id}", operation_id="getThing", tag="", summary="", responses={}, find=self._find
        )

    async def _find(self, tx, _organization_id, requests):
        names = [asked.references[0] for asked in requests]
        self.batches.append(names)
        await self.gate.wait()
        rows = await tx.fetch("SELECT name, 1 / size FROM things WHERE name = ANY (%s::text[])", (names,))
        found = dict(rows)
        return [
            ApiResponse(200, msgspec.json.encode(found[name])) if name in found else StoreNotFound("No such thing.")
            for name in names
        ]

    async def put(self, *things):
        async with self.database.transaction() as tx:
            for name, size in things:
                await tx.execute("INSERT INTO things VALUES (%s, %s)", (name, size))

    def call(self, name):
        return asyncio.create_task(self.reads.respond(self.route, request(self.organization_id, references=(name,))))


@pytest.fixture
async def shelf(database, organization_id):
    async with database.transaction() as tx:
        await tx.execute("CREATE TABLE things (name text PRIMARY KEY, size integer NOT NULL)")
    made = Shelf(database, organization_id)
    await made.put(("one", 1), ("two", 1))
    yield made
    made.gate.set()


async def test_what_arrives_while_a_statement_is_on_its_way_shares_the_next_one(shelf):
    shelf.gate.clear()
    first = shelf.call("one")
    await until(lambda: shelf.batches == [["one"]])
    others = [shelf.call(name) for name in ("two", "none", "one")]
    await asyncio.sleep(0)
    shelf.gate.set()
    assert (await first).status == 200
    assert [answer.status for answer in await asyncio.gather(*others)] == [200, 404, 200]
    assert shelf.batches == [["one"], ["two", "none", "one"]]


async def test_it_sees_what_was_committed_before_it_came_also_behind_a_statement_that_is_slow(shelf):
    shelf.gate.clear()
    first = shelf.call("one")
    await until(lambda: shelf.batches == [["one"]])
    await shelf.put(("three", 1))
    later = shelf.call("three")
    shelf.gate.set()
    assert (await first).status == 200
    assert (await later).status == 200


async def test_one_that_breaks_the_statement_fails_alone(shelf):
    await shelf.put(("nothing", 0))
    shelf.gate.clear()
    first = shelf.call("one")
    await until(lambda: shelf.batches == [["one"]])
    others = [shelf.call(name) for name in ("two", "nothing", "none")]
    await asyncio.sleep(0)
    shelf.gate.set()
    await first
    assert [answer.status for answer in await asyncio.gather(*others)] == [200, 500, 404]


async def test_one_that_the_database_does_not_answer_is_refused_in_time(shelf, monkeypatch):
    assert (await shelf.call("one")).status == 200  # dials the connection, which may take longer than the limit below
    monkeypatch.setattr(engine, "REQUEST_S", 0.5)
    shelf.gate.clear()
    first = shelf.call("one")
    await until(lambda: shelf.batches == [["one"], ["one"]])
    second = shelf.call("two")
    responses = await asyncio.wait_for(asyncio.gather(first, second), 30)
    assert [answer.status for answer in responses] == [503, 503]
    shelf.gate.set()
    monkeypatch.undo()
    assert (await shelf.call("one")).status == 200


async def test_the_queue_has_a_bound(shelf):
    shelf.gate.clear()
    first = shelf.call("one")
    await until(lambda: shelf.batches == [["one"]])
    others = [shelf.call("two") for _ in range(QUEUE_ITEMS_MAX + 1)]
    await asyncio.sleep(0)
    assert not shelf.reads.can_look_up(shelf.route, request(shelf.organization_id, references=("one",)))
    shelf.gate.set()
    await first
    answered = [answer.status for answer in await asyncio.gather(*others)]
    assert answered == [200] * QUEUE_ITEMS_MAX + [503]


async def test_a_connection_that_is_lost_answers_503_and_the_next_one_is_dialled(shelf):
    assert (await shelf.call("one")).status == 200
    async with shelf.database.transaction() as tx:
        await tx.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    responses = [await shelf.call("one") for _ in range(3)]
    assert responses[-1].status == 200
