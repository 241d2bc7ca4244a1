"""A campaign at a local time is fixed a quarter of an hour before the first time zone that matters."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.campaigns.desk import definition
from tests.support.gateway import ALWAYS

from regulars.campaigns import local_times, manage
from regulars.campaigns.local_times import FREEZE_BEFORE, first_major_time, is_unsure
from regulars.campaigns.pages.definition_labels import describe_freeze
from regulars.texts.settings.model import SendHoursRule, SmsSettings
from regulars.web.format import Format

PARIS = ZoneInfo("Europe/Paris")
NEVER = SendHoursRule(days=(None,) * 7)
IN_TOKYO = "+819012345678"


def schedule_at(desk, moment):
    """A campaign whose local time is this moment in Paris."""
    local = moment.astimezone(PARIS)
    start = {"start": "local", "day": local.date().isoformat(), "time": f"{local:%H:%M}"}
    campaign = desk.draft(schedule=start)
    desk.act(manage.schedule, campaign, confirmed_recipients=len(desk.people))
    return campaign


def times(desk):
    return desk.sql("SELECT state, starts_at, freeze_at FROM campaigns WHERE organization_id = %s")


def add_tokyo(desk):
    desk.person("Tokyo", IN_TOKYO)
    desk.drain()


def at_minute(moment):
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def test_the_first_zone_that_matters_has_one_percent():
    tokyo, paris = datetime(2026, 11, 20, 1, tzinfo=UTC), datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert first_major_time({paris: 99, tokyo: 1}) == tokyo
    assert first_major_time({paris: 100, tokyo: 1}) == paris
    assert first_major_time({}) is None
    many = [paris + timedelta(minutes=minute) for minute in range(200)]
    assert first_major_time(Counter(many)) == paris


@pytest.mark.parametrize(
    ("tokyo", "unsure"), [(0, False), (9, False), (10, True), (16, True), (39, True), (40, False), (1_000, False)]
)
def test_a_sample_does_not_decide_about_a_zone_with_half_to_two_percent(tokyo, unsure):
    early, late = datetime(2026, 11, 20, 1, tzinfo=UTC), datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert is_unsure({early: tokyo, late: 2_000 - tokyo}) is unsure
    # A small zone after one that certainly matters changes nothing.
    assert not is_unsure({early: 2_000 - tokyo, late: tokyo})
    assert not is_unsure({})


@pytest.mark.parametrize(("sampled", "whole", "first"), [(4, 9, "Europe/Paris"), (9, 4, "Asia/Tokyo")])
def test_a_zone_near_the_limit_is_counted_over_the_whole_audience(desk, monkeypatch, sampled, whole, first):
    """One customer is in Tokyo, beside so many in Paris in the sample and in the whole audience."""
    monkeypatch.setattr(local_times, "MAJOR_PERCENT", 15)
    desk.crowd(9)
    paris = list(desk.people.values())
    add_tokyo(desk)
    tokyo = desk.people["Tokyo"]
    start = datetime.now(PARIS).replace(second=0, microsecond=0) + timedelta(days=2)
    planned = definition(
        desk.reachable, schedule={"start": "local", "day": start.date().isoformat(), "time": f"{start:%H:%M}"}
    )
    sample, pieces = (tokyo, *paris[:sampled]), [it.bytes for it in (tokyo, *paris[:whole])]
    found = desk.do(lambda tx: local_times.find_first_time(tx, desk.organization_id, planned, sample, pieces))
    assert found == start.replace(tzinfo=ZoneInfo(first))


def test_an_audience_is_counted_at_once_when_the_day_begins_and_fixed_before_the_first_texts(desk):
    desk.crowd(2)
    start = at_minute(datetime.now(UTC) + timedelta(days=3))
    campaign = schedule_at(desk, start)
    desk.start()
    [(state, starts_at, freeze_at)] = times(desk)
    assert (state, starts_at) == ("scheduled", start)
    # Where the day begins first, the zones are counted again.
    assert freeze_at < start - timedelta(hours=12)
    desk.alter("UPDATE campaigns SET freeze_at = now() - interval '1 s' WHERE organization_id = %s")
    desk.start()
    assert desk.load_row(campaign).frozen_at is None
    assert desk.sql("SELECT 1 FROM campaign_audiences WHERE organization_id = %s") == []


def test_after_the_day_began_anywhere_the_next_count_is_the_one_that_fixes_the_audience(desk):
    desk.crowd(2)
    start = at_minute(datetime.now(UTC) + timedelta(hours=2))
    campaign = schedule_at(desk, start)
    desk.start()
    assert times(desk) == [("scheduled", start, start - FREEZE_BEFORE)]
    desk.act(manage.pause, campaign)
    desk.act(manage.resume, campaign)
    desk.start()
    assert times(desk) == [("scheduled", start, start - FREEZE_BEFORE)]


def test_within_the_last_quarter_of_an_hour_it_is_fixed_and_the_texts_wait_for_their_time(desk):
    desk.crowd(2)
    start = at_minute(datetime.now(UTC) + timedelta(minutes=10))
    campaign = schedule_at(desk, start)
    desk.start()
    desk.feed()
    assert desk.load_row(campaign).frozen_at is not None
    assert desk.outcomes(campaign) == {"waiting": 2}
    assert desk.sql("SELECT DISTINCT open_at FROM campaign_recipients WHERE organization_id = %s") == [(start,)]


@pytest.mark.parametrize(
    ("hours", "outcome", "reason"), [(ALWAYS, "sent", ""), (NEVER, "skipped", "local_time_passed")]
)
def test_a_recipient_of_an_earlier_zone_gets_the_text_when_it_is_fixed_or_is_counted(
    desk, monkeypatch, hours, outcome, reason
):
    monkeypatch.setattr(local_times, "MAJOR_PERCENT", 60)
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS, "JP": hours}))
    desk.crowd(3)
    add_tokyo(desk)
    campaign = schedule_at(desk, at_minute(datetime.now(UTC) + timedelta(minutes=10)))
    desk.start()
    desk.work()
    rows = desk.sql(
        "SELECT outcome, reason FROM campaign_recipients WHERE organization_id = %s AND profile_id = %s",
        desk.people["Tokyo"],
    )
    assert rows == [(outcome, reason)]
    assert desk.outcomes(campaign) == {"waiting": 3, outcome: 1}


def test_the_estimate_says_when_the_first_texts_leave(desk):
    desk.crowd(2)
    start = at_minute(datetime.now(UTC) + timedelta(days=2))
    local = start.astimezone(PARIS)
    found = desk.estimate(schedule={"start": "local", "day": local.date().isoformat(), "time": f"{local:%H:%M}"})
    assert found.first_texts_at == start
    assert desk.estimate().first_texts_at is None
    given = definition("seg_1", schedule={"start": "local", "day": "2026-11-20", "time": "10:00"})
    formats = Format("en-GB", "Europe/Paris", now=datetime(2026, 11, 20, 8, 44, tzinfo=UTC))
    said = describe_freeze(formats, given, datetime(2026, 11, 20, 9, tzinfo=UTC))
    assert said == "Audience fixed 20 Nov, 09:45, first texts 20 Nov, 10:00 (Paris time, UTC+1)"
    late = replace(formats, now=datetime(2026, 11, 20, 8, 45, tzinfo=UTC))
    assert (describe_freeze(late, given, datetime(2026, 11, 20, 9, tzinfo=UTC)) or "").startswith(
        "Audience fixed at once"
    )
