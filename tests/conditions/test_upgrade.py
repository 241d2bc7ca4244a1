"""Every spelling of a condition that was ever stored is read, and means what it meant."""

import json

import msgspec
import pytest

from regulars.conditions.documents import upgrade
from regulars.conditions.tree import Condition
from regulars.journeys.definition import read_definition as read_journey
from regulars.journeys.definition import write_definition as write_journey
from regulars.journeys.program import walk_steps
from regulars.segments.definition import read_definition, write_definition

ATTRIBUTE = {"type": "attribute", "key": "k"}
COLLECTION = {"key": "collection", "comparison": "is", "value": "Lin"}
# What segments stored, and what it is today.
OF_SEGMENTS = [
    ({**ATTRIBUTE, "comparison": "is_true"}, {**ATTRIBUTE, "comparison": "is", "value": "true"}),
    ({**ATTRIBUTE, "comparison": "is_false"}, {**ATTRIBUTE, "comparison": "is", "value": "false"}),
    ({**ATTRIBUTE, "comparison": "in_last_days", "days": 0}, {**ATTRIBUTE, "comparison": "in_last_days", "days": 1}),
    ({**ATTRIBUTE, "comparison": "in_next_days", "days": 0}, {**ATTRIBUTE, "comparison": "in_next_days", "days": 1}),
    ({"type": "tickets", "at_least": 3}, {"type": "bought", "at_least": 3}),
    ({"type": "tickets", "window": {"last_days": 0}}, {"type": "bought", "window": {"last_days": 1}}),
    ({"type": "articles", "at_least": 0.5}, {"type": "bought", "count": "articles", "at_least": 0.5}),
    ({"type": "articles", "none": True}, {"type": "bought", "count": "articles", "none": True}),
    (
        {"type": "bought", "property": {"key": "fair", "comparison": "is_true"}},
        {"type": "bought", "property": {"key": "fair", "comparison": "is", "value": "true"}},
    ),
    ({"type": "texts", "days": 0}, {"type": "texts", "days": 1}),
    (
        {"type": "last_purchase", "when": {"comparison": "in_last_days", "days": 0}},
        {"type": "last_purchase", "when": {"comparison": "in_last_days", "days": 1}},
    ),
    (
        {"type": "consent", "state": "withdrawn", "since": {"comparison": "in_last_days", "days": 0}},
        {"type": "consent", "state": "withdrawn", "since": {"comparison": "in_last_days", "days": 1}},
    ),
]
# What journeys stored, and what it is today.
OF_JOURNEYS = [
    ({"type": "subscribed"}, {"type": "consent", "state": "may_be_texted"}),
    ({"type": "subscribed", "is": False}, {"type": "consent", "state": "may_be_texted", "is": False}),
    (
        {"type": "purchases", "in_days": 365, "none": True},
        {"type": "bought", "none": True, "window": {"last_days": 365}},
    ),
    ({"type": "purchases", "in_days": 30}, {"type": "bought", "at_least": 1, "window": {"last_days": 30}}),
    (
        {"type": "purchases", "in_days": 30, "at_least": 0},
        {"type": "bought", "at_least": 0, "window": {"last_days": 30}},
    ),
    (
        {**ATTRIBUTE, "comparison": "is_not", "value": "Gold"},
        {**ATTRIBUTE, "comparison": "is_not", "value": "Gold", "without_value": False},
    ),
    (
        {**ATTRIBUTE, "comparison": "none_of", "values": ["Gold"]},
        {**ATTRIBUTE, "comparison": "none_of", "values": ["Gold"], "without_value": False},
    ),
    (
        {**ATTRIBUTE, "comparison": "in_last_days", "value": "30"},
        {**ATTRIBUTE, "comparison": "in_last_days", "days": 30},
    ),
    ({**ATTRIBUTE, "comparison": "in_last_days", "value": "many"}, {**ATTRIBUTE, "comparison": "in_last_days"}),
    ({**ATTRIBUTE, "comparison": "in_last_days", "value": "9999"}, {**ATTRIBUTE, "comparison": "in_last_days"}),
    ({**ATTRIBUTE, "comparison": "is", "value": "true"}, {**ATTRIBUTE, "comparison": "is", "value": "true"}),
    (
        {"type": "product", "any_of": ["A"], "property": "collection", "comparison": "is", "value": "Lin"},
        {"type": "product", "any_of": ["A"], "property": COLLECTION},
    ),
    (
        {"type": "product", "property": "collection", "comparison": "none_of", "values": ["Lin"]},
        {
            "type": "product",
            "property": {"key": "collection", "comparison": "none_of", "values": ["Lin"], "without_value": False},
        },
    ),
    ({"type": "product", "any_of": ["A"], "value": "x"}, {"type": "product", "any_of": ["A"]}),
    ({"type": "product", "property": "p"}, {"type": "product", "property": {"key": "p", "comparison": "between"}}),
    ({"type": "segment", "id": "seg_x", "is": False}, {"type": "segment", "id": "seg_x", "is": False}),
]


def read(data, *, of_journey=False):
    return msgspec.convert(upgrade(data, of_journey=of_journey), Condition)


@pytest.mark.parametrize(("stored", "today"), OF_SEGMENTS)
def test_what_segments_stored_is_read(stored, today):
    assert read(stored) == msgspec.convert(today, Condition)


@pytest.mark.parametrize(("stored", "today"), OF_JOURNEYS)
def test_what_journeys_stored_is_read(stored, today):
    assert read(stored, of_journey=True) == msgspec.convert(today, Condition)


@pytest.mark.parametrize("today", [today for _, today in [*OF_SEGMENTS, *OF_JOURNEYS]])
def test_what_is_written_today_is_read_as_it_is(today):
    for of_journey in (True, False):
        assert msgspec.to_builtins(read(today, of_journey=of_journey)) == msgspec.to_builtins(read(today))


def test_a_journey_of_an_older_release_is_read_with_the_same_steps():
    """Its runs stand at steps by their ids: those of the old form are those of the new one."""
    stored = {
        "name": "J",
        "trigger": "purchase",
        "filter": {"type": "purchases", "in_days": 365, "none": True},
        "steps": [
            {"do": "wait", "hours": 1, "id": "first"},
            {
                "do": "branch",
                "if": {"type": "none", "of": [{"type": "subscribed"}]},
                "then": [{"do": "exit"}],
                "else": [
                    {"do": "branch", "id": "x", "if": {"type": "subscribed", "is": False}, "then": [{"do": "exit"}]},
                    {"do": "wait_for_purchase", "days": 3, "then": [{"do": "exit"}]},
                ],
            },
        ],
    }
    journey = read_journey(json.dumps(stored).encode())
    assert [place for place, _ in walk_steps(journey.steps)] == [
        "first", "2", "2.then.1", "x", "2.else.1.then.1", "2.else.2", "2.else.2.then.1",
    ]  # fmt: skip
    assert read_journey(write_journey(journey)) == journey
    written = json.loads(write_journey(journey))
    assert written["filter"] == {"type": "bought", "none": True, "window": {"last_days": 365}}
    may_be_texted = {"type": "consent", "state": "may_be_texted"}
    assert written["steps"][1]["if"] == {"type": "none", "of": [may_be_texted]}
    assert written["steps"][1]["else"][0]["if"] == {**may_be_texted, "is": False}


def test_conditions_are_upgraded_wherever_they_stand():
    stored = {"type": "all", "of": [{"type": "none", "of": [{"type": "tickets"}]}]}
    definition = read_definition(json.dumps({"name": "S", "match": stored}).encode())
    assert json.loads(write_definition(definition))["match"] == {
        "type": "all",
        "of": [{"type": "none", "of": [{"type": "bought"}]}],
    }


@pytest.mark.parametrize("stored", [None, 1, [], {}, {"type": 1}, {"type": "all", "of": 1}, {"type": "product"}])
def test_whatever_is_no_condition_is_left_for_the_decoder(stored):
    assert upgrade(stored, of_journey=True) == stored
