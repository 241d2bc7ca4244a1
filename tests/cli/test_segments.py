"""Segments from the command line, beginning with the example of the documentation."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
[EXAMPLE] = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "segments.md").read_text(), re.DOTALL)
NAMED = {"name": "Named", "match": {"type": "all", "of": [{"type": "named"}]}}


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


def run(regulars, *words):
    return regulars("segment", *words, "--organization", "Shop")


def write(tmp_path, content) -> str:
    file = tmp_path / "segment.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


def test_the_example_of_the_documentation_is_saved_and_says_what_is_missing(regulars, tmp_path):
    created = run(regulars, "create", write(tmp_path, EXAMPLE), "--json").data
    assert [fault["message"] for fault in created["faults"]] == [
        "No attribute is called tier.",
        "No attribute is called points_balance.",
        "No product property is called collection.",
    ]
    assert run(regulars, "show", created["id"]).data["definition"] == json.loads(EXAMPLE)


def test_a_segment_is_changed_listed_explained_and_deleted(regulars, tmp_path):
    identifier = run(regulars, "create", write(tmp_path, NAMED)).out.strip()
    assert (
        run(regulars, "update", identifier, write(tmp_path, {**NAMED, "name": "Known"}), "--json").data["version"] == 2
    )
    [listed] = run(regulars, "list", "--json").data
    assert (listed["name"], listed["last_count"]) == ("Known", None)
    assert "There is no customer C1" in run(regulars, "explain", identifier, "C1").complains(code=1)
    asking = {"name": "Asks", "match": {"type": "none", "of": [{"type": "segment", "id": identifier}]}}
    other = run(regulars, "create", write(tmp_path, asking)).out.strip()
    assert "It is used by" in run(regulars, "delete", identifier).complains(code=1)
    assert run(regulars, "delete", other).code == 0
    assert run(regulars, "rebuild").code == 0
    assert run(regulars, "delete", identifier).code == 0
    assert "nothing to rebuild" in run(regulars, "rebuild").complains(code=1)


def test_what_is_wrong_is_one_sentence_with_its_place(regulars, tmp_path):
    wrong = {"name": "S", "match": {"type": "all", "of": [{"type": "bought", "stores": ["ROME"]}]}}
    said = run(regulars, "create", write(tmp_path, wrong)).complains(code=1)
    assert "match.of[0].stores: There is no store ROME." in said
    assert "not JSON" in run(regulars, "create", write(tmp_path, "{")).complains(code=1)
    assert "cannot be read" in run(regulars, "create", str(tmp_path / "none.json")).complains(code=2)
    assert "is not the id of a segment" in run(regulars, "show", "jrn_x").complains(code=2)
