"""Lift of journeys by a split that holds customers out, and of the global holdout in a quarter."""

from datetime import date, timedelta

from tests.attribution.test_lift import NO_CONDITION, desk, stored_sums  # noqa: F401  # a fixture

from regulars.attribution.holdout_sources import format_quarter, parse_quarter, schedule_months, schedule_quarters
from regulars.attribution.lift import FINAL_AFTER, LiftState, SourceKind, read_lifts
from regulars.attribution.model import LIFT_DAYS_MAX
from regulars.experiments.facts import HoldoutMonthBegun, HoldoutQuarterChanged
from regulars.experiments.journey_holdouts import HoldoutPassRow, record_passes
from regulars.journeys.check import TEXTS_WITHIN_MAX
from regulars.journeys.retention import RETENTION
from regulars.kit.ids import new_uuid

DAY = timedelta(days=1)


def lifts(desk, kind, source_id):  # noqa: F811  # the fixture
    return desk.do(lambda tx: read_lifts(tx, desk.organization_id, kind, [source_id]))


def test_a_customer_of_a_journey_has_a_window_of_their_own(desk):  # noqa: F811  # the fixture
    desk.crowd(4)
    journey_id, today = new_uuid(), desk.query(NO_CONDITION).today
    month = (today.replace(day=1) - 95 * DAY).replace(day=1)

    def passed(name, day, *, percent=20, is_held_out=False):
        return HoldoutPassRow(journey_id, "2", month, desk.people[name], month + day * DAY, percent, is_held_out)

    def sale(name, day, amount):
        desk.sale(name, amount=amount, ago=today - month - day * DAY)

    begun = HoldoutMonthBegun(journey_id, "2", month, 20, 1)
    rows = [passed("C0", 3), passed("C1", 20), passed("C2", 20, is_held_out=True)]
    desk.do(lambda tx: record_passes(tx, desk.organization_id, rows, {begun}))
    # After a change of the share customers count from the next month on.
    desk.do(lambda tx: record_passes(tx, desk.organization_id, [passed("C3", 25, percent=50)], {begun}))
    assert desk.sql("SELECT count(*) FROM outbox WHERE organization_id = %s AND topic = %s", begun.topic) == [(1,)]
    # Seven days and one for the text: the last day is the eighth after the split.
    for day, amount in ((2, 10), (3, 100), (11, 200), (12, 5_000)):
        sale("C0", day, amount)
    sale("C1", 19, 40)
    sale("C2", 20, 300)
    sale("C3", 26, 9_000)
    desk.drain()
    desk.compute()
    [lift] = lifts(desk, SourceKind.JOURNEY, journey_id)
    assert (lift.state, lift.source.step, lift.source.period) == (LiftState.FINAL, "2", f"{month:%Y-%m}")
    assert (lift.treated, lift.held_out, lift.buyers) == (2, 1, 2)
    sums = stored_sums(desk, "EUR")
    assert (sums["treated"]["spend_cents"], sums["held_out"]["spend_cents"]) == (300, 300)
    assert (sums["treated"]["before_cents"], sums["held_out"]["before_cents"]) == (50, 0)


def test_a_month_is_scheduled_once_and_waits_for_its_last_window(desk):  # noqa: F811  # the fixture
    fact = HoldoutMonthBegun(new_uuid(), "2", date(2098, 2, 1), 10, 5)
    for _ in range(2):
        desk.do(lambda tx: schedule_months(tx, desk.organization_id, [fact]))
    [lift] = lifts(desk, SourceKind.JOURNEY, fact.journey_id)
    assert (lift.state, lift.first_day, lift.last_day) == (LiftState.OPEN, date(2098, 2, 1), date(2098, 3, 12))


def test_who_passed_a_holdout_is_stored_until_its_result_is_final():
    pass_of_the_first, last_text_on_the_next_day, midnight = 31 * DAY, DAY, DAY
    sales = TEXTS_WITHIN_MAX + LIFT_DAYS_MAX * DAY
    assert pass_of_the_first + last_text_on_the_next_day + sales + FINAL_AFTER + midnight < RETENTION


def test_a_quarter_compares_who_was_held_out_with_the_others(desk):  # noqa: F811  # the fixture
    people = desk.crowd(6)
    today = desk.query(NO_CONDITION).today
    quarter = parse_quarter("2026-Q1")
    assert (quarter, format_quarter(date(2026, 10, 1))) == (date(2026, 1, 1), "2026-Q4")
    for number, profile_id in enumerate(people):
        desk.alter(
            "INSERT INTO holdout_customers (organization_id, quarter, profile_id, is_held_out) VALUES (%s, %s, %s, %s)",
            quarter, profile_id, number == 0,
        )  # fmt: skip
    desk.sale("C0", amount=300, ago=10 * DAY)
    desk.sale("C1", amount=1_000, ago=12 * DAY)
    desk.sale("C2", amount=5_000, ago=8 * DAY)
    desk.drain()

    def change(first_day, last_day):
        fact = HoldoutQuarterChanged(quarter, 10, first_day, last_day)
        desk.do(lambda tx: schedule_quarters(tx, desk.organization_id, [fact]))
        return lifts(desk, SourceKind.HOLDOUT, desk.organization_id)

    [lift] = change(today - 50 * DAY, today + 30 * DAY)
    assert (lift.state, lift.source.period, lift.last_day) == (LiftState.OPEN, "2026-Q1", today + 30 * DAY)
    # It was ended: what was measured until then counts.
    [lift] = change(today - 50 * DAY, today - 9 * DAY)
    desk.compute()
    [lift] = lifts(desk, SourceKind.HOLDOUT, desk.organization_id)
    assert (lift.state, lift.treated, lift.held_out, lift.buyers) == (LiftState.PROVISIONAL, 5, 1, 2)
    sums = stored_sums(desk, "EUR")
    assert (sums["treated"]["spend_cents"], sums["held_out"]["spend_cents"]) == (1_000, 300)
    # A result stays.
    assert change(today - 50 * DAY, today - 2 * DAY) == [lift]


def test_a_quarter_that_ends_before_its_first_whole_day_is_not_compared(desk):  # noqa: F811  # the fixture
    for last_day in (date(2098, 3, 31), date(2098, 2, 9)):
        fact = HoldoutQuarterChanged(date(2098, 1, 1), 10, date(2098, 2, 11), last_day)
        desk.do(lambda tx, fact=fact: schedule_quarters(tx, desk.organization_id, [fact]))
    assert lifts(desk, SourceKind.HOLDOUT, desk.organization_id) == []
