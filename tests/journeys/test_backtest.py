"""Backtests on a real database: what would have happened, told without writing anything."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from psycopg.errors import ReadOnlySqlTransaction
from tests.support.desk import NUMBER
from tests.support.gateway import ALWAYS, only_on

from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import manage
from regulars.journeys.backtest.run import backtest
from regulars.journeys.definition import read_definition
from regulars.kit.ids import new_uuid
from regulars.kit.refusals import NotPossible
from regulars.texts.settings.model import Cap, SmsSettings

DAY = timedelta(days=1)
TEXT = {"do": "send_text", "text": "Merci {{ profile.first_name }}"}


@pytest.fixture
def past(desk):
    """Facts of so long ago, as if they had been recorded then."""
    return Past(desk)


class Past:
    def __init__(self, desk):
        self.desk = desk
        self.now = desk.now()
        [(zone,)] = desk.sql("SELECT time_zone FROM organizations WHERE id = %s")
        self.zone = ZoneInfo(zone)

    def sale(self, customer, ago, *, kind="PURCHASE", late=timedelta(0), amount=1990) -> UUID:
        moment = self.now - ago
        bits = new_uuid().int & ((1 << 80) - 1)
        sale_id = UUID(int=int(moment.timestamp() * 1000) << 80 | bits)
        given = {"kind": kind, "amount": amount, "ago": late, "sale_id": sale_id}
        return self.desk.do(lambda tx: self.desk.write_sale(tx, customer, **given), now=moment)

    def opt_in(self, ago, external_id="C1", number=NUMBER, *, late=timedelta(0)) -> None:
        self.desk.opt_in(external_id, number, ago=late, now=self.now - ago)

    def opt_out(self, ago, number=NUMBER) -> None:
        self.desk.opt_out(number, now=self.now - ago)

    def play(self, *steps, days=30, **more) -> dict[str, Any]:
        limits = {name: more.pop(name) for name in ("facts_max",) if name in more}
        draft = self.desk.journey(*steps, live=False, **more)
        return self.play_journey(draft, days=days, **limits)

    def play_journey(self, journey, *, days=30, **more) -> dict[str, Any]:
        texting = self.desk.texting
        report = self.desk.do(
            lambda tx: backtest(tx, self.desk.organization_id, journey, texting=texting, days=days, **more)
        )
        return report.as_data()

    def day(self, ago) -> str:
        return (self.now - ago).astimezone(self.zone).date().isoformat()


def by_day(played, what):
    return {day["day"]: day[what] for day in played["by_day"] if day[what]}


def count_rows(desk) -> dict[str, int]:
    tables = [
        row[0] for row in desk.sql(
            "SELECT table_name FROM information_schema.columns JOIN pg_tables ON tablename = table_name"
            " WHERE table_schema = 'public' AND schemaname = 'public' AND column_name = 'organization_id'"
            " AND %s::uuid IS NOT NULL"
        )
    ]  # fmt: skip
    return {
        table: desk.sql(f"SELECT count(*) FROM {table} WHERE organization_id = %s")[0][0]  # noqa: S608
        for table in tables
    }


@pytest.mark.parametrize(("exit_on", "entries"), [([], 1), (["purchase"], 2)])
def test_a_purchase_that_completes_a_run_starts_no_other_and_one_that_ends_it_does(desk, past, exit_on, entries):
    customer = desk.customer()
    past.sale(customer, 10 * DAY)
    past.sale(customer, 9 * DAY)
    played = past.play({"do": "wait_for_purchase", "days": 3, "then": [{"do": "exit"}]}, exit_on=exit_on)
    assert sum(by_day(played, "entries").values()) == entries
    assert by_day(played, "not_entered") == ({} if exit_on else {past.day(9 * DAY): {"already in it": 1}})


def test_a_backtest_of_a_draft_counts_entries_and_texts_by_day(desk, past):
    first, second = desk.customer("C1"), desk.customer("C2")
    past.opt_in(20 * DAY)
    past.sale(first, 10 * DAY)
    past.sale(second, 10 * DAY)
    past.sale(first, 5 * DAY)
    past.sale(first, 40 * DAY)
    past.sale(None, 3 * DAY)
    past.sale(first, 3 * DAY, kind="RETURN")
    past.sale(first, 3 * DAY, late=8 * DAY)
    played = past.play(TEXT)
    assert by_day(played, "entries") == {past.day(10 * DAY): 2, past.day(5 * DAY): 1}
    assert by_day(played, "texts") == {past.day(10 * DAY): 1, past.day(5 * DAY): 1}
    assert by_day(played, "skipped") == {past.day(10 * DAY): {"no_consent": 1}}
    assert (played["entries"], played["texts"], played["outcomes"]) == (3, 2, {"completed": 3})
    assert len(played["by_day"]) == 30
    assert "today's attributes" in played["note"]


def test_nothing_is_sent_and_nothing_can_be_written(desk, past):
    customer = desk.customer()
    past.opt_in(20 * DAY)
    past.sale(customer, 10 * DAY)
    draft = desk.journey(TEXT, {"do": "set_attribute", "key": "seen", "value": "yes"}, live=False)
    before = count_rows(desk)
    assert before["sales_events"] == 1
    assert past.play_journey(draft)["texts"] == 1
    desk.work()
    assert count_rows(desk) == before
    assert desk.sent == []
    assert desk.sql("SELECT attributes FROM profiles WHERE organization_id = %s") == [({},)]
    texting = desk.texting

    async def write_afterwards(tx):
        await backtest(tx, desk.organization_id, draft, texting=texting, days=30)
        await tx.execute("UPDATE profiles SET first_name = 'X' WHERE organization_id = %s", (desk.organization_id,))

    with pytest.raises(ReadOnlySqlTransaction):
        desk.do(write_afterwards)


def test_consent_is_judged_as_it_stood_at_that_moment(desk, past):
    customer = desk.customer()
    past.sale(customer, 12 * DAY)
    past.opt_in(10 * DAY)
    past.sale(customer, 8 * DAY)
    past.opt_out(6 * DAY)
    past.sale(customer, 4 * DAY)
    branch = {"do": "branch", "if": {"type": "subscribed"}, "then": [{"do": "exit"}]}
    assert past.play(branch)["outcomes"] == {"completed": 2, "exited": 1}
    played = past.play(TEXT)
    assert by_day(played, "texts") == {past.day(8 * DAY): 1}
    assert by_day(played, "skipped") == {past.day(12 * DAY): {"no_consent": 1}, past.day(4 * DAY): {"no_consent": 1}}


def test_a_consent_that_arrived_later_did_not_count_before(desk, past):
    customer = desk.customer()
    past.opt_in(5 * DAY, late=10 * DAY)
    past.sale(customer, 8 * DAY)
    assert past.play(TEXT)["skipped"] == {"no_consent": 1}


def test_missing_values_too_long_texts_and_caps_are_reasons_as_in_truth(desk, past):
    customer = desk.customer()
    past.opt_in(20 * DAY)
    past.sale(customer, 10 * DAY)
    missing = {"do": "send_text", "text": "{{ profile.last_name }}"}
    long = {"do": "send_text", "text": "a" * 1_990}
    played = past.play(missing, long, TEXT, TEXT, {"do": "wait", "days": 2}, TEXT)
    assert played["skipped"] == {"cap": 1, "missing_value: profile.last_name": 1, "too_long": 1}
    assert by_day(played, "texts") == {past.day(10 * DAY): 1, past.day(8 * DAY): 1}


def test_a_text_waits_for_its_hours_and_is_judged_again_then(desk, past):
    customer = desk.customer()
    opens = (past.now - 5 * DAY).astimezone(ZoneInfo("Europe/Paris")).replace(hour=0, minute=0)
    desk.settings(SmsSettings(brand="Shop", rules={"FR": only_on(opens.weekday())}))
    past.opt_in(20 * DAY)
    past.sale(customer, 7 * DAY)
    assert by_day(past.play(TEXT), "texts") == {opens.astimezone(past.zone).date().isoformat(): 1}
    past.opt_out(6.9 * DAY)
    played = past.play(TEXT)
    assert (played["texts"], played["skipped"]) == (0, {"left": 1})
    assert played["outcomes"] == {"left by a withdrawal": 1}


def test_a_wait_for_a_purchase_goes_on_by_the_sales_that_followed(desk, past):
    bought, not_bought, waiting = desk.customer("C1"), desk.customer("C2"), desk.customer("C3")
    past.sale(bought, 20 * DAY, amount=5000)
    past.sale(bought, 18 * DAY)
    past.sale(not_bought, 20 * DAY, amount=5000)
    past.sale(not_bought, 14 * DAY)
    past.sale(waiting, 2 * DAY, amount=5000)
    step = {"do": "wait_for_purchase", "days": 5, "then": [{"do": "exit"}]}
    played = past.play(step, filter={"type": "amount", "at_least_cents": 5000})
    assert played["outcomes"] == {"exited": 1, "completed": 1}
    assert played["still_waiting"] == 1
    assert played["not_entered"] == {"filter": 2}


@pytest.mark.parametrize(
    ("exit_on", "outcomes"),
    [
        ([], {"completed": 1}),
        (["return"], {"left by a return": 1}),
        (["purchase"], {"left by a purchase": 1, "completed": 1}),
    ],
)
def test_a_later_sale_ends_a_run_that_leaves_by_it(desk, past, exit_on, outcomes):
    """The purchase that ended a run may start another."""
    customer = desk.customer()
    past.sale(customer, 20 * DAY)
    past.sale(customer, 18 * DAY, kind="RETURN" if "return" in exit_on else "PURCHASE")
    assert past.play({"do": "wait", "days": 5}, exit_on=exit_on)["outcomes"] == outcomes


def test_a_later_withdrawal_ends_a_run(desk, past):
    customer = desk.customer()
    past.opt_in(25 * DAY)
    past.sale(customer, 20 * DAY)
    past.opt_out(18 * DAY)
    played = past.play({"do": "wait", "days": 5}, TEXT)
    assert (played["outcomes"], played["texts"], played["skipped"]) == ({"left by a withdrawal": 1}, 0, {})


@pytest.mark.parametrize(
    ("reentry", "entries", "not_entered"),
    [
        ({"policy": "always"}, 2, {"already in it": 1}),
        ({"policy": "never"}, 1, {"already in it": 1, "reentry": 1}),
        ({"policy": "after_days", "days": 9}, 2, {"already in it": 1}),
        ({"policy": "after_days", "days": 11}, 1, {"already in it": 1, "reentry": 1}),
    ],
)
def test_one_run_at_a_time_and_again_as_the_policy_says(desk, past, reentry, entries, not_entered):
    customer = desk.customer()
    past.sale(customer, 20 * DAY)
    past.sale(customer, 19 * DAY)
    past.sale(customer, 10 * DAY)
    played = past.play({"do": "wait", "days": 2}, reentry=reentry)
    assert (played["entries"], played["not_entered"]) == (entries, not_entered)


def test_earlier_purchases_are_those_recorded_by_then(desk, past):
    customer = desk.customer()
    past.sale(customer, 20 * DAY)
    past.sale(customer, 10 * DAY)
    played = past.play({"do": "exit"}, filter={"type": "purchases", "in_days": 365, "none": True})
    assert by_day(played, "entries") == {past.day(20 * DAY): 1}
    assert played["not_entered"] == {"filter": 1}


def test_opt_ins_are_played_too(desk, past):
    desk.customer("C1")
    desk.customer("C2")
    past.opt_in(10 * DAY)
    past.opt_out(8 * DAY)
    past.opt_in(5 * DAY)
    past.opt_in(4 * DAY, "C2", "+33612345679", late=8 * DAY)
    played = past.play(TEXT, trigger="opt_in")
    assert by_day(played, "texts") == {past.day(10 * DAY): 1, past.day(5 * DAY): 1}
    assert played["entries"] == 2


def test_a_split_takes_the_way_that_runs_take(desk, past):
    customers = [desk.customer(f"C{number}") for number in range(12)]
    journey = desk.journey({"do": "split", "percent": 50, "then": [{"do": "exit"}]})
    for customer in customers:
        past.sale(customer, 2 * DAY)
        desk.sale(customer)
    desk.work()
    real = desk.outcomes(journey)
    played = past.play_journey(journey, days=3)["outcomes"]
    assert played == {outcome: 2 * real.count(outcome) for outcome in sorted(set(real)) if outcome}


def test_too_many_facts_are_cut_and_the_report_says_so(desk, past):
    customer = desk.customer()
    for days in (9, 6, 3):
        past.sale(customer, days * DAY)
    whole, cut = past.play({"do": "exit"}, facts_max=3), past.play({"do": "exit"}, facts_max=2)
    assert (whole["is_cut"], whole["facts"], whole["entries"]) == (False, 3, 3)
    assert (cut["is_cut"], cut["facts"], cut["entries"]) == (True, 2, 2)
    for number in range(3):
        desk.customer(f"N{number}")
        past.opt_in((9 - number) * DAY, f"N{number}", f"+3361234567{number}")
    cut = past.play({"do": "exit"}, trigger="opt_in", facts_max=2)
    assert (cut["is_cut"], cut["facts"], cut["entries"]) == (True, 2, 2)


def test_an_earlier_version_can_be_played_and_one_that_cannot_run_says_why(desk, past):
    past.sale(desk.customer(), DAY)
    journey = desk.journey({"do": "exit"}, live=False)
    broken = {"name": "J", "trigger": "purchase", "steps": [{"do": "wait"}]}
    definition = read_definition(json.dumps(broken).encode())
    desk.do(lambda tx: manage.update_journey(tx, desk.organization_id, journey, definition))
    assert past.play_journey(journey, version=1)["outcomes"] == {"exited": 1}
    with pytest.raises(DefinitionRefused, match="The wait has no length"):
        past.play_journey(journey)
    with pytest.raises(NotPossible, match="1 to 90 days"):
        past.play_journey(journey, version=1, days=91)


def test_a_cap_of_the_organization_counts_over_several_entries(desk, past):
    customer = desk.customer()
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, caps=(Cap(texts=2, hours=30 * 24),)))
    past.opt_in(25 * DAY)
    for days in (20, 15, 10):
        past.sale(customer, days * DAY)
    played = past.play(TEXT)
    assert (played["texts"], by_day(played, "skipped")) == (2, {past.day(10 * DAY): {"cap": 1}})
