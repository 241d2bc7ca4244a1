"""A campaign from the frozen audience to the last outcome: everyone once, and the outcomes add up."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from tests.campaigns.test_proof import read_proof
from tests.experiments.test_holdout import draw_all
from tests.support.gateway import ALWAYS

from regulars.campaigns import manage
from regulars.campaigns.run.feed import FED_AT_ONCE_MAX
from regulars.experiments.holdout.settings import change_holdout
from regulars.kit.ids import CAMPAIGN
from regulars.texts.providers.base import Accepted, Refused
from regulars.texts.settings.model import Cap, SendHoursRule, SmsSettings
from regulars.texts.stops import hold, release

NEVER = SendHoursRule(days=(None,) * 7)


def test_each_recipient_gets_one_text_with_their_own_values(desk):
    people = desk.crowd(5)
    desk.customer("nobody")
    desk.drain()
    campaign = desk.send(variants=[{"text": "Hello {{ profile.first_name }} from {{ store.name | default('us') }}"}])
    desk.work()
    row = desk.load(campaign).row
    assert (row.state, row.recipients) == ("ended", 5)
    assert desk.outcomes(campaign) == {"sent": 5}
    assert {text.body.split()[2] for text in desk.gateway.sent} == {f"Zoé{number}" for number in range(len(people))}
    # A second campaign does not repeat the first, and the caps of the numbers count both.
    again = desk.send()
    desk.work()
    assert desk.outcomes(again) == {"skipped": 5}
    assert {reason for _, reason in desk.texts(again)} == {"cap"}


def test_a_segment_with_a_fault_stops_the_campaign_with_a_sentence(desk):
    desk.crowd(1, tier="gold")
    gold = desk.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": "gold"}, name="Gold")
    campaign = desk.draft(segment=gold)
    desk.act(manage.schedule, campaign, confirmed_recipients=1, is_now=True)
    desk.alter("UPDATE profile_attributes SET type = 'date' WHERE organization_id = %s AND key = 'tier'")
    desk.start()
    row = desk.load(campaign).row
    assert row.state == "paused"
    assert "The segment Gold has a fault" in row.reason


def test_a_campaign_that_cannot_be_read_pauses_and_stops_no_other(desk):
    desk.crowd(2)
    damaged, other = desk.draft(), desk.draft()
    for campaign in (damaged, other):
        desk.act(manage.schedule, campaign, confirmed_recipients=2, is_now=True)
    broken = """UPDATE campaigns SET definition = jsonb_set(definition::jsonb, '{include,1}', '""')::json"""
    desk.alter(f"{broken} WHERE organization_id = %s AND id = %s", damaged)
    desk.drain()
    desk.start()
    row = desk.load(damaged).row
    assert (row.state, "cannot be read. include[1]" in (row.reason or "")) == ("paused", True)
    assert desk.load(other).row.frozen_at is not None
    # Saving it again repairs it.
    repaired = desk.load(damaged).definition
    desk.do(lambda tx: manage.update_campaign(tx, desk.organization_id, damaged, repaired))
    assert desk.act(manage.schedule, damaged, confirmed_recipients=2, is_now=True).state == "scheduled"


def test_a_campaign_waits_until_the_changes_before_its_start_are_counted(desk):
    desk.crowd(2)
    campaign = desk.draft(
        exclude=[desk.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": "x"})]
    )
    desk.customer("C1", tier="x")
    desk.act(manage.schedule, campaign, confirmed_recipients=2, is_now=True)
    desk.start()
    row = desk.load(campaign).row
    assert (row.state, row.reason) == ("scheduled", "The last changes of customers are still being counted.")
    desk.drain()
    desk.alter("UPDATE campaigns SET freeze_at = now() - interval '1 s' WHERE organization_id = %s")
    desk.start()
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 1}


def test_the_facts_of_its_texts_are_recorded_until_they_change_no_more(desk):
    interests = "SELECT needed_by FROM interests WHERE organization_id = %s AND needed_by LIKE 'campaign%%'"
    desk.crowd(1)
    campaign = desk.send()
    desk.work()
    desk.act(manage.archive, campaign)
    desk.feed()
    assert len(desk.sql(interests)) == 1
    desk.alter(
        "UPDATE campaigns SET ended_at = now() - interval '8 days', due_at = now() - interval '1 s' WHERE organization_id = %s"
    )
    desk.feed()
    assert desk.sql(interests) == []
    assert desk.sql("SELECT due_at FROM campaigns WHERE organization_id = %s") == [(None,)]


def test_a_holdout_gets_nothing_and_variants_share_the_rest(desk):
    desk.crowd(60)
    campaign = desk.send(
        holdout_percent=30, variants=[{"text": "A {{ brand }}", "share": 50}, {"text": "B {{ brand }}", "share": 50}]
    )
    desk.work()
    outcomes = desk.outcomes(campaign)
    assert outcomes["held_out"] + outcomes["sent"] == 60
    assert 5 < outcomes["held_out"] < 35
    arms = Counter(text.body[0] for text in desk.gateway.sent)
    assert min(arms["A"], arms["B"]) > 5
    held_out = desk.sql(
        "SELECT profile_id FROM campaign_recipients WHERE organization_id = %s AND campaign_id = %s AND arm = 0",
        campaign,
    )
    assert len(held_out) == outcomes["held_out"]


def test_little_is_queued_at_a_time_and_in_random_order(desk):
    people = desk.crowd(20)
    campaign = desk.send(texts_per_hour=600)
    desk.feed()
    # One minute of the rate would be ten; the bucket begins with one token.
    assert desk.outcomes(campaign) == {"queued": 1, "waiting": 19}
    desk.alter(
        "UPDATE campaigns SET due_at = now() - interval '1 s', tokens_at = now() - interval '1 hour' WHERE organization_id = %s"
    )
    desk.feed()
    assert desk.outcomes(campaign) == {"queued": 10, "waiting": 10}
    fed = desk.sql(
        "SELECT profile_id FROM campaign_recipients WHERE organization_id = %s AND campaign_id = %s"
        " AND outcome = 'queued'",
        campaign,
    )
    assert {row[0] for row in fed} != set(people[:10])
    assert FED_AT_ONCE_MAX == 256


def test_recipients_in_closed_hours_wait_outside_the_queue(desk):
    desk.crowd(2)
    desk.settings(SmsSettings(brand="Shop", rules={"FR": NEVER}))
    campaign = desk.send()
    desk.work()
    assert desk.outcomes(campaign) == {"waiting": 2}
    assert desk.texts(campaign) == []
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}))
    desk.alter("UPDATE campaign_recipients SET open_at = now() - interval '1 s' WHERE organization_id = %s")
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 2}


def test_a_local_time_is_of_each_number(desk):
    desk.crowd(1)
    # A satellite telephone has no zone: that of its home store's country counts, or the organization's.
    desk.alter(
        "UPDATE stores SET address = '{\"country_code\": \"JP\"}' WHERE organization_id = %s AND external_id = 'PAR'"
    )
    numbers = {"NY": "+12125550123", "Tokyo": "+881612345678", "somewhere": "+881612345679"}
    for name, phone in numbers.items():
        desk.person(name, phone)
    desk.sale("Tokyo", store="PAR")
    desk.drain()
    day = (datetime.now(UTC) + timedelta(days=1)).date()
    campaign = desk.draft(schedule={"start": "local", "day": day.isoformat(), "time": "10:00"})
    desk.act(manage.schedule, campaign, confirmed_recipients=4)
    # All local times have passed.
    desk.do(
        lambda tx: tx.execute(
            "UPDATE campaigns SET definition = replace(definition::text, %s, %s)::json WHERE organization_id = %s",
            (day.isoformat(), (day - timedelta(days=3)).isoformat(), desk.organization_id),
        )
    )
    desk.start()
    desk.feed()
    rows = desk.sql(
        "SELECT profile_id, open_at FROM campaign_recipients WHERE organization_id = %s AND campaign_id = %s", campaign
    )
    times = dict(rows)
    paris = times[desk.people["C0"]]
    assert times[desk.people["NY"]] - paris in {timedelta(hours=hours) for hours in (5, 6)}
    assert paris - times[desk.people["Tokyo"]] in {timedelta(hours=hours) for hours in (7, 8)}
    assert times[desk.people["somewhere"]] == paris


def test_a_campaign_that_is_sent_now_does_not_wait_for_its_schedule(desk):
    desk.crowd(1)
    day = (datetime.now(UTC) + timedelta(days=2)).date()
    campaign = desk.send(schedule={"start": "local", "day": day.isoformat(), "time": "10:00"})
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 1}


def test_what_is_left_at_the_last_moment_expires(desk):
    desk.crowd(3)
    campaign = desk.send(texts_per_hour=1)
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 1, "waiting": 2}
    desk.alter(
        "UPDATE campaigns SET not_after = now() - interval '1 s', due_at = now() - interval '1 s' WHERE organization_id = %s"
    )
    desk.feed()
    assert desk.load(campaign).row.state == "ended"
    assert desk.outcomes(campaign) == {"sent": 1, "expired": 2}
    expired = desk.sql(
        "SELECT count(*) FROM campaign_recipients WHERE organization_id = %s AND outcome = 'expired'",
    )
    assert expired == [(2,)]


def test_nothing_is_fed_while_texts_are_on_hold(desk):
    desk.crowd(2)
    campaign = desk.send()
    texting = desk.texting
    desk.do(lambda tx: hold(tx, desk.organization_id, texting, reason="Test"))
    held = desk.texting
    desk.work()
    assert desk.outcomes(campaign) == {"waiting": 2}
    desk.do(lambda tx: release(tx, desk.organization_id, held))
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 2}


def test_a_number_that_moved_to_another_customer_is_not_texted_twice(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, caps=(Cap(texts=9, hours=24),)))
    first, second = desk.crowd(2)
    campaign = desk.send(texts_per_hour=1)
    desk.work()
    [(texted, waiting)] = desk.sql(
        "SELECT (SELECT profile_id FROM campaign_recipients r WHERE r.organization_id = o.id AND outcome = 'sent'),"
        " (SELECT profile_id FROM campaign_recipients r WHERE r.organization_id = o.id AND outcome = 'waiting')"
        " FROM organizations o WHERE id = %s"
    )
    names = {first: 0, second: 1}
    desk.opt_in(f"C{names[waiting]}", f"+336123{names[texted]:05d}")
    desk.opt_out(f"+336123{names[waiting]:05d}")
    desk.drain()
    desk.alter("UPDATE campaigns SET tokens = 1 WHERE organization_id = %s")
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 1, "skipped": 1}
    assert len(desk.gateway.sent) == 1


def test_outcomes_follow_what_becomes_of_the_texts(desk):
    desk.crowd(2)

    async def answer(text):
        return Refused("30003", "unreachable") if text.phone_number.endswith("0") else Accepted(f"sid-{text.text_id}")

    desk.gateway.answer = answer
    campaign = desk.send()
    desk.work()
    assert desk.outcomes(campaign) == {"failed": 1, "sent": 1}
    totals = desk.sql(
        "SELECT outcome, reason, country, recipients, parts FROM campaign_totals WHERE organization_id = %s"
        " AND campaign_id = %s AND recipients > 0 ORDER BY outcome",
        campaign,
    )
    assert totals == [("failed", "refused", "FR", 1, 1), ("sent", "", "FR", 1, 1)]
    proof = {entry["state"]: entry for entry in read_proof(desk, campaign)}
    assert (set(proof), proof["sent"]["text"]) == ({"sent", "failed"}, desk.gateway.sent[0].body)


def test_customers_who_received_another_campaign_are_left_out(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS}, caps=()))
    desk.crowd(2)
    first = desk.send()
    desk.work()
    desk.crowd(1)
    second = desk.send(exclude_received=[CAMPAIGN.encode(first)])
    desk.work()
    assert desk.outcomes(second) == {"sent": 1}


def test_an_erased_customer_is_counted_and_their_row_is_gone(desk):
    desk.crowd(3)
    campaign = desk.send(texts_per_hour=1)
    desk.work()
    waiting = desk.sql(
        "SELECT external_id FROM profiles WHERE organization_id = %s AND id IN (SELECT profile_id"
        " FROM campaign_recipients WHERE outcome = 'waiting')"
    )
    desk.erase(waiting[0][0])
    assert desk.outcomes(campaign) == {"sent": 1, "waiting": 1, "erased": 1}
    for name in desk.people.keys() - {waiting[0][0]}:
        desk.erase(name)
    # Who had an outcome stays counted under it.
    assert desk.outcomes(campaign, gone=1) == {"sent": 1, "erased": 2}


def test_a_text_in_several_languages_is_chosen_by_an_attribute(desk):
    desk.crowd(1, language="fr")
    desk.crowd(1, language="de")
    text = {"attribute": "language", "default": "Bonjour {{ brand }}", "texts": {"DE": "Hallo {{ brand }}"}}
    campaign = desk.send(variants=[{"text": text}])
    desk.work()
    assert desk.outcomes(campaign) == {"sent": 2}
    assert {text.body.split()[0] for text in desk.gateway.sent} == {"Bonjour", "Hallo"}


def test_a_recipient_who_had_a_text_waits_for_the_caps_where_the_campaign_says_so(desk):
    desk.crowd(2)
    first = desk.send()
    desk.work()
    second = desk.send(cap="wait")
    desk.work()
    assert (desk.outcomes(first), desk.outcomes(second)) == ({"sent": 2}, {"waiting": 2})
    [(soonest, fed)] = desk.sql(
        "SELECT min(open_at) > now() + interval '23 hours', count(fed_at) FROM campaign_recipients"
        " WHERE organization_id = %s AND campaign_id = %s",
        second,
    )
    assert (soonest, fed) == (True, 0)


def test_customers_of_the_global_holdout_are_in_no_arm_and_have_an_outcome_of_their_own(desk):
    desk.crowd(60)
    desk.do(lambda tx: change_holdout(tx, desk.organization_id, percent=20, with_journeys=False, by="ann@shop.example"))
    waiting = desk.send(holdout_percent=20)
    # The quarter is not drawn yet.
    assert desk.load(waiting).row.reason == "The global holdout of this quarter is being drawn."
    desk.act(manage.cancel, waiting)
    draw_all(desk)
    [(held_out,)] = desk.sql("SELECT held_out FROM holdout_quarters WHERE organization_id = %s")
    assert 0 < held_out < 60
    desk.crowd(5)
    found = desk.estimate(holdout_percent=20)
    assert (found.global_holdout, found.recipients + found.held_out) == (held_out, 65 - held_out)
    campaign = desk.send(holdout_percent=20, recipients=found.recipients)
    desk.work()
    outcomes = desk.outcomes(campaign)
    assert outcomes["global_holdout"] == held_out
    assert sum(outcomes.values()) == 65
    # Their share of the others is held out by the campaign itself.
    assert 0 < outcomes["held_out"] < 65 - held_out
    assert desk.load(campaign).row.recipients == 65 - held_out
    texted = desk.sql(
        "SELECT count(*) FROM texts JOIN holdout_customers USING (organization_id, profile_id)"
        " WHERE organization_id = %s AND is_held_out"
    )
    assert texted == [(0,)]
