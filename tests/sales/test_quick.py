"""The one-statement path and the path of several statements are one: same answers, same rows, whatever is sent."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import psycopg
import pytest
from tests.sales.counter import TARGET, Counter, SaleRequest, open_counter
from tests.sales.desk import AN_HOUR_AGO, STORE, database_time, write_profile, write_ticket
from tests.sales.traffic import FIRST, Traffic
from tests.support import samples
from tests.support.drain_queues import drain
from tests.support.waiting import until, until_locked

from regulars.http import in_flight
from regulars.idempotency.model import fingerprint
from regulars.kit import db_session
from regulars.kit.clock import monotonic
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE as PROFILE_ID
from regulars.kit.ids import new_uuid
from regulars.sales import statements
from regulars.sales.fast_path import FastRecorder
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["one organization", "several"])
def is_shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether sales are recorded by the form of the statement for several organizations, even if they are of one."""
    if request.param:
        insert = FastRecorder._insert

        async def insert_shared(self: FastRecorder, connection: Any, new: Any, **_: Any) -> Any:
            return await insert(self, connection, new, is_shared=True)

        monkeypatch.setattr(FastRecorder, "_insert", insert_shared)
    return request.param


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_traffic_has_the_same_answers_and_leaves_the_same_rows_on_both_paths(
    quick, plain, seed, is_shared, monkeypatch
):
    # However much of it comes again, the quick way is tried.
    monkeypatch.setattr(in_flight, "DUPLICATES_MIN", 1_000)
    traffic = Traffic(seed)
    for counter in (quick, plain):
        await counter.send([FIRST])
    for number in range(20):
        batch = traffic.batch()
        # A lone sale has a form of the statement to itself.
        for some in [[one] for one in batch] if number % 4 == 0 else [batch]:
            assert await quick.send(some) == await plain.send(some), f"seed {seed}, batch {some}"
    assert await quick.left() == await plain.left(), f"seed {seed}"
    assert sum(quick.sent_quickly) > 20
    assert sum(quick.sent_quickly) < len(traffic.sent)


def sale_request(external_id: str, *, key: str | None = None, **changes: Any) -> SaleRequest:
    return SaleRequest({**samples.sale(STORE), "external_id": external_id, **changes}, key)


async def elsewhere(quick: Counter, statement: str, *parameters: Any) -> None:
    async with await psycopg.AsyncConnection.connect(quick.desk.database.url, autocommit=True) as other:
        await other.execute(statement, parameters)  # type: ignore[arg-type]  # each caller passes a literal


async def test_only_a_sale_that_was_recorded_wakes_the_worker(quick, plain):
    for counter in (quick, plain):
        woken: list[Any] = []
        counter.desk.database.after_commit = lambda *touched, woken=woken: woken.append(touched)
        await counter.send([sale_request("A"), sale_request("B", occurred_at="2999-01-01T00:00:00Z")])
        assert woken == [("outbox", counter.desk.organization_id)]
        woken.clear()
        answers = await counter.send(
            [sale_request("A"), sale_request("A", key="k"), sale_request("B", occurred_at="2999-01-01T00:00:00Z")]
        )
        assert [answer["status"] for answer in answers] == [200, 200, 400]
        assert woken == []


PROFILE = "INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at) VALUES (%s, %s, 'ada', now(), now())"


async def test_a_customer_created_meanwhile_by_another_process_is_the_one_the_sale_names(quick):
    """Ours waits for the other's uncommitted profile; the other commits, and the careful path finds it.

    The sale without a new customer was committed by a statement before that, and its response is the quick path's.
    """
    await quick.send([sale_request("warm-up")])
    async with await quick.desk.elsewhere() as other:
        identifier = await write_profile(other, quick.desk.organization_id, "ada")
        sending = asyncio.create_task(
            quick.send(
                [sale_request("A", profile_id="ada", key="k"), sale_request("B"), sale_request("C", profile_id="eve")]
            )
        )
        await until_locked(quick.desk.database)
        assert not sending.done()
        await other.commit()
    answers = await sending
    assert [answer["status"] for answer in answers] == [201, 201, 201]
    assert await profile_of(quick, "A") == identifier
    assert await quick.desk.rows("SELECT id FROM profiles WHERE organization_id = %s AND external_id = 'ada'") == [
        (identifier,)
    ]
    left = await quick.left()
    assert left["published"] == ["A", "B", "C", "warm-up"]
    assert [key for key, _, _ in left["keys"]] == ["k"]
    assert quick.sent_quickly == [1, 1]


async def test_where_everything_comes_again_the_quick_way_is_not_tried_for_a_while(quick, monkeypatch):
    monkeypatch.setattr(in_flight, "DUPLICATES_MIN", 5)
    monkeypatch.setattr(in_flight, "SKIPPED_S", 3600.0)
    tickets = [sale_request(f"T{number}", occurred_at=AN_HOUR_AGO) for number in range(5)]
    assert {answer["status"] for answer in await quick.send(tickets)} == {201}
    assert {answer["status"] for answer in await quick.send(tickets)} == {200}
    assert quick.sent_quickly == [5, 0]
    answers = await quick.send([*tickets, sale_request("new")])
    assert [answer["status"] for answer in answers] == [200] * 5 + [201]
    assert quick.sent_quickly == [5, 0]


async def profile_of(quick: Counter, ticket: str) -> Any:
    query = "SELECT external_id, profile_id FROM sales_events WHERE organization_id = %s"
    return dict(await quick.desk.rows(query))[ticket]


async def test_a_customer_committed_just_before_the_statement_is_found_by_it(quick, monkeypatch, is_shared):
    """The answer that is kept for the key names the customer whom the statement found, to the byte."""
    identifier = new_uuid()
    insert = statements.insert

    async def be_overtaken(*arguments: Any, **options: Any) -> Any:
        await elsewhere(quick, PROFILE + " ON CONFLICT DO NOTHING", quick.desk.organization_id, identifier)
        return await insert(*arguments, **options)

    monkeypatch.setattr(statements, "insert", be_overtaken)
    first = sale_request("A", profile_id="ada", key="k")
    [answer, *_] = await quick.send([first, sale_request("B"), sale_request("C", profile_id="eve")])
    assert quick.sent_quickly == [3]
    assert await profile_of(quick, "A") == identifier
    [(body,)] = await quick.desk.rows("SELECT body FROM idempotency_keys WHERE organization_id = %s AND key = 'k'")
    sale = msgspec.json.decode(body)["sales_event"]
    assert sale["profile"] == {"id": PROFILE_ID.encode(identifier), "external_id": "ada"}
    [replay] = await quick.send([first])
    assert replay == {**answer, "headers": [(b"idempotent-replayed", b"true")]}


async def test_a_key_stored_meanwhile_by_another_process_is_replayed_and_its_sale_is_not_written(
    quick, monkeypatch, is_shared
):
    insert = statements.insert
    body = {**samples.sale(STORE), "external_id": "A", "profile_id": "ghost"}
    print_of = fingerprint("POST", TARGET, samples.json_bytes(body))

    async def be_overtaken(*arguments: Any, **options: Any) -> Any:
        await elsewhere(
            quick,
            "INSERT INTO idempotency_keys VALUES (%s, 'k', %s, 201, '{\"stored\":1}', now()) ON CONFLICT DO NOTHING",
            quick.desk.organization_id,
            print_of,
        )
        return await insert(*arguments, **options)

    monkeypatch.setattr(statements, "insert", be_overtaken)
    answers = await quick.send([SaleRequest(body, "k"), sale_request("B", key="k2", profile_id="ada")])
    assert answers[0] == {"status": 201, "headers": [(b"idempotent-replayed", b"true")], "body": {"stored": 1}}
    assert answers[1]["status"] == 201
    if is_shared:
        assert quick.sent_quickly == [1], "it left out its own sale only"
    assert (await quick.desk.tickets(), await quick.desk.customers()) == (["B"], ["ada"])


Form = tuple[statements.Source, set[statements.Part]]


async def forms_of(monkeypatch: pytest.MonkeyPatch, run: Any) -> list[Form]:
    """The sources and parts of the statements by which something is recorded."""
    used, insert = [], statements.insert

    async def observe(connection: Any, source: statements.Source, parts: Any, new: Any) -> Any:
        used.append((source, set(parts)))
        return await insert(connection, source, parts, new)

    with monkeypatch.context() as patched:
        patched.setattr(statements, "insert", observe)
        await run
    return used


async def test_each_batch_takes_the_smallest_form_that_can_decide_it(quick, monkeypatch):
    known = {statements.KNOWN_CUSTOMERS, statements.SKIP_STORED}
    keyed = {*known, statements.STORE_RESPONSES}
    whole = (statements.ONE_SALE, {*statements.NEW_PROFILES, statements.SKIP_STORED})
    single, several = (statements.ONE_SALE, known), (statements.SALES, known)
    for sales, expected in (
        ([sale_request("A", profile_id="ada")], [single, whole]),
        ([sale_request("B", profile_id="ada")], [whole]),
        ([sale_request("C", profile_id="ada")], [single]),
        ([sale_request("D")], [single]),
        ([sale_request("E", key="k", profile_id="ada")], [(statements.ONE_SALE, keyed)]),
        ([sale_request("F", profile_id="ada"), sale_request("G")], [several]),
        ([sale_request("H", profile_id="ada"), sale_request("I", profile_id="eve")], [several, whole]),
    ):
        assert await forms_of(monkeypatch, quick.send(sales)) == expected, sales
    assert await quick.desk.tickets() == list("ABCDEFGHI")
    assert await quick.desk.customers() == ["ada", "eve"]


async def test_a_ticket_committed_meanwhile_is_left_out_with_its_customer_its_key_and_its_fact(quick):
    """Ours waits for the other's uncommitted sale; the other commits, and only the rest of ours goes in."""
    await quick.send([sale_request("warm-up")])
    other = await quick.desk.elsewhere()
    async with other:
        await write_ticket(other, quick.desk.organization_id, "A")
        sending = asyncio.create_task(
            quick.send([sale_request("A", profile_id="ghost", key="ka"), sale_request("B", profile_id="ada", key="kb")])
        )
        await until_locked(quick.desk.database)
        assert not sending.done()
        await other.commit()
    answers = await sending
    assert [(answer["status"], answer["headers"]) for answer in answers] == [
        (200, [(b"x-payload-mismatch", b"true")]),
        (201, []),
    ]
    left = await quick.left()
    assert left["published"] == ["B", "warm-up"]
    assert [(key, status) for key, status, _ in left["keys"]] == [("ka", 200), ("kb", 201)]
    assert await quick.desk.customers() == ["ada"]


async def test_two_processes_that_wait_for_each_other_both_get_on(quick):
    """The careful path writes customers before tickets, this one tickets before customers: the one that is rolled back retries."""
    await quick.send([sale_request("warm-up")])
    other = await quick.desk.elsewhere()
    async with other:
        await write_profile(other, quick.desk.organization_id, "ada")
        sending = asyncio.create_task(
            quick.send([sale_request("A", profile_id="ada", key="ka"), sale_request("B", key="kb")])
        )
        await until_locked(quick.desk.database)
        await other.execute("SET LOCAL deadlock_timeout = '60s'")
        await write_ticket(other, quick.desk.organization_id, "A")
        await other.commit()
    answers = await sending
    assert [answer["status"] for answer in answers] == [200, 201]
    left = await quick.left()
    assert left["published"] == ["B", "warm-up"]
    assert [(key, status) for key, status, _ in left["keys"]] == [("ka", 200), ("kb", 201)]
    assert await quick.desk.customers() == ["ada"]


async def test_an_early_refusal_is_not_overtaken_by_a_later_ticket_with_its_id(quick):
    answers = await quick.send(
        [sale_request("A", store_id="nowhere"), sale_request("B"), sale_request("A"), sale_request("A")]
    )
    assert [answer["status"] for answer in answers] == [404, 201, 201, 200]


async def test_a_store_that_opens_later_is_found_then(quick):
    [before] = await quick.send([sale_request("A", store_id="NEW")])
    await quick.desk.open_store("NEW")
    [after] = await quick.send([sale_request("A", store_id="NEW")])
    assert (before["status"], after["status"]) == (404, 201)


async def test_a_new_property_takes_the_careful_path_once_and_is_in_the_catalog_when_a_worker_runs(quick, database):
    lines = [samples.line(product={"properties": {"fabric": "linen"}})]
    # The first is refused, and so publishes nothing.
    for external_id, store, expected in (("A", "nowhere", 404), ("A", STORE, 201), ("B", STORE, 201)):
        [answer] = await quick.send([sale_request(external_id, store_id=store, line_items=lines)])
        assert answer["status"] == expected
    assert quick.sent_quickly == [0, 0, 1]
    other = open_counter(database, quick.desk.organization_id, quick=True)
    await other.send([sale_request("C", line_items=lines)])
    await drain(quick.desk.database, quick.desk.organization_id, LISTENERS)
    other = open_counter(database, quick.desk.organization_id, quick=True)
    await other.send([sale_request("D", line_items=lines)])
    assert other.sent_quickly == [1]


async def test_nothing_is_written_with_a_clock_that_is_off_and_the_careful_path_answers(quick):
    await quick.send([sale_request("A")])
    quick.sent_quickly.clear()
    before = await database_time(quick.desk.database)
    quick.desk.database.clock.set(before + timedelta(hours=5), queried_at=monotonic())
    [answer] = await quick.send([sale_request("B", profile_id="ada", key="k")])
    assert answer["status"] == 201
    assert quick.sent_quickly == [0]
    [(created_at,)] = await quick.desk.rows(
        "SELECT created_at FROM sales_events WHERE organization_id = %s AND external_id = 'B'"
    )
    assert timedelta() <= created_at - before < timedelta(seconds=5)
    # Its statement read the time again.
    await quick.send([sale_request("C")])
    assert quick.sent_quickly == [0, 1]


async def test_after_a_statement_that_waited_long_the_next_one_goes_in(quick):
    await quick.send([sale_request("A")])
    async with await quick.desk.elsewhere() as other:
        await write_profile(other, quick.desk.organization_id, "ada")
        sending = asyncio.create_task(quick.send([sale_request("B", profile_id="ada")]))
        # Longer than a prepared time may be off.
        await asyncio.sleep(1.2)
        await other.rollback()
    await sending
    await quick.send([sale_request("C")])
    assert quick.sent_quickly == [1, 1, 1]


async def test_it_dials_again_after_its_connections_were_ended(quick):
    await quick.send([sale_request("A")])
    await elsewhere(
        quick,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    statuses = []
    for number in range(4):
        [answer] = await quick.send([sale_request(f"B{number}", key=f"k{number}")])
        statuses.append(answer["status"])
    assert set(statuses[:2]) <= {201, 503}
    assert statuses[2:] == [201, 201]
    assert len(await quick.desk.tickets()) == 1 + statuses.count(201)


async def test_a_stored_answer_is_whole_whatever_stands_in_its_free_objects(quick):
    """What looks like the place of a customer's id inside metadata is left alone, with a customer and without."""
    decoy = {"profile": {"id": "prof_" + "0" * 26, "external_id": "x"}}
    for name, changes in (("A", {}), ("B", {"profile_id": "ada"})):
        first = sale_request(name, key=f"k{name}", metadata=decoy, payments=[decoy], loyalty=decoy, **changes)
        [answer] = await quick.send([first])
        [replay] = await quick.send([first])
        assert replay["body"] == answer["body"]
        rows = await quick.desk.rows("SELECT key, body FROM idempotency_keys WHERE organization_id = %s")
        sale = msgspec.json.decode(dict(rows)[f"k{name}"])["sales_event"]
        assert (sale["metadata"], sale["payments"], sale["loyalty"]) == (decoy, [decoy], decoy)
    assert quick.sent_quickly == [1, 0, 1, 0]


async def test_a_connection_that_cannot_be_prepared_is_closed_again(database, monkeypatch):
    monkeypatch.setattr(db_session, "FOR_RECORDING", "SELECT FROM nothing_like_this")
    for _ in range(5):
        with pytest.raises(psycopg.errors.UndefinedTable):
            await database.dial(for_recording=True)
    # PostgreSQL notices a little later that they hung up.
    await until(lambda: are_closed(database, "nothing_like_this"))


async def are_closed(database: Database, text: str) -> bool:
    """Whether no open connection last ran a statement with this text."""
    async with database.reading() as tx:
        found = await tx.fetch(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND position(%s IN query) > 0",
            (text,),
        )
    return not found
