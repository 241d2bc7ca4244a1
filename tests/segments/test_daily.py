"""Every segment is counted once a day; what cannot be counted now is tried again."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.segments.desk import definition
from tests.support.waiting import until_locked

from regulars.columns.protocol import ConsentSplit, NotReady, SegmentCounts
from regulars.kit.db import Tx
from regulars.segments.saved import manage
from regulars.segments.saved.sizes import RETRY_AFTER, SizeQueue, list_sizes, next_count, store_size


@pytest.mark.parametrize(
    ("now", "zone", "expected"),
    [
        ("2026-11-15T12:00:00", "UTC", "2026-11-16T03:00:00"),
        ("2026-11-15T01:00:00", "UTC", "2026-11-15T03:00:00"),
        ("2026-11-15T01:59:00", "Europe/Paris", "2026-11-15T02:00:00"),
        ("2026-11-15T12:00:00", "Pacific/Kiritimati", "2026-11-15T13:00:00"),
    ],
)
def test_it_is_counted_at_night_in_the_organization_s_zone(now, zone, expected):
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert next_count(moment, ZoneInfo(zone)) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_segment_is_counted_once_a_day_and_tried_again_when_nothing_counts(desk):
    segment = desk.segment({"type": "named"})

    def due():
        [(moment,)] = desk.sql("SELECT due_at FROM segments WHERE organization_id = %s")
        return moment

    async def refuse(_tx: Tx) -> None:
        raise NotReady(None)

    async def do_nothing(_tx: Tx) -> None:
        pass

    before = desk.now()
    count_while(desk, refuse)
    assert desk.do(lambda tx: list_sizes(tx, desk.organization_id, segment)) == []
    assert RETRY_AFTER <= due() - before < RETRY_AFTER + timedelta(minutes=5)
    desk.alter("UPDATE segments SET due_at = now() - interval '1 s' WHERE organization_id = %s")
    count_while(desk, do_nothing)
    [size] = desk.do(lambda tx: list_sizes(tx, desk.organization_id, segment))
    assert (size.total, size.version) == (5, 1)
    assert due() > desk.now()


def test_the_first_count_waits_for_facts_from_before_the_save(desk):
    """Tickets of the moment before would be missing in it."""
    desk.alter(
        "INSERT INTO outbox (id, topic, payload, created_at, due_at, organization_id)"
        " VALUES (gen_random_uuid(), 'nowhere', '{}', now() - interval '1 s', now(), %s)"
    )
    desk.segment({"type": "named"})
    count_while(desk, lambda _tx: pytest.fail("counted too early"))
    [(soon,)] = desk.sql("SELECT due_at - now() < interval '10 seconds' FROM segments WHERE organization_id = %s")
    assert soon


class Meanwhile:
    """Counts, and lets something happen before it answers."""

    def __init__(self, act) -> None:
        self._act = act

    async def is_listening(self):
        return True

    async def count_segment(self, organization_id, query, *, deadline_s):
        await self._act()
        return counts_of(5)


def counts_of(total: int) -> SegmentCounts:
    split, as_of = ConsentSplit(may_be_texted=1), datetime(2026, 11, 15, tzinfo=UTC)
    return SegmentCounts(total=total, customers=9, split=split, conditions=(), as_of=as_of, took_ms=1)


def count_while(desk, act) -> None:
    async def happen() -> None:
        async with desk.database.transaction() as tx:
            await act(tx)

    async def turn() -> None:
        queue = SizeQueue(Meanwhile(happen))
        await queue.run_pass(desk.database, desk.organization_id)
        await queue.finish()

    desk.runner.run(turn())


def test_a_version_that_is_saved_during_a_count_is_still_to_be_counted(desk):
    segment = desk.segment({"type": "named"})
    changed = definition({"type": "named", "is": False})
    count_while(desk, lambda tx: manage.update_segment(tx, desk.organization_id, segment, changed))
    assert desk.sql("SELECT version, due_at <= now(), owner FROM segments WHERE organization_id = %s") == [
        (2, True, None)
    ]
    assert desk.do(lambda tx: list_sizes(tx, desk.organization_id, segment)) == []


def test_a_second_count_beside_it_is_not_settled_by_the_first(desk):
    """The same worker claims the new version while the old one is being counted."""
    segment = desk.segment({"type": "named"})
    changed = definition({"type": "named", "is": False})

    async def act(tx: Tx) -> None:
        [(owner,)] = await tx.fetch("SELECT owner FROM segments WHERE id = %s", (segment,))
        await manage.update_segment(tx, desk.organization_id, segment, changed)
        await tx.execute(
            "UPDATE segments SET owner = %s, due_at = now() + interval '1 minute' WHERE id = %s", (owner, segment)
        )

    count_while(desk, act)
    [(owner, wait)] = desk.sql("SELECT owner, due_at - now() FROM segments WHERE organization_id = %s")
    assert owner is not None
    assert wait <= timedelta(minutes=1)


def test_a_segment_that_is_deleted_during_a_count_leaves_no_size(desk):
    segment = desk.segment({"type": "named"})
    count_while(desk, lambda tx: manage.delete_segment(tx, desk.organization_id, segment))
    assert desk.sql("SELECT 1 FROM segment_sizes WHERE organization_id = %s") == []


def test_a_deletion_waits_for_a_size_that_is_being_stored(desk):
    segment = desk.segment({"type": "named"})

    async def delete() -> None:
        async with desk.database.transaction() as tx:
            await manage.delete_segment(tx, desk.organization_id, segment)

    async def both() -> None:
        async with desk.database.transaction() as tx:
            await store_size(tx, desk.organization_id, segment, counts_of(5), version=1)
            deleting = asyncio.create_task(delete())
            await until_locked(desk.database, "DELETE FROM segment_versions")
        await deleting

    desk.runner.run(both())
    assert desk.sql("SELECT 1 FROM segment_sizes WHERE organization_id = %s") == []


def test_of_a_version_the_first_count_stays(desk):
    segment = desk.segment({"type": "named"})

    async def keep() -> None:
        for total in (5, 7):
            async with desk.database.transaction() as tx:
                await store_size(tx, desk.organization_id, segment, counts_of(total), version=1)

    desk.runner.run(keep())
    assert desk.sql("SELECT total FROM segment_versions WHERE organization_id = %s") == [(5,)]
    assert desk.sql("SELECT total FROM segment_sizes WHERE organization_id = %s") == [(7,)]
