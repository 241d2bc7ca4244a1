"""The clock of the database is set back by two hours: no queue waits that long, and what lies far ahead stays there."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from tests.support.clock import store_two_hours_ahead
from tests.support.database import migrated_template, new_data_folder, new_database, throwaway_server
from tests.support.rows import Raw, insert_rows
from tests.support.waiting import until
from tests.work.test_locked_rows import SEEDS, SETTINGS, House, with_house
from tests.work.test_loop import TABLES, Letters, letters_url, post, served, url

from regulars.kit.ids import new_uuid
from regulars.work import clock_steps
from regulars.work.clock_steps import TOLERANCE, pull_forward
from regulars.work.queue import Due, Queue, Sweep, WaitLimit
from regulars.worker import queues

__all__ = ["letters_url", "url"]

# Every row waits for a time that a calendar chose: the decision about a reply is due in five business days.
WITHOUT_SHORT_WAITS = {"replies"}
# A retention is long, so two hours more do not matter; the sweeps delete rows after days or months.
FAKETIME = os.environ.get("REGULARS_TEST_FAKETIME") or next(
    map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None
)
NAMES = sorted(name for name in SEEDS if "sweep" not in name and name != "segments.unneeded")
SOON = timedelta(minutes=10, seconds=1)
# The states of rows whose wait is short, where the row of another test is in another one.
STATES: dict[str, dict[str, Any]] = {
    "attribution.lift": {"owner": str(new_uuid())},
    "campaigns": {"state": "sending"},
}
AN_HOUR_AGO = Raw("now() - interval '1 hour'")
AHEAD: list[tuple[str, dict[str, Any]]] = [
    ("campaigns.start", {"state": "scheduled", "updated_at": Raw("now()")}),
    ("campaigns", {"state": "paused"}),
    ("campaigns", {"state": "ended", "ended_at": Raw("now()")}),
    ("campaigns", {"state": "cancelled", "ended_at": Raw("now()")}),
    ("journey_runs", {"waits_for": "time", "waiting_since": Raw("now()")}),
    ("texts", {"created_at": AN_HOUR_AGO}),
    # It was claimed once, and waits for the opening hour.
    ("texts", {"created_at": AN_HOUR_AGO, "attempts": 1, "tries": 1}),
    # It waits for the end of its window.
    ("attribution.lift", {"first_day": "2026-11-01", "last_day": "2026-11-30"}),
    ("holdouts", {"changed_at": Raw("now() - interval '1 day'")}),
    ("replies", {}),
]
# Rows that wait for a retry of seconds or minutes.
RETRIES: list[tuple[str, dict[str, Any]]] = [
    ("campaigns", {"state": "ended", "ended_at": Raw("now() + interval '2 hours'")}),
    ("campaigns", {"state": "cancelled", "ended_at": AN_HOUR_AGO, "attempts": 1}),
    ("campaigns.start", {"state": "scheduled", "reason": "The last changes of customers are still being counted."}),
    ("texts", {"created_at": AN_HOUR_AGO, "attempts": 1, "tries": 1, "provider": "twilio"}),
    ("segment_sizes", {"updated_at": Raw("now() + interval '119 minutes'")}),
    # Its window is not known yet, or its computation failed.
    ("attribution.lift", {}),
    ("attribution.lift", {"first_day": "2026-11-01", "last_day": "2026-11-30", "reason": "NotReady"}),
]


def test_every_queue_says_how_long_its_rows_wait():
    gateways: Any = type("Gateways", (), {"providers": {}, "twilio": None, "database": None})
    unsaid = {it.name for it in queues(SETTINGS, gateways) if not it.due.waits and not isinstance(it, Sweep)}
    assert unsaid == WITHOUT_SHORT_WAITS


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT_SHORT_WAITS))
def test_no_queue_waits_for_two_hours_after_a_step_back(database_url, name):
    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue, organization_id = opened[name], await house.organization()
        await house.fill(queue, organization_id)
        for column, value in STATES.get(name, {}).items():
            house.connection.execute(
                sql.SQL("UPDATE {} SET {} = %s").format(sql.Identifier(queue.due.table), sql.Identifier(column)),
                (value,),
            )
        store_two_hours_ahead(house.connection, organization_id, queue.due.table)
        assert await pull_forward(house.database, queue) == [organization_id]
        is_claimed = any(wait.waits_again for wait in queue.due.waits)
        assert ahead(house, queue, SOON if is_claimed else timedelta(seconds=1)) == 0
        assert await pull_forward(house.database, queue) == []

    with_house(database_url, act)


@pytest.mark.parametrize(("name", "given"), AHEAD)
def test_what_is_meant_to_lie_far_ahead_stays(database_url, name, given):
    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue, organization_id = opened[name], await house.organization()
        values = {**SEEDS[name], **given, queue.due.column: Raw("now() + interval '7 days'")}
        if name == "journey_runs":
            values["journey_id"] = await house.journey(organization_id)
        insert_rows(house.connection, queue.due.table, organization_id, 1, **values)
        assert await pull_forward(house.database, queue) == []
        assert ahead(house, queue, timedelta(days=6)) == 1

    with_house(database_url, act)


@pytest.mark.parametrize(("name", "given"), RETRIES)
def test_what_is_tried_again_soon_does_not_wait_for_two_hours(database_url, name, given):
    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue, organization_id = opened[name], await house.organization()
        values = {**SEEDS[name], **given, queue.due.column: Raw("now() + interval '2 hours'")}
        insert_rows(house.connection, queue.due.table, organization_id, 1, **values)
        assert await pull_forward(house.database, queue) == [organization_id]
        assert ahead(house, queue, timedelta(seconds=1)) == 0

    with_house(database_url, act)


def ahead(house: House, queue: Queue, by: timedelta) -> int:
    row = house.connection.execute(
        sql.SQL("SELECT count(*) FROM {} WHERE {} > now() + %s").format(
            sql.Identifier(queue.due.table), sql.Identifier(queue.due.column)
        ),
        (by,),
    ).fetchone()
    assert row is not None
    return int(row[0])


class ShortWaits(Letters):
    due = Due(
        table="letters",
        waits=(WaitLimit(at_most=(timedelta(0),), condition="attempts = 0"), Letters.schedule.retries()),
    )


@pytest.fixture
def stepping(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[str], None]]]:
    """A database of a server whose clock is set by libfaketime, and the function that sets it."""
    folder = new_data_folder()
    clock = folder.parent / "clock"

    def set_clock(offset: str) -> None:
        clock.write_text(offset)
        clock.chmod(0o644)

    run = subprocess.run

    def run_with_faked_time(*arguments: Any, **options: Any) -> Any:
        faked = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
        faked |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        return run(*arguments, **{**options, "env": {**(options.get("env") or os.environ), **faked}})

    set_clock("+0")
    monkeypatch.setattr(subprocess, "run", run_with_faked_time)
    with (
        throwaway_server(folder) as server_url,
        migrated_template(server_url) as template,
        new_database(server_url, template=template) as fresh,
    ):
        monkeypatch.undo()
        with psycopg.connect(fresh, autocommit=True) as connection:
            connection.execute(TABLES)
        yield fresh, set_clock


@pytest.mark.skipif(
    FAKETIME is None, reason="needs libfaketime: install that package, or name it in REGULARS_TEST_FAKETIME"
)
def test_the_loop_goes_on_after_the_clock_of_the_database_was_set_back(stepping):
    url, set_clock = stepping
    letters = ShortWaits()
    post(url, new_uuid(), "before")
    with psycopg.connect(url, autocommit=True) as connection:
        [(before,)] = connection.execute("SELECT now()").fetchall()
        set_clock("-2h")
        [(after,)] = connection.execute("SELECT now()").fetchall()
    assert timedelta(minutes=119) < before - after < timedelta(hours=2)

    async def scenario() -> None:
        async with served(url, letters):
            await until(lambda: len(letters.read) == 1)
            post(url, new_uuid(), "after")
            await until(lambda: len(letters.read) == 2)

    asyncio.run(scenario())


def test_the_loop_makes_such_rows_and_retries_due(url):
    organization_id = new_uuid()
    post(url, organization_id, "first", due_in=timedelta(hours=2))
    post(url, organization_id, "retry", due_in=timedelta(hours=2))
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE letters SET attempts = 3 WHERE word = 'retry'")

    async def scenario() -> ShortWaits:
        letters = ShortWaits()
        async with served(url, letters):
            await until(lambda: len(letters.read) == 2)
        return letters

    assert sorted(word for _, word in asyncio.run(scenario()).read) == ["first", "retry"]


def test_a_transaction_makes_a_bounded_number_of_rows_due(url, monkeypatch):
    monkeypatch.setattr(clock_steps, "ROWS_PER_TRANSACTION_MAX", 2)
    organization_id = new_uuid()
    for number in range(5):
        post(url, organization_id, str(number), due_in=timedelta(hours=2))

    async def act(house: House, _: dict[str, Queue]) -> None:
        assert await pull_forward(house.database, ShortWaits()) == [organization_id]

    with_house(url, act)
    with psycopg.connect(url) as connection:
        query = "SELECT count(DISTINCT xmin::text), count(*) FILTER (WHERE due_at <= now()) FROM letters"
        assert connection.execute(query).fetchall() == [(3, 5)]


def test_a_row_that_is_stored_a_moment_later_is_no_step(url):
    class ShortWaits(Letters):
        due = Due(table="letters", waits=(WaitLimit(at_most=(timedelta(0),)),))

    organization_id = new_uuid()
    post(url, organization_id, "soon", due_in=TOLERANCE - timedelta(seconds=1))

    async def act(house: House, _: dict[str, Queue]) -> None:
        assert await pull_forward(house.database, ShortWaits()) == []

    with_house(url, act)
