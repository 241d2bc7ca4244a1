"""Whatever is stored as a definition can be read, and written again without its faults."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regulars.campaigns import definition as campaigns
from regulars.campaigns.definition import read_stored_definition as read_campaign
from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import definition as journeys
from regulars.segments import definition as segments

CONDITION = {
    "type": "all",
    "of": [
        {"type": "attribute", "key": "tier", "comparison": "any_of", "values": ["Gold"]},
        {"type": "any", "of": [{"type": "bought", "at_least": 2, "window": {"last_days": 60}}]},
    ],
}


class Kind(NamedTuple):
    """A kind of definition with the functions that read and write it."""

    good: dict[str, Any]
    read: Callable[[bytes], Any]
    read_stored: Callable[[str], Any]
    write: Callable[[Any], bytes]


KINDS = {
    "campaign": Kind(
        {
            "name": "Spring",
            "include": ["seg_1", "seg_2"],
            "exclude_received": ["cmp_1"],
            "variants": [
                {"text": "Hello", "share": 50},
                {"text": {"attribute": "language", "texts": {"fr": "Salut"}, "default": "Hello"}, "share": 50},
            ],
            "schedule": {"start": "local", "day": "2026-11-20", "time": "10:00"},
            "holdout_percent": 10,
        },
        campaigns.read_definition,
        read_campaign,
        campaigns.write_definition,
    ),
    "segment": Kind(
        {"name": "Gold", "match": CONDITION},
        segments.read_definition,
        segments.read_stored_definition,
        segments.write_definition,
    ),
    "journey": Kind(
        {
            "name": "Welcome",
            "trigger": "purchase",
            "filter": CONDITION,
            "reentry": {"policy": "after_days", "days": 30},
            "exit_on": ["return"],
            "steps": [
                {"do": "wait", "days": 2},
                {"do": "branch", "if": CONDITION, "then": [{"do": "send_text", "text": "Hello"}], "else": []},
            ],
        },
        journeys.read_definition,
        journeys.read_stored_definition,
        journeys.write_definition,
    ),
}
VALUES = [None, "", "x" * 70_000, 10**30, -1, 0.5, [], {}, [[]], "\0", True, {"start": "never"}, {"attribute": 1}]


def paths_of(part: Any) -> Iterator[tuple[str | int, ...]]:
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in inner:
        yield (key,)
        yield from ((key, *path) for path in paths_of(value))
    if isinstance(part, dict):
        yield ("unknown",)


def test_what_is_valid_is_read_as_it_is():
    for kind in KINDS.values():
        document = json.dumps(kind.good)
        assert kind.read_stored(document) == (kind.read(document.encode()), [])


def test_a_part_that_is_not_valid_is_left_out_and_named():
    damaged = {**KINDS["campaign"].good, "include": ["seg_1", "x" * 2_000], "holdout_percent": 200}
    campaign, faults = read_campaign(json.dumps(damaged))
    assert (campaign.include, campaign.holdout_percent, len(campaign.variants)) == (("seg_1",), 0, 2)
    assert {fault.place for fault in faults} == {"include[1]", "holdout_percent"}
    deep = CONDITION
    for _ in range(5):
        deep = {"type": "none", "of": [deep]}
    segment, [fault] = segments.read_stored_definition(json.dumps({"name": "Deep", "match": deep}))
    assert (segment.match.of, fault.place) == ((), "match")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(max_examples=100)
@given(data=st.data())
def test_any_damage_can_be_read_and_written_again(kind, data):
    document = json.loads(json.dumps(kind.good))
    paths = st.sampled_from(list(paths_of(document)))
    for path, value in data.draw(st.lists(st.tuples(paths, st.sampled_from(VALUES)), min_size=1, max_size=4)):
        inner = document
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    definition, faults = kind.read_stored(json.dumps(document))
    assert kind.read(kind.write(definition)) == definition
    try:
        assert kind.read(json.dumps(document).encode()) == definition
        assert faults == []
    except DefinitionRefused:
        assert faults


@pytest.mark.parametrize("document", ["[]", "1", '"\\ud800"', '{"name": "\\ud800"}', "[" * 50_000 + "]" * 50_000])
def test_what_is_no_definition_at_all_is_read_as_an_empty_one(document):
    for kind in KINDS.values():
        definition, faults = kind.read_stored(document)
        assert faults
        assert kind.read(kind.write(definition)) == definition


def test_what_could_not_be_read_is_not_written():
    long = campaigns.Definition(name="Spring", include=("x" * 65,), variants=(campaigns.Variant(text="Hello"),))
    with pytest.raises(DefinitionRefused) as refused:
        campaigns.write_definition(long)
    assert refused.value.faults[0].place == "include[0]"
