"""Columns that no segment needs end after a day, and after thirty if the pages of Analyse use them; how far they are."""

import pytest

from regulars.columns import lifecycle
from regulars.segments.saved import manage
from regulars.segments.saved.manage import delete_unneeded_columns
from regulars.work.due import find_due_organizations
from regulars.worker import SEGMENT_COLUMNS

NAMED = {"type": "named"}


@pytest.fixture
def prepared(desk):
    """A user began to count before they saved anything."""
    desk.do(lambda tx: lifecycle.begin(tx, desk.organization_id))
    desk.build_columns()
    return desk


def pass_a_day(desk) -> None:
    desk.alter("UPDATE segment_columns SET fenced_at = now() - interval '25 hours' WHERE organization_id = %s")


def has_columns(desk) -> bool:
    """After the worker looked."""
    if desk.organization_id in desk.do(lambda tx: find_due_organizations(tx, SEGMENT_COLUMNS, after=None)):
        desk.runner.run(delete_unneeded_columns(desk.database, desk.organization_id))
    return desk.do(lambda tx: lifecycle.find_build_progress(tx, desk.organization_id)) is not None


def test_a_user_who_writes_the_first_segment_has_a_day_for_it(prepared):
    assert has_columns(prepared)
    prepared.runner.run(delete_unneeded_columns(prepared.database, prepared.organization_id))
    assert has_columns(prepared)
    pass_a_day(prepared)
    assert not has_columns(prepared)
    assert prepared.sql("SELECT 1 FROM interests WHERE organization_id = %s") == []


def test_columns_of_a_segment_stay(prepared):
    segment = prepared.segment(NAMED)
    pass_a_day(prepared)
    assert has_columns(prepared)
    prepared.do(lambda tx: manage.delete_segment(tx, prepared.organization_id, segment))
    assert not has_columns(prepared)


def test_a_day_later_they_may_be_begun_again(prepared):
    pass_a_day(prepared)
    assert not has_columns(prepared)
    prepared.do(lambda tx: lifecycle.begin(tx, prepared.organization_id))
    assert has_columns(prepared)
    prepared.build_columns()
    assert has_columns(prepared)


def use_ago(desk, days: int) -> None:
    desk.alter(f"UPDATE segment_columns SET used_at = now() - interval '{days} days' WHERE organization_id = %s")  # noqa: S608  # a number of ours


def test_columns_that_analyse_uses_stay_until_it_is_unused_for_thirty_days(desk):
    desk.do(lambda tx: lifecycle.need_columns(tx, desk.organization_id))
    desk.build_columns()
    pass_a_day(desk)
    assert has_columns(desk)
    segment = desk.segment(NAMED)
    desk.do(lambda tx: manage.delete_segment(tx, desk.organization_id, segment))
    assert has_columns(desk)
    use_ago(desk, 29)
    assert has_columns(desk)
    # Another visit counts from its day on.
    desk.do(lambda tx: lifecycle.need_columns(tx, desk.organization_id))
    assert desk.sql("SELECT used_at > now() - interval '1 hour' FROM segment_columns WHERE organization_id = %s") == [
        (True,)
    ]
    use_ago(desk, 31)
    assert not has_columns(desk)
    desk.do(lambda tx: lifecycle.need_columns(tx, desk.organization_id))
    assert has_columns(desk)


def test_the_progress_of_a_build_has_an_estimate_of_the_time_left(prepared):
    def left_s() -> int | None:
        return prepared.do(lambda tx: lifecycle.find_build_progress(tx, prepared.organization_id)).left_s

    assert left_s() is None
    prepared.do(lambda tx: lifecycle.rebuild(tx, prepared.organization_id))
    assert left_s() is None
    prepared.alter(
        "UPDATE segment_columns SET phase = 'sales', phase_at = now() - interval '1 hour', done = 1000, total = 4000"
        " WHERE organization_id = %s"
    )
    assert round((left_s() or 0) / 3600) == 3


def test_the_estimate_of_a_build_that_copies_customers_includes_the_sales_after_them(desk):
    desk.do(lambda tx: lifecycle.begin(tx, desk.organization_id))

    def left_s(phase: str, *, done: int, total: int) -> int | None:
        desk.alter(
            f"UPDATE segment_columns SET phase = '{phase}', phase_at = now(), done = {done}, total = {total}"  # noqa: S608  # values of ours
            " WHERE organization_id = %s"
        )
        return desk.do(lambda tx: lifecycle.find_build_progress(tx, desk.organization_id)).left_s

    minute = 60 * lifecycle.SALES_PER_SECOND_ASSUMED
    assert left_s("customers", done=0, total=1_000) is None
    assert left_s("customers", done=1_000, total=1_000) == 0
    desk.alter(
        "INSERT INTO sales_totals VALUES"  # noqa: S608  # a number of ours
        f" (%s, false, '2026-11-01', 0, gen_random_uuid(), 'EUR', {5 * minute}, 0, 0, 0, 0, 0, 0, 0, 0, 0)"
    )
    assert left_s("customers", done=1_000, total=1_000) == 5 * 60
    assert left_s("sales", done=0, total=2 * minute) == 2 * 60
