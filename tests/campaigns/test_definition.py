"""What a definition may say, and how a refusal names its place and its reason."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from jsonschema import Draft202012Validator
from tests.campaigns.desk import definition

from regulars.campaigns.confirmed_numbers import RecipientsAndCost
from regulars.campaigns.definition import SendAtLocalTime, read_definition, schema, write_definition
from regulars.campaigns.model import end_of, most_of, start_of
from regulars.conditions.documents import DefinitionRefused
from regulars.experiments.arms import HELD_OUT_ARM, Variant, assign_arm

FULL = {
    "name": "Private sale",
    "include": ["seg_a"],
    "exclude": ["seg_b"],
    "exclude_received": ["cmp_a"],
    "variants": [{"text": "A", "share": 60}, {"text": "B", "share": 40}],
    "holdout_percent": 10,
    "schedule": {"start": "local", "day": "2026-11-20", "time": "10:00"},
    "not_after": "2026-11-21T20:00:00Z",
    "texts_per_hour": 600,
    "cap": "wait",
    "margin_percent": 10,
}
PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_a_definition_is_read_as_its_schema_says_and_written_as_it_was_read():
    Draft202012Validator(json.loads(schema())).validate(FULL)
    assert json.loads(write_definition(read_definition(json.dumps(FULL).encode()))) == FULL


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"name": ""}, "name"),
        ({"variants": [{"text": str(number), "share": 20} for number in range(5)]}, "variants"),
        ({"schedule": {"start": "at", "at": "2026-11-20T10:00:00"}}, "schedule.at"),
        ({"schedule": {"start": "local", "day": "2026-11-20", "time": "24:00"}}, "schedule.time"),
        ({"schedule": {"start": "soon"}}, "'soon'"),
        ({"holdout_percent": 91}, "holdout_percent"),
        ({"texts_per_hour": 0}, "texts_per_hour"),
        ({"colour": 1}, "colour is not a known field"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(changed, reason):
    with pytest.raises(DefinitionRefused, match=reason):
        read_definition(json.dumps({**FULL, **changed}).encode())


def test_a_campaign_in_local_time_starts_where_the_day_begins_first_and_ends_with_the_second_day():
    local = definition("seg_a", schedule={"start": "local", "day": "2026-11-20", "time": "10:00"})
    assert isinstance(local.schedule, SendAtLocalTime)
    assert start_of(local, now=NOW) == datetime(2026, 11, 19, 20, tzinfo=UTC)
    assert end_of(local, start_of(local, now=NOW), PARIS) == datetime(2026, 11, 21, 23, tzinfo=UTC)
    late = NOW + timedelta(days=3)
    assert start_of(local, now=late) == late
    at_once = definition("seg_a")
    assert start_of(at_once, now=NOW) == NOW
    assert end_of(at_once, NOW, PARIS) == datetime(2026, 11, 18, 23, tzinfo=UTC)


def test_arms_have_their_shares_and_a_customer_stays_in_one():
    campaign, people = uuid4(), [uuid4().bytes for _ in range(20_000)]
    variants = (Variant(text="A", share=75), Variant(text="B", share=25))
    places = [assign_arm(campaign, it, holdout_percent=10, variants=variants) for it in people]
    again = [assign_arm(campaign, it, holdout_percent=10, variants=variants) for it in people]
    assert places == again
    counts = [sum(it.arm == arm for it in places) for arm in (HELD_OUT_ARM, 1, 2)]
    expected = [2_000, 13_500, 4_500]
    assert all(abs(found - wanted) < 350 for found, wanted in zip(counts, expected, strict=True))
    # The order of sending says nothing about the arm.
    first_half = sorted(places, key=lambda it: it.position)[:10_000]
    assert abs(sum(it.arm == 1 for it in first_half) - 6_750) < 350


def test_the_margin_is_a_part_of_what_was_confirmed():
    assert most_of(RecipientsAndCost(100, {"EUR": Decimal("2.00")}), 5) == RecipientsAndCost(
        105, {"EUR": Decimal("2.10")}
    )
    assert most_of(RecipientsAndCost(19, None), 5) == RecipientsAndCost(19, None)
    assert most_of(RecipientsAndCost(0, {}), 5) == RecipientsAndCost(0, {})


def test_the_example_of_the_documentation_can_be_read():
    page = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text()
    [example] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    found = read_definition(example.encode())
    assert sum(variant.share for variant in found.variants) == 100
    # The first table of fields is that of the definition; another one is of the proof.
    table = page[page.index("| `include`") :].split("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {name for name in type(found).__struct_fields__ if name != "name"}
