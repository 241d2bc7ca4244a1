"""Every segment is counted once a day; what cannot be counted now is tried again."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from regulars.kit.settings import Settings
from regulars.segments.analysis.ask import running
from regulars.segments.kept.daily import TRY_AGAIN, SizeQueue, next_count
from regulars.segments.kept.sizes import list_sizes


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


def test_a_segment_is_counted_once_a_day_and_tried_again_when_nothing_counts(
    desk, api_database_url, tmp_path, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", api_database_url)
    monkeypatch.setenv("REGULARS_DATA_DIR", str(tmp_path))
    desk.customer("C1")
    segment = desk.segment({"type": "named"})

    def due():
        [(moment,)] = desk.sql("SELECT due_at FROM segments WHERE organization_id = %s")
        return moment

    async def turn(queue) -> None:
        await queue.take_turn(desk.database, desk.organization_id)
        await queue.finish()

    async def count() -> None:
        async with running(Settings(data_dir=tmp_path, database_url=api_database_url)) as analysis:
            await turn(SizeQueue(analysis))

    before = desk.now()
    desk.runner.run(count())
    # The columns are not built yet.
    assert desk.do(lambda tx: list_sizes(tx, desk.organization_id, segment)) == []
    assert TRY_AGAIN <= due() - before < TRY_AGAIN + timedelta(minutes=5)
    desk.build_columns()
    desk.alter("UPDATE segments SET due_at = now() WHERE organization_id = %s")
    desk.runner.run(count())
    [size] = desk.do(lambda tx: list_sizes(tx, desk.organization_id, segment))
    assert (size.total, size.version) == (1, 1)
    assert due() > desk.now()
