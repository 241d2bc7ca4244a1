"""Blanking the answers about a person: every one that is stored, in stretches, and no other."""

import math
from datetime import timedelta

import pytest

from regulars.idempotency import records as erasing
from regulars.idempotency.model import RETENTION, StoredResponse
from regulars.idempotency.records import NEEDLES_PER_STATEMENT_MAX, erase_bodies, store_responses
from regulars.kit.ids import new_uuid

pytestmark = pytest.mark.anyio

NEEDLE = b"prof_me"
MILLISECOND = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)
# On both sides of the ends of stretches, and one that was committed after this transaction began.
AGES = (
    -timedelta(seconds=3),
    timedelta(0),
    MINUTE - MILLISECOND,
    MINUTE,
    MINUTE + MILLISECOND,
    5 * MINUTE,
    21 * MINUTE + MILLISECOND,
    timedelta(hours=7),
    RETENTION - MILLISECOND,
)


class Clock:
    """Every stretch takes a second: it is looked at once before all of them, then after each."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
async def written(database, organization_id):
    """For each age an answer that shows the person and one that does not, here and in another organization."""
    neighbour = new_uuid()
    async with database.transaction() as tx:
        for age in AGES:
            for name, body in (("me", b'{"id":"prof_me"}'), ("you", b'{"id":"prof_you"}'), ("none", b"")):
                record = StoredResponse(f"{name} {age}", bytes(32), 201, body, tx.now - age)
                await store_responses(tx, organization_id, [record])
                await store_responses(tx, neighbour, [record])
        yield tx, neighbour


async def test_of_a_batch_only_the_results_that_hold_the_person_go(database, organization_id):
    body = (
        b'{"results":[{"status":201,"body":{"id":"prof_you"}},{"status":200,"body":{"id":"prof_me"}},{"status":400}]}'
    )
    async with database.transaction() as tx:
        await store_responses(tx, organization_id, [StoredResponse("batch", bytes(32), 200, body, tx.now)])
        await erase_bodies(tx, organization_id, [NEEDLE], seconds_max=math.inf)
        rows = await tx.fetch("SELECT body FROM idempotency_keys WHERE organization_id = %s", (organization_id,))
    assert rows == [(b'{"results":[{"status":201,"body":{"id":"prof_you"}},null,{"status":400}]}',)]


async def blanked(tx, organization_id) -> set[str]:
    rows = await tx.fetch(
        "SELECT key FROM idempotency_keys WHERE organization_id = %s AND body IS NULL", (organization_id,)
    )
    return {row[0] for row in rows}


async def test_every_answer_about_the_person_loses_its_body_and_no_other(written, organization_id):
    tx, neighbour = written
    assert await erase_bodies(tx, organization_id, [NEEDLE], seconds_max=math.inf) is None
    assert await blanked(tx, organization_id) == {f"me {age}" for age in AGES}
    assert await blanked(tx, neighbour) == set()


async def test_without_time_only_the_newest_are_read_and_going_on_reads_the_rest(written, organization_id, monkeypatch):
    tx, _ = written
    newest = 20 * MINUTE
    monkeypatch.setattr(erasing, "COMMIT_TIME_MAX", newest)
    unread = await erase_bodies(tx, organization_id, [NEEDLE], seconds_max=0)
    assert unread == tx.now - newest
    assert await blanked(tx, organization_id) == {f"me {age}" for age in AGES if age < newest}
    rounds = 0
    while unread is not None:
        until, rounds = unread, rounds + 1
        unread = await erase_bodies(tx, organization_id, [NEEDLE], until=until, seconds_max=0)
        assert unread is None or unread < until
    assert rounds == (RETENTION - newest) / newest
    assert await blanked(tx, organization_id) == {f"me {age}" for age in AGES}


@pytest.mark.parametrize(
    ("seconds_max", "minutes"),
    [(0, 1), (1, 1), (1.5, 1 + 4), (3, 1 + 4 + 16), (4, 1 + 4 + 16 + 60), (5, 1 + 4 + 16 + 60 + 60)],
)
async def test_it_reads_ever_longer_stretches_until_its_time_is_over(
    written, organization_id, monkeypatch, *, seconds_max, minutes
):
    tx, _ = written
    monkeypatch.setattr(erasing, "monotonic", Clock())
    unread = await erase_bodies(tx, organization_id, [NEEDLE], seconds_max=seconds_max)
    assert unread == tx.now - minutes * MINUTE
    assert await blanked(tx, organization_id) == {f"me {age}" for age in AGES if age < minutes * MINUTE}


async def test_what_is_older_than_asked_for_stays(written, organization_id):
    tx, _ = written
    since = tx.now - 5 * MINUTE
    assert await erase_bodies(tx, organization_id, [NEEDLE], since=since, seconds_max=math.inf) is None
    assert await blanked(tx, organization_id) == {f"me {age}" for age in AGES if age < 5 * MINUTE}


async def test_more_needles_than_one_statement_takes_are_all_found(database, organization_id):
    needles = [b"prof_%d;" % number for number in range(2 * NEEDLES_PER_STATEMENT_MAX + 1)]
    async with database.transaction() as tx:
        await store_responses(
            tx, organization_id, [StoredResponse(needle.decode(), bytes(32), 201, needle, tx.now) for needle in needles]
        )
        await erase_bodies(tx, organization_id, needles, seconds_max=0)
        assert await blanked(tx, organization_id) == {needle.decode() for needle in needles}


async def test_answers_that_no_sweep_has_deleted_yet_are_read_too(written, organization_id):
    tx, _ = written
    ages = [RETENTION, RETENTION + MILLISECOND, timedelta(hours=31), timedelta(days=3)]
    late = [StoredResponse(f"late {age}", bytes(32), 201, NEEDLE, tx.now) for age in ages]
    await store_responses(tx, organization_id, late)
    for age in ages:
        await tx.execute(
            "UPDATE idempotency_keys SET created_at = %s WHERE organization_id = %s AND key = %s",
            (tx.now - age, organization_id, f"late {age}"),
        )
    unread = await erase_bodies(tx, organization_id, [NEEDLE], seconds_max=0)
    while unread is not None:
        unread = await erase_bodies(tx, organization_id, [NEEDLE], until=unread, seconds_max=0.01)
    assert await blanked(tx, organization_id) == {*(f"me {age}" for age in AGES), *(f"late {age}" for age in ages)}


async def test_there_is_nothing_to_go_on_with_a_day_later(written, organization_id):
    tx, _ = written
    until = tx.now - RETENTION - MINUTE
    assert await erase_bodies(tx, organization_id, [NEEDLE], until=until, seconds_max=0) is None
    assert await blanked(tx, organization_id) == set()
