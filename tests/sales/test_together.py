"""Sales of several organizations share a transaction, and nothing else: not a fault, not a wait, not an answer."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.sales.conftest import open_shop
from tests.sales.counter import TARGET, Counter, open_counter
from tests.sales.desk import AN_HOUR_AGO, STORE, Desk, write_profile, write_ticket
from tests.sales.traffic import FIRST, Traffic
from tests.support import samples
from tests.support.database import new_database
from tests.support.database_fixtures import request
from tests.support.waiting import until_locked

from regulars.http import in_flight
from regulars.http.route import ApiResponse
from regulars.kit import db_session
from regulars.kit.db import Database
from regulars.kit.errors import ApiError
from regulars.sales import api, statements

pytestmark = pytest.mark.anyio

SHOPS = 4


class Mall:
    """Several organizations at one server."""

    def __init__(self, counter: Counter, shops: list[UUID]) -> None:
        self.counter = counter
        self.shops = shops

    def sell(
        self, shop: int, name: str, *, key: str | None = None, **changes: Any
    ) -> "asyncio.Task[ApiResponse | ApiError]":
        body = samples.json_bytes({**samples.sale(STORE), "external_id": name, "occurred_at": AN_HOUR_AGO, **changes})
        return asyncio.create_task(self._submit(self.shops[shop], body, key))

    async def _submit(self, shop: UUID, body: bytes, key: str | None) -> ApiResponse | ApiError:
        route = self.counter.routes[api.RECORD_SALE]
        asked = request(shop, body=body)
        try:
            return await self.counter.writes.submit(route, asked, target=TARGET, key=key, charge=lambda _: None)
        except ApiError as error:
            return error

    async def rows(self, query: str) -> list[Any]:
        async with self.counter.desk.database.reading() as tx:
            return await tx.fetch(query)  # type: ignore[arg-type]  # each caller passes a literal

    async def tickets(self) -> list[tuple[int, str]]:
        rows = await self.rows("SELECT organization_id, external_id FROM sales_events")
        return sorted((self.shops.index(shop), name) for shop, name in rows)


@pytest.fixture
def database_url(shared_database: tuple[str, str]) -> Iterator[str]:
    """A database of its own, because the tests read the rows of all organizations."""
    url, template = shared_database
    with new_database(url, template=template) as fresh:
        yield fresh


@pytest.fixture
async def mall(database: Database) -> AsyncIterator[Mall]:
    shops = [uuid4() for _ in range(SHOPS)]
    for shop in shops:
        await open_shop(open_counter(database, shop, quick=True))
    counter = open_counter(database, shops[0], quick=True)
    yield Mall(counter, shops)
    await counter.close()


def statuses(answers: list[ApiResponse | ApiError]) -> list[int]:
    return [answer.status for answer in answers]


async def test_they_are_one_transaction_and_each_organization_has_its_own(mall):
    selling = [mall.sell(shop, "A", key="k", profile_id=f"ada-{shop}") for shop in range(SHOPS)]
    selling += [mall.sell(1, f"more-{number}", profile_id="ada-1") for number in range(5)]
    answers = await asyncio.gather(*selling)
    assert statuses(answers) == [201] * len(answers)
    assert mall.counter.sent_quickly == [len(answers)]
    for table in ("sales_events", "profiles", "idempotency_keys", "outbox"):
        [(transactions, organizations)] = await mall.rows(
            f"SELECT count(DISTINCT xmin::text), count(DISTINCT organization_id) FROM {table}"  # noqa: S608  # names of ours
            + (" WHERE topic = 'sales.recorded'" if table == "outbox" else "")
        )
        assert (table, transactions, organizations) == (table, 1, SHOPS)
    names = await mall.rows("SELECT organization_id, external_id FROM profiles")
    assert sorted(names) == sorted((shop, f"ada-{number}") for number, shop in enumerate(mall.shops))


@pytest.mark.parametrize("seed", [1, 2])
async def test_random_traffic_of_several_leaves_and_answers_what_each_would_alone(mall, plain, seed, monkeypatch):
    """All use the same names for tickets, customers and keys."""
    monkeypatch.setattr(in_flight, "DUPLICATES_MIN", 1_000)
    used, insert = [], statements.insert

    async def note(connection: Any, source: statements.Source, *arguments: Any) -> Any:
        used.append(source is statements.SALES_OF_SEVERAL)
        return await insert(connection, source, *arguments)

    monkeypatch.setattr(statements, "insert", note)
    together = [replace(mall.counter, desk=Desk(mall.counter.desk.database, shop)) for shop in mall.shops]
    apart = [open_counter(plain.desk.database, shop, quick=False) for shop in mall.shops]
    for counter in apart:
        await open_shop(counter)
    for counter in (*together, *apart):
        await counter.send([FIRST])
    traffic = [Traffic(10 * seed + number) for number in range(SHOPS)]
    for _ in range(12):
        batches = [one.batch() for one in traffic]
        answers = await asyncio.gather(*(counter.send(some) for counter, some in zip(together, batches, strict=True)))
        for counter, some, answered in zip(apart, batches, answers, strict=True):
            assert await counter.send(some) == answered, f"seed {seed}"
    for one, other in zip(together, apart, strict=True):
        assert await one.left() == await other.left(), f"seed {seed}"
    assert sum(used) > 5


async def test_what_is_known_already_is_answered_beside_what_is_new(mall):
    first = await mall.sell(0, "A", key="k")
    answers = await asyncio.gather(
        mall.sell(0, "A", key="k"), mall.sell(0, "B", key="k"), mall.sell(1, "A"), mall.sell(2, "C", key="k")
    )
    assert statuses(answers) == [201, 409, 201, 201]
    assert isinstance(first, ApiResponse)
    assert answers[0].body == first.body
    # No ticket failed the transaction of the others.
    assert mall.counter.sent_quickly == [1, 2]
    assert await mall.tickets() == [(0, "A"), (1, "A"), (2, "C")]


async def test_one_organization_s_fault_is_not_its_neighbours(mall):
    async with mall.counter.desk.database.transaction() as tx:
        await tx.execute("ALTER TABLE sales_events ADD CHECK (external_id <> 'cursed')")
    answers = await asyncio.gather(*(mall.sell(shop, "cursed" if shop == 2 else "A") for shop in range(SHOPS)))
    assert statuses(answers) == [201, 201, 500, 201]
    assert await mall.tickets() == [(0, "A"), (1, "A"), (3, "A")]
    # From then on it stays apart, and no other organization is run twice because of it.
    mall.counter.sent_quickly.clear()
    answers = await asyncio.gather(*(mall.sell(shop, "cursed" if shop == 2 else "B") for shop in range(SHOPS)))
    assert statuses(answers) == [201, 201, 500, 201]
    assert mall.counter.sent_quickly == [3]


async def test_no_organization_waits_for_a_row_that_another_needs(mall):
    """The other process holds the first one's ticket; those who come after it are answered meanwhile."""
    await mall.sell(0, "warm-up")
    async with await mall.counter.desk.elsewhere() as other:
        await write_ticket(other, mall.shops[0], "A")
        held = mall.sell(0, "A")
        await until_locked(mall.counter.desk.database)
        async with asyncio.timeout(60):
            answers = await asyncio.gather(*(mall.sell(shop, "B") for shop in range(1, SHOPS)))
        assert statuses(answers) == [201] * (SHOPS - 1)
        assert not held.done()
        await other.commit()
    assert (await held).status == 200


async def test_when_the_connection_is_lost_all_get_503_and_nothing_is_half_written(mall):
    await mall.sell(0, "warm-up")
    async with await mall.counter.desk.elsewhere() as other:
        await write_profile(other, max(mall.shops), "held")
        selling = [mall.sell(shop, "A", profile_id="held") for shop in range(SHOPS)]
        [waiting] = await until_locked(mall.counter.desk.database)
        async with await psycopg.AsyncConnection.connect(mall.counter.desk.database.url, autocommit=True) as killer:
            await killer.execute("SELECT pg_terminate_backend(%s)", (waiting,))
        answers = await asyncio.gather(*selling)
        await other.rollback()
    assert statuses(answers) == [503] * SHOPS
    assert await mall.tickets() == [(0, "warm-up")]
    answers = await asyncio.gather(*(mall.sell(shop, "A", profile_id="held") for shop in range(SHOPS)))
    assert statuses(answers) == [201] * SHOPS


async def test_only_the_one_that_takes_too_long_gets_503_and_it_stays_apart(mall):
    await mall.sell(0, "warm-up")
    slow = mall.shops.index(max(mall.shops))
    async with await mall.counter.desk.elsewhere() as other:
        await write_profile(other, mall.shops[slow], "held")
        selling = [mall.sell(shop, "A", profile_id="held") for shop in range(SHOPS)]
        await _cancel_locked_statement(mall)
        await asyncio.gather(*(sale for shop, sale in enumerate(selling) if shop != slow))
        await _cancel_locked_statement(mall)
        answers = await asyncio.gather(*selling)
        await other.rollback()
    assert statuses(answers) == [503 if shop == slow else 201 for shop in range(SHOPS)]
    mall.counter.sent_quickly.clear()
    answers = await asyncio.gather(*(mall.sell(shop, "B") for shop in range(SHOPS)))
    assert statuses(answers) == [201] * SHOPS
    assert sorted(mall.counter.sent_quickly) == [1, SHOPS - 1]


async def test_one_that_takes_too_long_by_itself_stays_apart_too(mall):
    await mall.sell(0, "warm-up")
    async with await mall.counter.desk.elsewhere() as other:
        await other.execute("LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE")
        selling = mall.sell(1, "A")
        await _cancel_locked_statement(mall)
        assert (await selling).status == 503
        await other.rollback()
    mall.counter.sent_quickly.clear()
    answers = await asyncio.gather(*(mall.sell(shop, "B") for shop in range(SHOPS)))
    assert statuses(answers) == [201] * SHOPS
    assert sorted(mall.counter.sent_quickly) == [1, SHOPS - 1]


async def test_all_have_an_answer_when_their_time_is_over(mall, monkeypatch):
    await mall.sell(0, "warm-up")
    with monkeypatch.context() as limits:
        limits.setattr(in_flight, "REQUEST_S", 0.5)
        limits.setattr(in_flight, "CHECK_LATE_EVERY_S", 0.05)
        async with await mall.counter.desk.elsewhere() as other:
            await other.execute("LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE")
            answers = await asyncio.gather(*(mall.sell(shop, "A") for shop in range(SHOPS)))
            assert statuses(answers) == [503] * SHOPS
            await other.rollback()
        # Their transaction went on, and the retry meets what it left.
        await mall.counter.writes.in_flight.coalescer.drain()
    answers = await asyncio.gather(*(mall.sell(shop, "A") for shop in range(SHOPS)))
    assert set(statuses(answers)) <= {200, 201}
    assert await mall.tickets() == sorted([(0, "warm-up"), *((shop, "A") for shop in range(SHOPS))])


async def test_on_a_cluster_each_organization_has_a_transaction_of_its_own(mall, monkeypatch):
    monkeypatch.setattr(db_session, "PLANNED_ON_A_CLUSTER", "force_generic_plan")
    # Also for the first batch, before the database is known to be a cluster.
    answers = await asyncio.gather(*(mall.sell(shop, "A") for shop in range(SHOPS)))
    assert statuses(answers) == [201] * SHOPS
    assert mall.counter.desk.database.is_cluster
    assert await mall.rows("SELECT count(DISTINCT xmin::text) FROM sales_events") == [(SHOPS,)]


async def _cancel_locked_statement(mall: Mall) -> None:
    [process] = await until_locked(mall.counter.desk.database)
    await mall.rows(f"SELECT pg_cancel_backend({process})")
