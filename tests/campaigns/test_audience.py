"""Whom a campaign reaches: the same as a plain count over the customers, at the moment of its start."""

import random

from regulars.campaigns import manage

TIERS = ("gold", "silver", "bronze")


def test_the_recipients_are_those_whom_a_plain_count_finds(desk):
    chance = random.Random(30)
    tiers: dict[str, str] = {}
    for tier in TIERS:
        first = len(desk.people)
        desk.crowd(12, tier=tier)
        tiers |= {f"C{number}": tier for number in range(first, len(desk.people))}
    withdrawn = set(chance.sample(sorted(tiers), 9))
    buyers = set(chance.sample(sorted(tiers), 9))
    for name in withdrawn:
        desk.opt_out(f"+336123{int(name[1:]):05d}")
    for name in buyers:
        desk.sale(name)
    for number in range(5):
        desk.customer(f"never asked {number}", tier="gold")
    include = [_of_tier(desk, tier) for tier in ("gold", "silver")]
    bought = {"type": "bought", "window": {"last_days": 7}}
    campaign = desk.send(include=include, exclude=[desk.segment(bought, name="Bought")])
    # A change after the start adds and removes no customer.
    desk.crowd(1, tier="gold")
    desk.sale("C0")
    desk.drain()
    desk.feed()
    expected = {name for name, tier in tiers.items() if tier != "bronze"} - buyers - withdrawn
    rows = desk.sql(
        "SELECT external_id FROM campaign_recipients r JOIN profiles p ON p.organization_id = r.organization_id"
        " AND p.id = r.profile_id WHERE r.organization_id = %s AND r.campaign_id = %s",
        campaign,
    )
    assert {row[0] for row in rows} == expected
    left_out = desk.sql(
        "SELECT reason, recipients FROM campaign_totals WHERE organization_id = %s AND campaign_id = %s AND arm = -1"
        " AND recipients > 0 ORDER BY reason",
        campaign,
    )
    unreachable = {name for name in withdrawn - buyers if tiers[name] != "bronze"}
    assert left_out == [("never_asked", 5), ("withdrawn", len(unreachable))]


def _of_tier(desk, tier):
    return desk.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": tier}, name=tier)


def test_a_text_that_waits_at_the_last_moment_is_not_sent(desk):
    desk.crowd(3)
    campaign = desk.send()
    desk.feed()
    assert desk.outcomes(campaign) == {"queued": 3}
    desk.alter("UPDATE campaigns SET not_after = now() - interval '1 s' WHERE organization_id = %s")
    desk.alter("UPDATE texts SET expires_at = now() - interval '1 s' WHERE organization_id = %s")
    desk.work()
    assert desk.gateway.sent == []
    assert desk.load(campaign).row.state == "ended"
    assert desk.texts(campaign) == [("skipped", "expired")] * 3


def test_texts_of_a_campaign_expire_with_it(desk):
    desk.crowd(1)
    campaign = desk.send()
    desk.feed()
    [(expires_at,)] = desk.sql("SELECT expires_at FROM texts WHERE organization_id = %s AND origin_id = %s", campaign)
    assert expires_at == desk.load(campaign).row.not_after
    desk.act(manage.cancel, campaign)
