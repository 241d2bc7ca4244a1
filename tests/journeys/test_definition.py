"""What a definition may say, and how a refusal names its place and its reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.support.project import ROOT

from regulars.catalog.model import AttributeType
from regulars.conditions.check import ConditionContext
from regulars.conditions.documents import DefinitionRefused
from regulars.journeys.check import find_faults
from regulars.journeys.definition import Definition, read_definition, schema, write_definition
from regulars.journeys.program import graph_of, walk_steps

KNOWN = ConditionContext(
    attributes={
        "vip": (AttributeType.BOOLEAN, ()),
        "birthday": (AttributeType.DATE, ()),
        "city": (AttributeType.TEXT, ()),
    },
    properties={"colour": (AttributeType.TEXT, ())},
)
EXIT = {"do": "exit"}
TEXT = {"do": "send_text", "text": "Hi"}
HOLDOUT = {"do": "split", "percent": 90, "holdout": True, "then": [TEXT]}


def definition(*steps, **more) -> Definition:
    given = {"name": "J", "trigger": "purchase", "steps": list(steps or (EXIT,)), **more}
    return read_definition(json.dumps(given).encode())


def faults(*steps, **more) -> list[tuple[str, str]]:
    return [(fault.place, fault.message) for fault in find_faults(definition(*steps, **more), KNOWN)]


def attribute(key, comparison, value):
    return {"type": "attribute", "key": key, "comparison": comparison, "value": value}


def languages(attribute="city", **texts):
    return {"attribute": attribute, "default": "Hi", "texts": texts or {"Lyon": "Bonjour"}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "expected an object, got a list"),
        (b"{}", "name is missing"),
        (b'{"name": "J", "trigger": "stop", "steps": []}', "trigger: 'stop' is not a known value"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": "fly"}]}', "steps[0].do: 'fly'"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": null}]}', "do: expected a text, got nothing"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": []}]}', "do: expected a text, got a list"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": {}}]}', "do: expected a text, got an object"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": "wait", "hours": "1"}]}', "steps[0].hours: expected"),
        (b'{"name": "J", "trigger": "purchase", "steps": [], "colour": 1}', "colour is not a known field"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": "wait_until", "time": "24:00"}]}', "steps[0].time"),
        (b" " * 300_000, "at most 256 KB"),
        (b'{"name": "J", "trigger": "purchase", "steps": [{"do": "send_text", "text": 1}]}', "steps[0].text: expected"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(content, reason):
    with pytest.raises(DefinitionRefused) as refused:
        read_definition(content)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("steps", "more", "found"),
    [
        ((), {"steps": []}, ("steps", "A journey needs at least one step.")),
        (({"do": "wait"},), {}, ("1", "The wait has no length; set minutes, hours or days.")),
        (({"do": "wait_for_purchase", "then": [EXIT]},), {}, ("1", "Waiting for a purchase needs a limit")),
        (({"do": "split", "percent": 50},), {}, ("1", "Both paths are empty")),
        (({"do": "split", "percent": 90, "holdout": True, "then": [EXIT]},), {}, ("1", "that path has none")),
        (
            ({"do": "split", "percent": 90, "holdout": True, "else": [{"do": "send_text", "text": "Hi"}]},),
            {},
            ("1", "the second path are held out, so it must not send a text"),
        ),
        (
            ({**HOLDOUT, "then": [TEXT, {"do": "branch", "if": {"type": "subscribed"}, "then": [HOLDOUT]}]},),
            {},
            ("1", "remove the other holdout from that path"),
        ),
        (({**HOLDOUT, "then": [{"do": "wait", "days": 271}, TEXT]},), {}, ("1", "within 270 days; shorten the waits")),
        ((EXIT, {"do": "wait", "days": 1}), {}, ("2", "No run reaches this step")),
        (({"do": "wait", "days": 1, "id": "a"}, {"do": "exit", "id": "a"}), {}, ("a", "Two steps have this id.")),
        (({"do": "send_text", "text": "Hi {{ profile.nick }}"},), {}, ("1", "There is no field profile.nick")),
        (({"do": "send_text", "text": "Hi {{ x"},), {}, ("1", "does not end with }}. (character 4)")),
        (({"do": "send_text", "text": "{{ ticket.total }}"},), {"trigger": "opt_in"}, ("1", "has no ticket")),
        (({"do": "send_text", "text": languages(attribute="x")},), {}, ("1", "No customer has an attribute called x")),
        (({"do": "send_text", "text": languages(fr="{{")},), {}, ("1", "Text for fr: A variable")),
        ((), {"filter": {"type": "store", "any_of": ["P"]}, "trigger": "opt_in"}, ("filter", "is about the ticket")),
        ((), {"filter": {"type": "amount"}}, ("filter", "Enter at least, at most, or both.")),
        ((), {"filter": {"type": "product"}}, ("filter", "The product has no condition")),
        ((), {"filter": attribute("shoe", "is", "9")}, ("filter", "No attribute is called shoe.")),
        (
            (),
            {"filter": attribute("birthday", "in_last_days", "9" * 5000)},
            ("filter", "The comparison needs a number of days."),
        ),
        ((), {"reentry": {"policy": "after_days"}}, ("reentry", "The policy after_days needs days")),
        (tuple({"do": "wait", "days": 1} for _ in range(101)), {}, ("steps", "at most 100 steps")),
    ],
)
def test_a_draft_that_cannot_run_says_why_and_at_which_step(steps, more, found):
    place, part = found
    every = faults(*steps, **more)
    assert any(at == place and part in message for at, message in every), every


def test_deep_groups_are_refused():
    deep = {"type": "subscribed"}
    for _ in range(6):
        deep = {"type": "any", "of": [deep]}
    assert ("filter", "Groups are nested at most 5 deep.") in faults(filter=deep)


def test_a_whole_definition_reads_writes_and_runs():
    whole = definition(
        {"do": "wait", "hours": 1},
        {"do": "branch", "if": attribute("vip", "is", "true"), "then": [{"do": "send_text", "text": "Hi"}], "else": []},
        {"do": "wait_for_purchase", "days": 3, "then": [EXIT], "else": [{"do": "wait_until", "time": "10:00"}]},
        {"do": "set_attribute", "key": "seen", "value": "true"},
        {"do": "send_text", "text": languages()},
    )
    assert find_faults(whole, KNOWN) == []
    assert read_definition(write_definition(whole)) == whole
    nodes = graph_of(whole).nodes
    places = [place for place, _ in walk_steps(whole.steps)]
    assert places == ["1", "2", "2.then.1", "3", "3.then.1", "3.else.1", "4", "5"]
    assert nodes["2"].then == "2.then.1"
    assert nodes["2"].otherwise == "3"
    assert nodes["2.then.1"].next == "3"
    assert nodes["3.else.1"].next == "4"
    assert nodes["5"].next is None


def test_the_committed_schema_is_the_one_of_the_code_and_accepts_what_the_code_accepts():
    committed = ROOT / "docs" / "journey.schema.json"
    assert committed.read_bytes() == schema()
    validator = Draft202012Validator(json.loads(schema()))
    validator.validate(json.loads(write_definition(definition({"do": "wait", "days": 1}))))
    assert not validator.is_valid({"name": "J", "trigger": "stop", "steps": []})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["do", "type", "of", "id"]), inner),
    max_leaves=8,
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {"do": st.sampled_from(["wait", "send_text", "branch", "exit", "split", "wait_until", "nope"])},
        optional={
            "text": st.text(max_size=20),
            "days": st.integers(-1, 400),
            "if": JSON,
            "then": JSON,
            "percent": JSON,
        },
    ),
    max_size=4,
)


@given(STEPS, JSON)
def test_any_definition_is_read_or_refused_with_words(steps, condition):
    content = json.dumps({"name": "J", "trigger": "purchase", "filter": condition, "steps": steps}).encode()
    try:
        read = read_definition(content)
    except DefinitionRefused:
        return
    for fault in find_faults(read, KNOWN):
        assert fault.place
        assert fault.message
