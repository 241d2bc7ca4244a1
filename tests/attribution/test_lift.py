"""Lift of campaigns with a holdout, from the end of the campaign until the result is final."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace
from tests.campaigns.desk import OUR_LISTENERS, Desk
from tests.segments.test_members import answering
from tests.support.desks import Opened

from regulars import migrations
from regulars.attribution.lift import (
    Lift,
    LiftSource,
    LiftState,
    LiftSummary,
    SourceKind,
    merge_months,
    read_lifts,
    refresh_lifts,
    select_measured,
    summarise,
)
from regulars.attribution.lift_queue import LiftQueue
from regulars.campaigns import manage
from regulars.campaigns.facts import CampaignEnded
from regulars.cli.attribution import _lift_as_data
from regulars.experiments.effect import compare
from regulars.experiments.sums import ArmSums
from regulars.kit.db import Tx
from regulars.work.outbox import OutboxQueue
from regulars.worker import LISTENERS

# So many that chance leaves no arm of half of them empty.
CROWD = 40


class Undo(Exception):
    """Rolls a transaction back."""


NO_CONDITION: dict[str, Any] = {"type": "all", "of": []}


class LiftDesk(Desk):
    def sent(self, **more: Any) -> UUID:
        """A campaign that ended."""
        campaign_id = self.send(**{"holdout_percent": 50, **more})
        self.work()
        self.alter("UPDATE campaigns SET due_at = now() - interval '1 s', not_after = now() WHERE organization_id = %s")
        self.feed()
        assert self.load_row(campaign_id).state == "ended"
        self.drain()
        return campaign_id

    def drain(self) -> None:
        self.turn(OutboxQueue({**OUR_LISTENERS, CampaignEnded: LISTENERS[CampaignEnded]}))

    def move_to(self, campaign_id: UUID, *, days_ago: int) -> None:
        """As if the campaign had been sent so many days ago, before its lift is looked at."""
        [(at,)] = self.sql("SELECT ended_at FROM campaigns WHERE organization_id = %s AND id = %s", campaign_id)
        given = self.moment(at, timedelta(days=days_ago)), self.organization_id, campaign_id
        for statement in (
            "UPDATE campaign_recipients SET fed_at = %s WHERE organization_id = %s AND campaign_id = %s AND arm > 0",
            "UPDATE campaigns SET frozen_at = %s WHERE organization_id = %s AND id = %s",
        ):
            self.do(lambda tx, statement=statement: tx.execute(statement, given))

    def close_window(self, campaign_id: UUID, *, days_ago: int) -> None:
        """As if the last day of the window were so many days ago."""
        [lift, *_] = self.lifts(campaign_id)
        by = self.query(NO_CONDITION).today - timedelta(days=days_ago) - lift.last_day
        self.do(
            lambda tx: tx.execute(
                "UPDATE lifts SET first_day = %s, last_day = %s WHERE organization_id = %s",
                (lift.first_day + by, lift.last_day + by, self.organization_id),
            )
        )

    def compute(self, *, is_due: bool = True) -> None:
        if is_due:
            self.alter(
                "UPDATE lifts SET due_at = now() - interval '1 s' WHERE organization_id = %s AND due_at IS NOT NULL"
            )

        async def run() -> None:
            async with answering(self, self.path) as analysis:
                queue = LiftQueue(analysis, self.database)
                await queue.run_pass(self.database, self.organization_id)
                await queue.finish()

        self.runner.run(run())

    def lifts(self, *ids: UUID) -> list[Lift]:
        return self.do(lambda tx: read_lifts(tx, self.organization_id, SourceKind.CAMPAIGN, ids))

    def arms(self, campaign_id: UUID) -> tuple[list[str], list[str]]:
        """The names of those who were to be texted, and of those held out."""
        rows = self.sql(
            "SELECT profile_id, arm FROM campaign_recipients WHERE organization_id = %s AND campaign_id = %s",
            campaign_id,
        )
        arms = dict(rows)
        return (
            [name for name, it in self.people.items() if arms.get(it, 0) > 0],
            [name for name, it in self.people.items() if arms.get(it) == 0],
        )


@pytest.fixture
def desk(opened: Opened, tmp_path: Path) -> LiftDesk:
    return LiftDesk(*opened, tmp_path / "analysis")


def test_a_result_comes_when_the_window_closes_and_is_final_30_days_later(desk):
    desk.crowd(CROWD)
    campaign_id = desk.sent()
    treated, held_out = desk.arms(campaign_id)
    assert treated
    assert held_out
    desk.move_to(campaign_id, days_ago=7)
    desk.compute()
    [lift] = desk.lifts(campaign_id)
    assert (lift.state, lift.currency, lift.comparison) == (LiftState.OPEN, None, None)
    assert (lift.last_day - lift.first_day).days == 7
    desk.compute(is_due=False)
    assert desk.lifts(campaign_id) == [lift]

    line = {"product": {"external_id": "A"}, "total_price_cents": 400}
    desk.sale(treated[0], amount=1000, ago=timedelta(days=3), lines=[line])
    desk.sale(treated[0], amount=400, ago=timedelta(days=2), kind="RETURN", lines=[line])
    desk.sale(held_out[0], amount=500, ago=timedelta(days=3), currency="CHF")
    desk.sale(held_out[0], amount=900, ago=timedelta(days=30))
    desk.drain()
    desk.close_window(campaign_id, days_ago=1)
    desk.compute()
    chf, eur = sorted(desk.lifts(campaign_id), key=lambda it: it.currency)
    assert {chf.state, eur.state} == {LiftState.PROVISIONAL}
    assert (eur.treated, eur.held_out) == (len(treated), len(held_out))
    assert (eur.buyers, chf.buyers) == (1, 1)
    assert eur.has_too_few_buyers
    assert eur.final_on == eur.last_day + timedelta(days=31)
    # The purchase less its return, and the year before the freeze.
    result = stored_sums(desk, "EUR")
    assert (result["treated"]["spend_cents"], result["held_out"]["spend_cents"]) == (600, 0)
    assert (result["treated"]["before_cents"], result["held_out"]["before_cents"]) == (0, 900)

    desk.close_window(campaign_id, days_ago=31)
    desk.compute()
    assert {it.state for it in desk.lifts(campaign_id)} == {LiftState.FINAL}
    assert desk.sql("SELECT due_at FROM lifts WHERE organization_id = %s") == [(None,)]


def stored_sums(desk: LiftDesk, currency: str) -> dict[str, Any]:
    [(result,)] = desk.sql("SELECT result FROM lifts WHERE organization_id = %s")
    [found] = [it for it in result["sums"] if it["currency"] == currency]
    return found


def test_a_provisional_result_is_computed_again_daily_and_on_demand_and_without_erased_customers(desk):
    desk.crowd(CROWD)
    campaign_id = desk.sent()
    treated, held_out = desk.arms(campaign_id)
    desk.move_to(campaign_id, days_ago=9)
    desk.compute()
    [(due_in,)] = desk.sql("SELECT due_at - now() FROM lifts WHERE organization_id = %s")
    assert timedelta(hours=23) < due_in <= timedelta(hours=24)
    desk.sale(treated[0], amount=1000, ago=timedelta(days=5))
    desk.sale(treated[1], amount=700, ago=timedelta(days=5))
    desk.drain()
    desk.erase(treated[1])
    desk.erase(held_out[0])
    desk.drain()
    assert desk.do(lambda tx: refresh_lifts(tx, desk.organization_id)) == 1
    desk.compute(is_due=False)
    [lift] = desk.lifts(campaign_id)
    assert (lift.treated, lift.held_out) == (len(treated) - 1, len(held_out) - 1)
    assert stored_sums(desk, "EUR")["treated"]["spend_cents"] == 1000


def test_a_final_result_stays_whatever_happens_later(desk):
    desk.crowd(CROWD)
    campaign_id = desk.sent()
    treated, _ = desk.arms(campaign_id)
    desk.move_to(campaign_id, days_ago=60)
    desk.sale(treated[0], amount=1000, ago=timedelta(days=55))
    desk.drain()
    desk.compute()
    before = desk.lifts(campaign_id)
    assert [it.state for it in before] == [LiftState.FINAL]
    desk.erase(treated[0])
    desk.sale(treated[1], amount=1000, ago=timedelta(days=55))
    desk.drain()
    assert desk.do(lambda tx: refresh_lifts(tx, desk.organization_id)) == 0
    desk.compute()
    assert desk.lifts(campaign_id) == before


def test_a_campaign_without_a_holdout_has_no_lift_and_one_that_is_sending_has_none_yet(desk):
    desk.crowd(3)
    without, sending = desk.sent(holdout_percent=0), desk.send(holdout_percent=50)
    assert [it.state for it in desk.lifts(without)] == [LiftState.NO_HOLDOUT]
    assert [it.state for it in desk.lifts(sending)] == [LiftState.OPEN]
    assert desk.sql("SELECT count(*) FROM lifts WHERE organization_id = %s") == [(0,)]


def test_a_cancelled_campaign_is_measured_if_a_text_was_sent(desk):
    desk.crowd(CROWD)
    unsent = desk.send(holdout_percent=50)
    desk.act(manage.cancel, unsent)
    desk.drain()
    desk.compute()
    [lift] = desk.lifts(unsent)
    assert (lift.state, lift.reason, lift.currency) == (LiftState.FINAL, "No text was sent.", None)
    assert summarise(merge_months([lift], "EUR"), "EUR") == LiftSummary("no_text")
    assert _lift_as_data([lift], "EUR")["lift"] == "no_text"
    part = desk.send(holdout_percent=50)
    desk.work()
    desk.act(manage.cancel, part) if desk.load_row(part).state != "ended" else None
    desk.drain()
    desk.compute()
    assert [it.state for it in desk.lifts(part)] == [LiftState.OPEN]


def test_an_update_measures_campaigns_that_ended_before_it(desk):
    desk.crowd(3)
    campaign_id, _ = desk.sent(), desk.sent(holdout_percent=0)
    migration = (Path(migrations.__path__[0]) / "0135_lifts.sql").read_text("utf-8")
    found = []

    async def act(tx: Tx) -> None:
        await tx.execute("DELETE FROM lifts")
        await tx.execute(migration[migration.index("INSERT INTO lifts") :])
        found.extend(
            await tx.fetch(
                "SELECT source_id, state, held_out_share, due_at <= now() FROM lifts WHERE organization_id = %s",
                (desk.organization_id,),
            )
        )
        raise Undo

    with pytest.raises(Undo):
        desk.do(act)
    assert found == [(campaign_id, "open", 0.5, True)]


SOURCE = LiftSource(SourceKind.CAMPAIGN, UUID(int=1))
ARMS = ArmSums(1000, 300, 400_000, 6e8), ArmSums(1000, 200, 200_000, 4e8)
LOT = compare(*ARMS)
UNSENT = Lift(source=SOURCE, state=LiftState.FINAL, reason="No text was sent.")


@pytest.mark.parametrize(
    ("lifts", "state"),
    [
        ([], "no_holdout"),
        ([Lift(source=SOURCE, state=LiftState.NO_HOLDOUT)], "no_holdout"),
        ([Lift(source=SOURCE, state=LiftState.OPEN), Lift(source=SOURCE, state=LiftState.NO_HOLDOUT)], "open"),
        ([Lift(source=SOURCE, state=LiftState.FINAL, currency="EUR")], "too_few"),
        ([Lift(source=SOURCE, state=LiftState.FINAL, currency="CHF", arms=ARMS)], "too_few"),
        ([UNSENT], "no_text"),
        ([UNSENT, Lift(source=SOURCE, state=LiftState.OPEN)], "open"),
        ([UNSENT, Lift(source=SOURCE, state=LiftState.OUTSIDE)], "outside"),
        ([UNSENT, Lift(source=SOURCE, state=LiftState.NO_HOLDOUT)], "no_holdout"),
    ],
)
def test_a_summary_says_why_nothing_was_measured(lifts, state):
    assert summarise(merge_months(lifts, "EUR"), "EUR") == LiftSummary(state)


def test_the_extra_of_several_lifts_is_added_by_currency():
    final = Lift(source=SOURCE, state=LiftState.FINAL, currency="EUR", arms=ARMS)
    others = [replace(final, currency="CHF"), Lift(source=SOURCE, state=LiftState.OPEN)]
    one = summarise(merge_months([final, *others], "EUR"), "EUR")
    assert one == LiftSummary("final", LOT.extra_cents)
    two = summarise(merge_months([final, replace(final, state=LiftState.PROVISIONAL)], "EUR"), "EUR")
    assert two.state == "provisional"
    assert two.extra_cents.value == 2 * LOT.extra_cents.value
    assert two.extra_cents.variance == 2 * LOT.extra_cents.variance


def month(period, treated, held_out, *, state=LiftState.FINAL, share=0.1, journey=1):
    return Lift(
        source=LiftSource(SourceKind.JOURNEY, UUID(int=journey), "split", period),
        state=state,
        currency="EUR",
        treated=treated.people,
        held_out=held_out.people,
        buyers=treated.buyers + held_out.buyers,
        arms=(treated, held_out),
        held_out_share=share,
    )


SMALL = ArmSums(9_000, 400, 400_000, 6e8), ArmSums(1_000, 40, 30_000, 4e7)


def test_months_of_a_journey_with_too_few_buyers_are_compared_together():
    months = [month(f"2026-0{number}", *SMALL) for number in (1, 2, 3)]
    assert all(it.has_too_few_buyers for it in months)
    assert summarise(merge_months(months[:2], "EUR"), "EUR") == LiftSummary("too_few")
    [whole] = select_measured(months, "EUR")
    expected = compare(*(arm + arm + arm for arm in SMALL))
    assert whole.comparison == expected
    assert whole.periods == ("2026-01", "2026-02", "2026-03")
    assert summarise(merge_months(months, "EUR"), "EUR") == LiftSummary("final", expected.extra_cents)
    provisional = [*months[:2], replace(months[2], state=LiftState.PROVISIONAL)]
    assert summarise(merge_months(provisional, "EUR"), "EUR").state == "provisional"


def test_only_months_of_one_split_and_share_are_compared_together():
    months = [month(f"2026-0{number}", *SMALL) for number in (1, 2)]
    for other in (month("2026-03", *SMALL, share=0.2), month("2026-03", *SMALL, journey=2)):
        assert summarise(merge_months([*months, other], "EUR"), "EUR") == LiftSummary("too_few")


def test_months_with_enough_buyers_count_by_themselves():
    large = month("2026-04", *(arm + arm + arm for arm in SMALL))
    small = [month(f"2026-0{number}", *SMALL) for number in (1, 2, 3)]
    assert [it.periods for it in select_measured([large, *small], "EUR")] == [
        ("2026-04",),
        ("2026-01", "2026-02", "2026-03"),
    ]
    two = summarise(merge_months([large, *small], "EUR"), "EUR").extra_cents
    assert two.value == pytest.approx(2 * large.extra_cents.value)
    assert two.variance == pytest.approx(2 * large.extra_cents.variance)


def test_the_command_shows_what_was_extra_beside_what_is_attributed():
    assert _lift_as_data([], "EUR") == {
        "lift": "no_holdout", "extra_net_cents": None, "extra_low_cents": None, "extra_high_cents": None,
        "sample_ratio_alarm": False,
    }  # fmt: skip
    final = Lift(source=SOURCE, state=LiftState.FINAL, currency="EUR", arms=ARMS)
    shown = _lift_as_data([final], "EUR")
    assert (shown["lift"], shown["extra_net_cents"]) == ("final", 200_000)
    assert shown["extra_low_cents"] < 200_000 < shown["extra_high_cents"]
    assert _lift_as_data([replace(final, sample_ratio_p=0.0009)], "EUR")["sample_ratio_alarm"]
