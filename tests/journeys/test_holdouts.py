"""Splits that hold customers out, and the global holdout in journeys."""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

from tests.experiments.test_holdout import draw_all
from tests.journeys.test_backtest import past  # noqa: F401  # a fixture

from regulars.experiments.holdout.settings import change_holdout
from regulars.experiments.journey_holdouts import read_holdout_groups
from regulars.journeys.definition import read_definition
from regulars.journeys.personal import PERSONAL_DATA
from regulars.journeys.program import holdouts_of
from regulars.work.personal import ErasedPeople

TEXT = {"do": "send_text", "text": "Hello"}
HOLDOUT = {"do": "split", "percent": 50, "holdout": True, "then": [TEXT]}


def sides(desk):
    return {
        (step, profile_id): is_held_out
        for step, profile_id, is_held_out in desk.sql(
            "SELECT step, profile_id, is_held_out FROM journey_holdouts WHERE organization_id = %s"
        )
    }


def test_who_passes_a_holdout_is_stored_with_the_side_and_the_first_time(desk):
    journey = desk.journey(HOLDOUT)
    customers = [desk.customer(f"C{number}") for number in range(20)]
    desk.sell(*customers)
    stored = sides(desk)
    assert {profile_id for _, profile_id in stored} == set(customers)
    assert set(stored.values()) == {True, False}
    texted = {profile_id for (profile_id,) in desk.sql("SELECT profile_id FROM texts WHERE organization_id = %s")}
    assert texted == {profile_id for (_, profile_id), is_held_out in stored.items() if not is_held_out}
    desk.alter("UPDATE journey_holdouts SET passed_at = now() - interval '1 day' WHERE organization_id = %s")
    passed = "SELECT profile_id, passed_at, first_day FROM journey_holdouts WHERE organization_id = %s ORDER BY 1"
    before = desk.sql(passed)
    # The purchase that brought them in does not count, so their days begin tomorrow.
    tomorrow = desk.now().astimezone(
        ZoneInfo(desk.sql("SELECT time_zone FROM organizations WHERE id = %s")[0][0])
    ).date() + timedelta(days=1)
    assert {first_day for _, _, first_day in before} == {tomorrow}
    begun = desk.sql("SELECT payload FROM outbox WHERE organization_id = %s AND topic = 'journeys.holdout_month'")
    assert begun == [
        (
            [
                {
                    "journey_id": str(journey),
                    "step": "1",
                    "month": tomorrow.replace(day=1).isoformat(),
                    "percent": 50,
                    "texts_within_days": 1,
                }
            ],
        )
    ]
    desk.sell(*customers)
    assert len(desk.runs(journey)) == 40
    assert desk.sql(passed) == before
    sides_read = desk.do(
        lambda tx: read_holdout_groups(tx, desk.organization_id, journey, "1", tomorrow.replace(day=1))
    )
    assert {len(ids) for ids, _ in sides_read.values()} == {
        16 * len([it for it in stored.values() if it is side]) for side in (True, False)
    }
    assert {int.from_bytes(days[:4], "little") for _, days in sides_read.values()} == {
        (tomorrow - date(1970, 1, 1)).days
    }
    # The person goes with their sides.
    people = ErasedPeople(profile_ids=[customers[0]])
    desk.do(lambda tx: PERSONAL_DATA.erase(tx, desk.organization_id, people))
    assert len(sides(desk)) == 19


def test_two_splits_of_a_journey_divide_the_customers_independently(desk):
    desk.journey(HOLDOUT, {**HOLDOUT, "id": "second"})
    desk.sell(*desk.customers(60).values())
    stored = sides(desk)
    pairs = [(stored["1", it], stored["second", it]) for step, it in stored if step == "1"]
    assert len(pairs) == 60
    assert {pairs.count(pair) >= 5 for pair in ((True, True), (True, False), (False, True), (False, False))} == {True}


def test_splits_of_earlier_versions_stay_where_they_are(desk, past):  # noqa: F811  # the fixture
    journey = desk.journey(HOLDOUT, {**HOLDOUT, "id": "second"}, live=False)
    # As a release wrote it that knew no salt.
    desk.alter("UPDATE journey_versions SET salts_splits = false WHERE organization_id = %s")
    desk.activate(journey)
    for number in range(20):
        customer = desk.customer(f"C{number}")
        past.sale(customer, timedelta(days=2))
        desk.sale(customer)
    desk.work()
    stored = sides(desk)
    assert all(stored["1", it] == stored["second", it] for step, it in stored if step == "1")
    assert set(stored.values()) == {True, False}
    skipped = past.play_journey(journey, days=3)["skipped"]
    assert skipped == {"no_consent": 4 * sum(not it for (step, _), it in stored.items() if step == "1")}


def test_the_texts_of_customers_in_the_global_holdout_are_skipped_where_journeys_are_chosen(desk):
    customers = desk.customers(60).values()
    desk.do(lambda tx: change_holdout(tx, desk.organization_id, percent=20, with_journeys=False, by="ann"))
    draw_all(desk)
    held_out = {
        row[0]
        for row in desk.sql("SELECT profile_id FROM holdout_customers WHERE organization_id = %s AND is_held_out")
    }
    assert 0 < len(held_out) < 60
    first = desk.journey(TEXT, {"do": "set_attribute", "key": "told", "value": "true"})
    desk.sell(*customers)
    assert len(desk.sent) == 60
    desk.alter("UPDATE texts SET claimed_at = now() - interval '60 days' WHERE organization_id = %s")
    desk.do(lambda tx: change_holdout(tx, desk.organization_id, percent=20, with_journeys=True, by="ann"))
    desk.sell(*customers)
    skipped = desk.sql(
        "SELECT profile_id FROM texts WHERE organization_id = %s AND state = 'skipped' AND reason = 'global_holdout'"
    )
    assert {row[0] for row in skipped} == held_out
    assert len(desk.sent) == 120 - len(held_out)
    # Their runs go on.
    assert desk.outcomes(first) == ["completed"] * 120


def test_a_backtest_skips_what_the_global_holdout_skips(desk, past):  # noqa: F811  # the fixture
    customers = [desk.customer(f"C{number}") for number in range(30)]
    for number, customer in enumerate(customers):
        past.opt_in(timedelta(days=9), f"C{number}", f"+336123{number:05d}")
        past.sale(customer, timedelta(days=2))
    desk.do(lambda tx: change_holdout(tx, desk.organization_id, percent=20, with_journeys=True, by="ann"))
    draw_all(desk)
    [(held_out,)] = desk.sql("SELECT held_out FROM holdout_quarters WHERE organization_id = %s")
    assert held_out
    played = past.play(TEXT)
    assert played["skipped"] == {"global_holdout": held_out}
    assert played["texts"] == 30 - held_out


def test_a_holdout_knows_when_the_last_text_of_its_path_leaves():
    definition = read_definition(
        b"""{"name": "J", "trigger": "purchase", "steps": [
            {"do": "wait", "days": 9},
            {"do": "split", "percent": 90, "holdout": true, "id": "h", "then": [
                {"do": "wait", "hours": 12},
                {"do": "wait_for_purchase", "days": 3,
                 "then": [{"do": "wait", "days": 30}], "else": [{"do": "wait_until", "time": "10:00"},
                 {"do": "send_text", "text": "Hi"}]},
                {"do": "wait", "days": 50}]},
            {"do": "split", "percent": 80, "then": [{"do": "send_text", "text": "Hi"}]}]}"""
    )
    assert holdouts_of(definition) == [("h", 10, timedelta(days=4, hours=12))]
