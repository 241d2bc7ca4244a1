"""What a definition may say, and how a refusal names its place and its reason."""

import json
from datetime import timedelta

import pytest
from jsonschema import Draft202012Validator
from tests.support.project import ROOT

from regulars.catalog.model import AttributeType
from regulars.conditions.check import (
    ConditionContext,
    Fault,
    ReferencedSegment,
    blocking_faults,
)
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.faults import find_empty_texts, find_faults
from regulars.conditions.kinds.texts import TEXTS_DAYS_MAX, TEXTS_OF_JOURNEY_DAYS_MAX
from regulars.conditions.tree import (
    All,
    OfAttribute,
    attributes_of,
    depth_of,
    properties_of,
    segments_of,
    stores_of,
    walk,
)
from regulars.journeys.retention import RETENTION as RUN_RETENTION
from regulars.kit.ids import JOURNEY, new_uuid
from regulars.links.retention import RETENTION as TEXT_RETENTION
from regulars.segments.definition import Definition, read_definition, schema, write_definition
from regulars.segments.saved.manage import faults_of_name

KNOWN = ConditionContext(
    attributes={
        "points": (AttributeType.NUMBER, ()),
        "tier": (AttributeType.ENUM, ("Gold", "Platinum")),
        "newsletter": (AttributeType.BOOLEAN, ()),
        "birthday": (AttributeType.DATE, ()),
        "city": (AttributeType.TEXT, ()),
    },
    properties={"collection": (AttributeType.TEXT, ())},
    stores={"LYO": new_uuid()},
    segments={
        "seg_good": ReferencedSegment("Good", 1, All()),
        "seg_bad": ReferencedSegment("Bad", 1, All(), (Fault("match", "the attribute x is gone."),)),
    },
)
JOURNEY_ID = JOURNEY.encode(new_uuid())
GOLD_WHO_SLOW_DOWN = {
    "name": "Gold who slow down",
    "match": {
        "type": "all",
        "of": [
            {"type": "attribute", "key": "tier", "comparison": "any_of", "values": ["Gold", "Platinum"]},
            {"type": "attribute", "key": "points", "comparison": "between", "values": ["200", "1500"]},
            {"type": "attribute", "key": "newsletter", "comparison": "is", "value": "true"},
            {
                "type": "any",
                "of": [
                    {"type": "spend", "currency": "EUR", "at_least_cents": 20000, "window": {"last_days": 365}},
                    {
                        "type": "bought",
                        "count": "articles",
                        "at_least": 2,
                        "property": {"key": "collection", "comparison": "is", "value": "Lin lavé"},
                    },
                ],
            },
            {"type": "none", "of": [{"type": "bought", "window": {"last_days": 60}}]},
        ],
    },
}


def definition(*conditions, **more) -> Definition:
    return read_definition(json.dumps({"name": "S", "match": {"type": "all", "of": conditions}, **more}).encode())


def faults(*conditions, **more) -> list[tuple[str, str]]:
    given = definition(*conditions, **more)
    return [(it.place, it.message) for it in faults_of_name(given.name) + find_faults(given.match, KNOWN)]


def attribute(key, comparison, **more):
    return {"type": "attribute", "key": key, "comparison": comparison, **more}


def nested(depth):
    inner = {"type": "named"}
    for _ in range(depth - 1):
        inner = {"type": "any", "of": [inner]}
    return inner


def test_the_segment_of_the_design_is_read_written_and_has_no_fault():
    read = read_definition(json.dumps(GOLD_WHO_SLOW_DOWN).encode())
    assert find_faults(read.match, KNOWN) == []
    assert json.loads(write_definition(read)) == json.loads(json.dumps(GOLD_WHO_SLOW_DOWN))
    assert read_definition(write_definition(read)) == read
    assert attributes_of(read.match) == {"tier", "points", "newsletter"}
    assert properties_of(read.match) == {"collection"}
    assert depth_of(read.match) == 2
    assert [path for path, part in walk(read.match) if isinstance(part, OfAttribute)] == [(0,), (1,), (2,)]


def test_the_schema_in_the_documentation_is_the_one_that_reads():
    document = (ROOT / "docs" / "segment.schema.json").read_bytes()
    assert document == schema()
    Draft202012Validator(json.loads(document)).validate(GOLD_WHO_SLOW_DOWN)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "got a list"),
        (b"{}", "name is missing"),
        (b'{"name": "S", "match": {"type": "named"}}', "match.type: 'named' is not a known value"),
        (b'{"name": "S", "match": {"type": "all", "of": [{"type": "fly"}]}}', "match.of[0].type: 'fly'"),
        (b'{"name": "S", "match": {"type": "all", "of": [{"type": "named", "is": 1}]}}', "match.of[0].is: expected"),
        (b'{"name": "S", "match": {"type": "all"}, "colour": 1}', "colour is not a known field"),
        (b'{"name": "", "match": {"type": "all"}}', "name: "),
        (b" " * (1 << 21), "at most 1024 KB"),
        (
            b'{"name": "S", "match": {"type": "all", "of": [{"type": "created", "when": {"comparison": "before", "date": "2026-02-30"}}]}}',
            "match.of[0].when.date",
        ),
        (b'{"name":"S","match":' + b'{"type":"all","of":[' * 600 + b"]}" * 600 + b"}", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where_and_why(content, reason):
    with pytest.raises(DefinitionRefused, match=r".") as refused:
        read_definition(content)
    assert reason in str(refused.value)


def test_six_groups_are_too_deep_and_five_are_not():
    assert faults(nested(5)) == []
    with pytest.raises(DefinitionRefused, match="nested at most 5 deep"):
        definition(nested(6))


def test_fifty_conditions_are_enough():
    assert faults(*[{"type": "named"}] * 50) == []
    assert faults(*[{"type": "named"}] * 51) == [("match", "A definition has at most 50 conditions; this one has 51.")]


@pytest.mark.parametrize(
    ("condition", "place", "words"),
    [
        ({"type": "any", "of": []}, "match.of[0]", "empty"),
        (attribute("points", "contains", value="1"), "match.of[0].comparison", "does not offer contains"),
        (attribute("points", "is", value="many"), "match.of[0].value", "'many' cannot be read"),
        (attribute("points", "is"), "match.of[0].value", "needs a value"),
        (attribute("points", "between", values=["1"]), "match.of[0].values", "two values"),
        (attribute("points", "between", values=["10", "9"]), "match.of[0].values", "above the second"),
        (attribute("points", "is_not", value="1"), "match.of[0].without_value", "without a value match"),
        (attribute("city", "contains", value=""), "match.of[0].value", "not empty"),
        (attribute("tier", "none_of", values=["Silver"], without_value=True), "match.of[0].values", "none of the values"),
        (attribute("tier", "any_of"), "match.of[0].values", "needs a value"),
        (attribute("birthday", "in_last_days"), "match.of[0].days", "number of days"),
        (attribute("birthday", "before", value="2026-01"), "match.of[0].value", "not a date such as"),
        (attribute("city", "contains", value="  "), "match.of[0].value", "not empty"),
        ({"type": "bought", "at_least": 1.5}, "match.of[0]", "whole number"),
        ({"type": "consent", "state": "never_asked", "sources": ["EVENT"]}, "match.of[0]", "go with may_be_texted"),
        ({"type": "consent", "state": "withdrawn", "stores": ["X"]}, "match.of[0].stores", "no store X"),
        ({"type": "bought", "stores": ["LYO", "PAR"]}, "match.of[0].stores", "no store PAR"),
        ({"type": "bought", "none": True, "at_least": 1}, "match.of[0]", "not both"),
        ({"type": "bought", "window": {}}, "match.of[0].window", "last_days, or from and to"),
        ({"type": "bought", "window": {"from": "2026-01-02"}}, "match.of[0].window", "both from and to"),
        (
            {"type": "bought", "window": {"from": "2026-01-02", "to": "2026-01-01"}},
            "match.of[0].window",
            "after the last",
        ),
        ({"type": "spend", "currency": "EUR"}, "match.of[0]", "at least, at most"),
        ({"type": "bought", "count": "days", "at_least": 1.5}, "match.of[0]", "A number of days is a whole number"),
        ({"type": "articles", "at_least": 0.1234567}, "match.of[0]", "at most 6 decimals"),
        ({"type": "tickets", "at_least": 3, "at_most": 2}, "match.of[0]", "above the upper"),
        (
            {"type": "last_purchase", "when": {"comparison": "not_in_last_days", "days": 60}},
            "match.of[0].when.without_value",
            "never bought",
        ),
        ({"type": "created", "when": {"comparison": "between"}}, "match.of[0].when", "from and to"),
        ({"type": "texts", "days": 30, "journey": "x"}, "match.of[0].journey", "not the id of a journey"),
        ({"type": "received_campaign", "id": "x"}, "match.of[0].id", "not the id of a campaign"),
        ({"type": "texts", "days": 731}, "match.of[0].days", "Texts are stored for 730 days"),
        ({"type": "texts", "days": 366, "journey": JOURNEY_ID}, "match.of[0].days", "is stored for 365 days"),
        ({"type": "country", "any_of": []}, "match.of[0].any_of", "at least one country"),
        ({"type": "segment", "id": "seg_other"}, "match.of[0].id", "no segment seg_other"),
        ({"type": "segment", "id": "seg_bad"}, "match.of[0].id", "the attribute x is gone"),
        (
            {"type": "articles", "at_least": 1, "property": {"key": "collection", "comparison": "more", "value": "1"}},
            "match.of[0].property.comparison",
            "does not offer more",
        ),
    ],
)  # fmt: skip
def test_a_fault_names_its_place(condition, place, words):
    [(found, message)] = faults(condition)
    assert found == place
    assert words in message


def test_a_condition_about_texts_reaches_back_as_far_as_they_are_retained():
    assert faults({"type": "texts", "days": 730}, {"type": "texts", "days": 365, "journey": JOURNEY_ID}) == []
    # A text leaves some days after it was written, and a day is a calendar day.
    assert timedelta(days=TEXTS_DAYS_MAX + 14) < TEXT_RETENTION
    assert timedelta(days=TEXTS_OF_JOURNEY_DAYS_MAX + 14) < RUN_RETENTION


def test_an_empty_text_is_found_wherever_a_condition_compares():
    spaces = {"type": "attribute", "key": "city", "comparison": "is", "value": " "}
    empty = {"key": "collection", "comparison": "none_of", "values": ["", "Linen"], "without_value": False}
    product = {"type": "product", "any_of": [""], "property": empty}
    unused = {"type": "attribute", "key": "city", "comparison": "is_set", "value": ""}
    bought = {"type": "bought", "at_least": 1, "property": empty, "products": ["SKU-1", " "]}
    match = {"type": "all", "of": [spaces, {"type": "any", "of": [product, unused]}, bought]}
    definition = read_definition(json.dumps({"name": "S", "match": match}).encode())
    places = [fault.place for fault in find_empty_texts(definition.match)]
    assert places == [
        "match.of[0].value",
        "match.of[1].of[0].property.values",
        "match.of[1].of[0].any_of",
        "match.of[2].property.values",
        "match.of[2].products",
    ]


def test_an_unknown_key_is_a_warning():
    given = definition(attribute("shoe", "is_set"))
    [fault] = find_faults(given.match, KNOWN)
    assert (fault.place, fault.is_warning) == ("match.of[0].key", True)
    assert blocking_faults([fault]) == []


def test_a_name_is_words():
    assert faults({"type": "named"}, name=" ") == [("name", "A segment needs a name.")]
    assert faults({"type": "named"}, name="a\x00b") == [("name", "A name has no control characters.")]


def test_a_definition_says_what_it_stands_on():
    given = definition(
        {"type": "bought", "stores": ["LYO"]},
        {"type": "consent", "state": "withdrawn", "stores": ["PAR"]},
        {"type": "segment", "id": "seg_good"},
    )
    assert stores_of(given.match) == {"LYO", "PAR"}
    assert segments_of(given.match) == {"seg_good"}
