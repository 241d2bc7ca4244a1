"""Whatever is stored as a definition of a campaign can be read, and written again without its faults."""

import json
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regulars.campaigns.definition import Definition, Variant, read_definition, write_definition
from regulars.campaigns.errors import DefinitionRefused
from regulars.campaigns.stored_definition import read_stored_definition

GOOD = {
    "name": "Spring",
    "include": ["seg_1", "seg_2"],
    "exclude_received": ["cmp_1"],
    "variants": [
        {"text": "Hello", "share": 50},
        {"text": {"attribute": "language", "texts": {"fr": "Salut"}, "default": "Hello"}, "share": 50},
    ],
    "schedule": {"start": "local", "day": "2026-11-20", "time": "10:00"},
    "holdout_percent": 10,
}
PATHS = [
    *((name,) for name in (*GOOD, "not_after", "cap", "unknown")),
    ("include", 0), ("include", 1), ("variants", 0), ("variants", 1, "text"), ("variants", 1, "text", "texts"),
    ("variants", 1, "text", "texts", "fr"), ("schedule", "day"), ("schedule", "time"),
]  # fmt: skip
VALUES = [None, "", "x" * 70_000, 10**30, -1, 0.5, [], {}, [[]], "\0", True, {"start": "never"}, {"attribute": 1}]


def test_what_is_valid_is_read_as_it_is():
    document = json.dumps(GOOD)
    assert read_stored_definition(document) == (read_definition(document.encode()), [])


def test_a_part_that_is_not_valid_is_left_out_and_named():
    damaged = {**GOOD, "include": ["seg_1", "x" * 2_000], "holdout_percent": 200}
    definition, faults = read_stored_definition(json.dumps(damaged))
    assert (definition.include, definition.holdout_percent, len(definition.variants)) == (("seg_1",), 0, 2)
    assert {fault.place for fault in faults} == {"include[1]", "holdout_percent"}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(VALUES)), min_size=1, max_size=4))
def test_any_damage_can_be_read_and_written_again(damages):
    document = json.loads(json.dumps(GOOD))
    for path, value in damages:
        inner = document
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    definition, faults = read_stored_definition(json.dumps(document))
    assert read_definition(write_definition(definition)) == definition
    try:
        assert read_definition(json.dumps(document).encode()) == definition
        assert faults == []
    except DefinitionRefused:
        assert faults


def test_what_could_not_be_read_is_not_written():
    with pytest.raises(DefinitionRefused) as refused:
        write_definition(Definition(name="Spring", include=("x" * 65,), variants=(Variant(text="Hello"),)))
    assert refused.value.place == "include[0]"
