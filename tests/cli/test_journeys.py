"""Journeys from the command line, beginning with the example of the documentation."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "journeys.md").read_text(), re.DOTALL)


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


def run(regulars, *words):
    return regulars("journey", *words, "--organization", "Shop")


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_documentation_can_run(regulars, tmp_path, example):
    file = tmp_path / "journey.json"
    file.write_text(example)
    created = run(regulars, "create", str(file), "--json").data
    assert created["faults"] == []
    identifier = created["id"]
    assert run(regulars, "activate", identifier).code == 0
    [listed] = run(regulars, "list", "--json").data
    assert (listed["state"], listed["live_version"]) == ("live", 1)
    assert run(regulars, "show", identifier).data["definition"] == json.loads(example)
    assert run(regulars, "runs", identifier, "--json").data == []
    played = run(regulars, "backtest", identifier, "--days", "7", "--json").data
    assert (played["entries"], played["texts"], len(played["by_day"])) == (0, 0, 7)
    shown = run(regulars, "backtest", identifier)
    assert "today's attributes" in played["note"]
    assert "today's attributes" in shown.err
    assert shown.out.splitlines()[-1].split() == ["All", "0", "0"]
    updated = run(regulars, "update", identifier, str(file), "--json").data
    assert updated["live_version"] == 2
    assert run(regulars, "pause", identifier, "--json").data["state"] == "paused"
    assert run(regulars, "activate", identifier, "--json").data["state"] == "live"
    assert run(regulars, "pause", identifier).code == 0
    assert "Only a live journey" in run(regulars, "pause", identifier).complains(code=1)
    assert run(regulars, "archive", identifier, "--json").data["state"] == "archived"


def test_what_cannot_be_done_is_one_sentence(regulars, tmp_path):
    file = tmp_path / "journey.json"
    assert "cannot be read" in run(regulars, "create", str(file)).complains(code=2)
    file.write_text('{"name": "J", "trigger": "purchase", "steps": [{"do": "fly"}]}')
    assert "steps[0].do: 'fly'" in run(regulars, "create", str(file)).complains(code=1)
    file.write_text('{"name": "J", "trigger": "purchase", "steps": [{"do": "wait"}]}')
    draft = run(regulars, "create", str(file))
    assert "It cannot run yet: 1: The wait has no length" in draft.err
    assert "It cannot run" in run(regulars, "activate", draft.out.strip()).complains(code=1)
    assert "It cannot run" in run(regulars, "backtest", draft.out.strip()).complains(code=1)
    assert run(regulars, "backtest", draft.out.strip(), "--days", "91").code == 2
    assert "There is no journey" in run(regulars, "show", "jrn_01h455vb4pex5vsknk084sn02q").complains(code=1)
    assert "There is no run" in run(regulars, "trace", "run_01h455vb4pex5vsknk084sn02q").complains(code=1)
    assert "There is no run" in run(regulars, "resume", "run_01h455vb4pex5vsknk084sn02q").complains(code=1)


def test_the_schema_is_printed(regulars):
    assert regulars("journey", "schema").data["title"] == "A journey of Regulars"
