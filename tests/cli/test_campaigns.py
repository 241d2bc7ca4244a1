"""Campaigns from the command line."""

import json

import psycopg
import pytest

from regulars.kit.ids import new_uuid


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


def run(regulars, *words):
    return regulars("campaign", *words, "--organization", "Shop")


def test_a_campaign_is_created_scheduled_stopped_and_shown(regulars, tmp_path, database_url):
    file = tmp_path / "file.json"
    file.write_text('{"name": "All", "match": {"type": "all", "of": [{"type": "consent", "state": "may_be_texted"}]}}')
    segment = regulars("segment", "create", str(file), "--organization", "Shop").out.strip()
    given = {
        "name": "Sale",
        "include": [segment],
        "variants": [{"text": "Hello"}],
        "schedule": {"start": "at", "at": "2099-11-20T10:00:00Z"},
    }
    file.write_text(json.dumps({**given, "variants": [{"text": "{{ nothing }}"}]}))
    draft = run(regulars, "create", str(file))
    identifier = draft.out.strip()
    assert "It cannot be sent yet: variants[0].text: There is no field nothing" in draft.err
    assert "It cannot be sent" in run(regulars, "schedule", identifier, "--recipients", "1").complains(code=1)
    checked = run(regulars, "check", identifier, "--json").data
    assert ([fault["place"] for fault in checked["faults"]], checked["estimate"]) == (["variants[0].text"], None)
    file.write_text(json.dumps(given))
    assert run(regulars, "update", identifier, str(file), "--json").data["faults"] == []
    checked = run(regulars, "check", identifier, "--exact").err
    assert "It can be sent." in checked
    assert "cannot be counted now" in checked
    assert run(regulars, "approval", "--recipients", "0").code == 0
    assert "another person" in run(regulars, "schedule", identifier, "--recipients", "1").complains(code=1)
    assert run(regulars, "approval").code == 0
    assert "write it as 12.50EUR" in run(
        regulars, "schedule", identifier, "--recipients", "1", "--cost", "much"
    ).complains(code=2)
    amounts = ("--cost", "12.50EUR", "--cost", "3 chf")
    assert "2099-11-20" in run(regulars, "schedule", identifier, "--recipients", "1", *amounts).err
    assert run(regulars, "show", identifier).data["confirmed_cost"] == {"EUR": "12.50", "CHF": "3"}
    assert "scheduled already" in run(regulars, "send", identifier, "--recipients", "1").complains(code=1)
    [listed] = run(regulars, "list", "--json").data
    assert (listed["id"], listed["state"], listed["outcomes"]) == (identifier, "scheduled", {})
    assert run(regulars, "pause", identifier, "--json").data["state"] == "paused"
    assert run(regulars, "resume", identifier, "--recipients", "2", "--json").data["confirmed_recipients"] == 2
    assert run(regulars, "recipients", identifier, "--outcome", "waiting", "--json").data == []
    assert run(regulars, "proof", identifier).out == ""
    assert run(regulars, "cancel", identifier, "--json").data["state"] == "cancelled"
    assert "Archived." in run(regulars, "archive", identifier).err
    copy = run(regulars, "duplicate", identifier, "--json").data
    assert run(regulars, "show", copy["id"]).data["definition"]["name"] == "Sale (copy)"
    with psycopg.connect(database_url, autocommit=True) as connection:
        for statement in (
            """UPDATE campaigns SET definition = jsonb_set(definition::jsonb, '{include,1}', '""')::json""",
            """UPDATE segment_versions SET definition = jsonb_set(definition::jsonb, '{match,of,1}', '{}')::json""",
        ):
            connection.execute(statement)
    damaged = run(regulars, "show", copy["id"]).data
    assert (damaged["definition"]["include"], damaged["faults"][0]["place"]) == ([segment], "include[1]")
    assert "Repair it before" in run(regulars, "duplicate", copy["id"]).complains(code=1)
    [fault] = regulars("segment", "show", segment, "--organization", "Shop").data["faults"]
    assert fault["place"] == "match.of[1]"
    assert "There is no campaign" in run(regulars, "show", "cmp_01h455vb4pex5vsknk084sn02q").complains(code=1)
    assert regulars("campaign", "schema").data["title"] == "A campaign of Regulars"


@pytest.fixture
def scheduled(regulars, tmp_path):
    """A campaign that starts long after the test."""
    file = tmp_path / "file.json"
    file.write_text('{"name": "All", "match": {"type": "all", "of": [{"type": "consent", "state": "may_be_texted"}]}}')
    segment = regulars("segment", "create", str(file), "--organization", "Shop").out.strip()
    schedule = {"start": "at", "at": "2099-11-20T10:00:00Z"}
    file.write_text(
        json.dumps({"name": "Sale", "include": [segment], "variants": [{"text": "Hi"}], "schedule": schedule})
    )
    identifier = run(regulars, "create", str(file)).out.strip()
    assert run(regulars, "schedule", identifier, "--recipients", "5").code == 0
    return identifier


def test_resume_confirms_no_question_without_its_numbers(regulars, scheduled, database_url):
    assert run(regulars, "pause", scheduled).code == 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            """UPDATE campaigns SET reason = 'Confirm 19?', question = '{"recipients": 19, "cost": {"EUR": "0.95"}}'"""
        )
    refused = run(regulars, "resume", scheduled).complains(code=1)
    assert refused.endswith(
        "Confirm 19? Nothing was confirmed: repeat the command with --recipients 19 --cost 0.95EUR."
    )
    for other in (("--recipients", "20", "--cost", "0.95EUR"), ("--recipients", "19"), ("--cost", "0.95EUR")):
        refused = run(regulars, "resume", scheduled, *other).complains(code=1)
        assert refused.endswith(f"with --recipients 19 --cost 0.95EUR instead of {' '.join(other)}.")
    assert run(regulars, "show", scheduled).data["state"] == "paused"
    resumed = run(regulars, "resume", scheduled, "--recipients", "19", "--cost", "0.95EUR", "--json").data
    assert (resumed["state"], resumed["confirmed_recipients"]) == ("scheduled", 19)


def test_a_question_about_a_cost_with_the_decimals_of_prices_is_answered_as_printed(regulars, scheduled, database_url):
    assert run(regulars, "pause", scheduled).code == 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            """UPDATE campaigns SET question = '{"recipients": 19, "cost": {"EUR": "0.137751", "CHF": "3E+1"}}'"""
        )
    # More than the database stores.
    for name in ("send", "schedule", "resume"):
        assert run(regulars, name, scheduled, "--recipients", "9" * 30).code == 2, name
    refused = run(regulars, "resume", scheduled).complains(code=1)
    options = refused.partition("repeat the command with ")[2].rstrip(".")
    assert options == "--recipients 19 --cost 0.137751EUR --cost 30CHF"
    assert run(regulars, "resume", scheduled, *options.split(), "--json").data["state"] == "scheduled"


def add_member(database_url, email, role):
    with psycopg.connect(database_url, autocommit=True) as connection:
        user = new_uuid()
        connection.execute(
            "INSERT INTO users (id, email, name, created_at) VALUES (%s, %s, 'Someone', now())", (user, email)
        )
        connection.execute(
            "INSERT INTO memberships SELECT id, %s, %s, now() FROM organizations WHERE name = 'Shop'", (user, role)
        )


def test_a_command_approves_only_as_a_member_who_may(regulars, tmp_path, database_url):
    for name, role in (("ann", "marketer"), ("bob", "admin"), ("dev", "developer")):
        add_member(database_url, f"{name}@shop.example", role)
    file = tmp_path / "file.json"
    file.write_text('{"name": "All", "match": {"type": "all", "of": [{"type": "consent", "state": "may_be_texted"}]}}')
    segment = regulars("segment", "create", str(file), "--organization", "Shop").out.strip()
    schedule = {"start": "at", "at": "2099-11-20T10:00:00Z"}
    file.write_text(
        json.dumps({"name": "Sale", "include": [segment], "variants": [{"text": "Hi"}], "schedule": schedule})
    )
    assert run(regulars, "approval", "--recipients", "0").code == 0
    unsigned = run(regulars, "create", str(file)).out.strip()
    signed = run(regulars, "create", str(file), "--as", "ann@shop.example").out.strip()
    numbers = ("--recipients", "19", "--cost", "2EUR")
    assert "--as" in run(regulars, "approve", signed, *numbers).err
    approve = ("approve", signed, *numbers, "--as")
    assert "Another person" in run(regulars, *approve, "ann@shop.example").complains(code=1)
    assert "another role" in run(regulars, *approve, "dev@shop.example").complains(code=1)
    assert "no such member" in run(regulars, *approve, "eve@shop.example").complains(code=1)
    command = run(regulars, "approve", unsigned, *numbers, "--as", "bob@shop.example").complains(code=1)
    assert "A command changed the campaign or its segments without --as" in command
    approved = run(regulars, *approve, "Bob@shop.example", "--json").data
    assert (approved["approved_by"], approved["approved_recipients"]) == ("bob@shop.example", 19)
    assert approved["approved_cost"] == {"EUR": "2.10"}
    assert run(regulars, "schedule", signed, *numbers).code == 0
    assert "another person" in run(regulars, "schedule", unsigned, *numbers).complains(code=1)
    # A change of the segment by a command without --as voids the approval and rules out another one by a command.
    other = run(regulars, "create", str(file), "--as", "ann@shop.example").out.strip()
    file.write_text('{"name": "All", "match": {"type": "all", "of": [{"type": "consent", "state": "withdrawn"}]}}')
    assert regulars("segment", "update", segment, str(file), "--organization", "Shop").code == 0
    refused = run(regulars, "approve", other, *numbers, "--as", "bob@shop.example").complains(code=1)
    assert "without --as" in refused
