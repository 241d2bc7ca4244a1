"""Who gets the text of a campaign at its start, later or never, by the rule that decides."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.campaigns.test_estimate import settings

from regulars.campaigns.reach import Rule, SampledRecipient, count_reach, find_rule
from regulars.kit.ids import new_uuid
from regulars.texts.gate import Forecast
from regulars.texts.settings.model import Cap

START = datetime(2027, 3, 1, 10, tzinfo=UTC)
END = START + timedelta(hours=36)
CAP = Cap(texts=1, hours=24)


def later(hours: int) -> datetime:
    return START + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("forecast", "waits", "rule"),
    [
        (Forecast(START, None, None, is_suppressed=False), False, None),
        (Forecast(START, later(9), CAP, is_suppressed=False), False, Rule("cap", False, 1, 24)),
        (Forecast(START, later(9), CAP, is_suppressed=False), True, Rule("cap", True, 1, 24)),
        (Forecast(START, later(36), CAP, is_suppressed=False), True, Rule("cap", False, 1, 24)),
        (Forecast(later(3), None, None, is_suppressed=False), False, Rule("hours", True)),
        (Forecast(later(36), None, None, is_suppressed=False), False, Rule("hours", False)),
        (Forecast(None, None, None, is_suppressed=False), False, Rule("hours", False)),
        (Forecast(None, later(9), CAP, is_suppressed=True), True, Rule("suppressed")),
    ],
)
def test_the_first_rule_that_stops_a_text_is_named_and_whether_it_leaves_later(forecast, waits, rule):
    assert find_rule(forecast, start=START, end=END, waits_for_cap=waits) == rule


def test_a_sample_is_scaled_to_all_recipients_and_some_of_them_are_named():
    people = [SampledRecipient(new_uuid(), f"Zoé{number}", None) for number in range(10)]
    rules = [None] * 4 + [Rule("cap", False, 1, 24)] * 5 + [Rule("hours", True)]
    reach = count_reach([(person, rule, 1.0) for person, rule in zip(people, rules, strict=True)], 1_000)
    assert (reach.stopped, reach.skipped, reach.later) == ({rules[5]: 500, rules[9]: 100}, 500, 100)
    assert reach.named == {rules[5]: tuple(people[4:7]), rules[9]: (people[9],)}


def test_the_reach_is_judged_at_the_start_that_was_chosen(desk):
    desk.settings(settings())
    desk.crowd(3)
    desk.send()
    desk.work()
    now = desk.estimate()
    assert (now.recipients, now.gets_text, now.reach.stopped) == (3, 0, {Rule("cap", False, 1, 24): 3})
    waiting = desk.estimate(cap="wait")
    assert (waiting.gets_text, waiting.reach.later) == (3, 3)
    tomorrow = (datetime.now(UTC) + timedelta(hours=25)).isoformat()
    then = desk.estimate(schedule={"start": "at", "at": tomorrow})
    assert (then.gets_text, then.capped, then.reach.stopped) == (3, 0, {})
    nameless = desk.estimate(
        schedule={"start": "at", "at": tomorrow}, variants=[{"text": "{{ profile.attributes.size }}"}]
    )
    assert (nameless.gets_text, nameless.reach.stopped) == (0, {Rule("missing_value: profile.attributes.size"): 3})
