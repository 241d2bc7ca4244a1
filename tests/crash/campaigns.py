"""Checks C1 to C4, the invariants of campaigns, on the texts that left, the rows, and the observations of marketers."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from tests.crash.clients import OPT_INS
from tests.crash.external import Arrival
from tests.crash.journal import Journal
from tests.crash.marketers import LAST_DIAL_S, Campaign
from tests.crash.shops import CUSTOMERS, Shop

from regulars.kit.ids import TEXT

DONE: Final = {"ended", "cancelled"}
# Recipients whose state differs from that of their text; a text that was never requested has no row.
UNLIKE: Final = """
SELECT r.profile_id, r.outcome, t.state FROM campaign_recipients r
LEFT JOIN texts t ON t.organization_id = r.organization_id AND t.origin_kind = 'campaign'
    AND t.origin_id = r.campaign_id AND t.step = r.profile_id::text
WHERE r.organization_id = %s AND CASE
    WHEN r.arm <= 0 THEN t.id IS NOT NULL OR r.outcome NOT IN ('held_out', 'global_holdout')
    WHEN t.id IS NULL THEN r.outcome NOT IN ('expired', 'skipped')
    ELSE t.state <> r.outcome END
"""
LATE: Final = """
SELECT count(*) FROM campaign_recipients r
JOIN profiles p ON p.organization_id = r.organization_id AND p.id = r.profile_id
JOIN campaigns c ON c.organization_id = r.organization_id AND c.id = r.campaign_id
WHERE r.organization_id = %s AND p.created_at > c.frozen_at
"""


def check_campaign(url: str, shop: Shop, campaign: Campaign, arrivals: list[Arrival]) -> dict[str, int]:
    """Checks C1, C3 and C4; returns the outcomes."""
    assert not campaign.faults, f"{campaign.faults[0]} ({len(campaign.faults)} findings)"
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        def rows(query: str) -> list[Any]:
            return connection.execute(query, (shop.organization_id,)).fetchall()  # type: ignore[arg-type]  # literals

        texts = {
            TEXT.encode(row[0]): row[1]
            for row in rows("SELECT id, profile_id FROM texts WHERE organization_id = %s AND origin_kind = 'campaign'")
        }
        [(state, recipients)] = rows("SELECT state, recipients FROM campaigns WHERE organization_id = %s")
        outcomes = dict(
            rows(
                "SELECT outcome, sum(recipients)::integer FROM campaign_totals WHERE organization_id = %s AND arm >= 0"
                " GROUP BY outcome"
            )
        )
        stored = dict(
            # Customers of the global holdout are in no arm.
            rows(
                "SELECT outcome, count(*) FROM campaign_recipients WHERE organization_id = %s AND arm >= 0"
                " GROUP BY outcome"
            )
        )
        unlike = rows(UNLIKE)
    _check_once(texts, arrivals)
    _check_stopped(campaign, [it for it in arrivals if it.text_id in texts])
    assert state in DONE, f"STUCK: the campaign of {shop.tag} is {state}"
    _check_sum(recipients, outcomes, stored, unlike)
    return {outcome: times for outcome, times in outcomes.items() if times}


def _check_once(texts: Mapping[str, Any], arrivals: list[Arrival]) -> None:
    """C1: at most one text per campaign and person, and per number."""
    people = [profile for profile in texts.values() if profile is not None]
    twice = [profile for profile, times in Counter(people).items() if times > 1]
    assert not twice, f"C1: {len(twice)} people have several texts of a campaign"
    numbers = Counter(it.number for it in arrivals if it.is_taken and it.text_id in texts)
    often = [number for number, times in numbers.items() if times > 1]
    assert not often, f"C1: {len(often)} numbers got a campaign more than once: {often[:5]}"


def _check_stopped(campaign: Campaign, arrivals: list[Arrival]) -> None:
    """C3: the last call to the provider is at most two seconds after the response to a pause."""
    for paused_at, resumed_at in campaign.pauses:
        late = [it.at - paused_at for it in arrivals if paused_at + LAST_DIAL_S < it.at < resumed_at]
        assert not late, f"C3: {len(late)} texts left up to {max(late):.1f} s after the answer to a pause"


def _check_sum(
    recipients: int | None, outcomes: Mapping[str, int], stored: Mapping[str, int], unlike: list[Any]
) -> None:
    """C4: outcomes add up to the audience and match the texts; rows of erased customers are deleted."""
    least = min(outcomes.values(), default=0)
    assert least >= 0, f"C4: an outcome counts {least}"
    total = sum(outcomes.values())
    assert recipients in {None, total}, f"C4: {recipients} recipients, and outcomes add up to {total}"
    more = [outcome for outcome, times in stored.items() if times > outcomes.get(outcome, 0)]
    assert not more, f"C4: more rows than the totals count: {more} of {dict(stored)} and {dict(outcomes)}"
    assert not unlike, f"C4: {len(unlike)} recipients do not say what their texts say: {unlike[:3]}"


def check_audience(url: str, shop: Shop, campaign: Campaign, journal: Journal) -> None:
    """C2: the audience has all customers who could be texted from command to freezing, and none who came later."""
    with psycopg.connect(url) as connection:
        [(frozen_at,)] = connection.execute(
            "SELECT frozen_at FROM campaigns WHERE organization_id = %s", (shop.organization_id,)
        ).fetchall()
        names = {
            row[0]
            for row in connection.execute(
                "SELECT external_id FROM campaign_recipients r JOIN profiles p ON p.organization_id = r.organization_id"
                " AND p.id = r.profile_id WHERE r.organization_id = %s",
                (shop.organization_id,),
            )
        }
        [(late,)] = connection.execute(LATE, (shop.organization_id,)).fetchall()
    if frozen_at is None:
        # The campaign was cancelled before the freezing.
        return
    withdrew = {call.subject for call in journal.calls if call.path != OPT_INS}
    missing = [
        number
        for number in range(CUSTOMERS)
        if shop.number(number) not in withdrew and shop.customer(number) not in names
    ]
    assert not missing, f"C2: customers {missing} are missing from the audience"
    assert not late, f"C2: {late} recipients came after the audience was frozen"
    gone = {
        answer.call.subject
        for answer in journal.answers
        if answer.call.subject.startswith("+") and answer.call.path != OPT_INS and answer.is_success
        if answer.at < campaign.sent_at - 1
    }
    joined = {call.body for call in journal.calls if call.path == OPT_INS}
    wrong = [
        number
        for number in range(CUSTOMERS)
        if shop.number(number) in gone
        and shop.customer(number) in names
        and not any(f'"{shop.customer(number)}"' in body for body in joined)
    ]
    assert not wrong, f"C2: customers {wrong} had withdrawn before, and are in the audience"
