"""What the operator changes is in the audit log, and the log proves itself."""

import inspect
import json

import psycopg
import pytest

from regulars.cli import main

# Commands of an organization that change nothing of it that people made.
READING = {
    ("key", "list"), ("consent", "verify"), ("audit", "verify"), ("message", "list"),
    ("segment", "list"), ("segment", "show"), ("segment", "count"), ("segment", "members"),
    ("segment", "explain"), ("inbox", "list"), ("journey", "list"), ("journey", "show"),
    ("journey", "runs"), ("journey", "trace"), ("journey", "backtest"), ("webhook", "list"), ("webhook", "show"),
    ("webhook", "deliveries"), ("segment", "rebuild"), ("sms", "provider", "show"), ("sms", "rules", "show"),
    ("sms", "rules", "holidays"),
}  # fmt: skip


def commands_of_organizations(app, above=()):
    for group in app.registered_groups:
        yield from commands_of_organizations(group.typer_instance, (*above, group.name))
    for command in app.registered_commands:
        if "organization" in inspect.signature(command.callback).parameters:
            yield (*above, command.name or command.callback.__name__)


def acts(database_url):
    with psycopg.connect(database_url) as connection:
        return [
            row[0]
            for row in connection.execute("SELECT act FROM audit_log WHERE actor = 'the command line' ORDER BY id")
        ]


@pytest.fixture
def shop(regulars):
    def run(*words):
        ran = regulars(*words, "-o", "Shop", REGULARS_SECRET_KEY="k" * 40, REGULARS_WEBHOOK_ALLOW="127.0.0.0/8")
        assert ran.code == 0, ran.err
        return ran

    assert regulars("organization", "create", "Shop").code == 0
    return run


def test_every_command_that_changes_an_organization_is_in_the_audit_log(shop, regulars, database_url, tmp_path):
    key = shop("key", "create", "--json").data["id"]
    assert regulars("key", "revoke", key).code == 0
    assert regulars("organization", "set", "Shop", "--locale", "fr-FR").code == 0
    shop("sms", "hold")
    shop("sms", "release")
    shop("sms", "provider", "set", "simulator", "--brand", "Corvelle")
    shop("sms", "rules", "set", "--cap", "1/24")
    journey = tmp_path / "journey.json"
    journey.write_text(json.dumps({"name": "Thanks", "trigger": "purchase", "steps": [{"do": "exit", "id": "a"}]}))
    made = shop("journey", "create", str(journey), "--json").data["id"]
    shop("journey", "update", made, str(journey))
    shop("journey", "archive", made)
    endpoint = shop("webhook", "create", "http://127.0.0.1:9/hook", "--json").data["id"]
    for verb in ("ping", "disable", "enable", "rotate", "delete"):
        shop("webhook", verb, endpoint)
    shop("message", "send", "--number", "+33612345678", "--text", "Hello")
    reply = shop("message", "receive", "--from", "+33612345678", "--text", "Who is this?", "--json").data["id"]
    shop("inbox", "decide", reply, "not-stop")
    stores = tmp_path / "stores.csv"
    stores.write_text("external_id\nS1\n")
    shop("import", "stores", str(stores))
    shop("user", "create", "me@shop.example")
    assert acts(database_url) == [
        "organization.create", "key.create", "key.revoke", "organization.change", "texts.hold", "texts.release",
        "texts.provider", "texts.rules", "journey.create", "journey.save_version", "journey.archive", "webhook.create",
        "webhook.ping", "webhook.disable", "webhook.enable", "webhook.rotate", "webhook.delete", "text.send",
        "reply.receive", "reply.not_stop", "import.run", "member.invite",
    ]  # fmt: skip


def test_a_new_command_is_recorded_or_said_to_change_nothing():
    recorded = {
        ("key", "create"), ("key", "revoke"), ("message", "send"), ("message", "resend"), ("message", "receive"), ("segment", "create"),
        ("segment", "update"), ("segment", "delete"), ("inbox", "decide"), ("inbox", "answer"), ("journey", "create"),
        ("journey", "update"), ("journey", "activate"), ("journey", "pause"), ("journey", "archive"),
        ("journey", "resume"), ("sms", "hold"), ("sms", "release"), ("sms", "provider", "set"), ("sms", "rules", "set"),
        ("webhook", "create"), ("webhook", "disable"), ("webhook", "enable"), ("webhook", "delete"),
        ("webhook", "rotate"), ("webhook", "ping"), ("webhook", "replay"), ("user", "create"), ("user", "role"),
        ("demo",), ("import",),
    }  # fmt: skip
    assert set(commands_of_organizations(main.app)) == recorded | READING


def test_verify_prints_the_end_of_each_chain_and_complains_about_a_changed_row(shop, regulars, database_url):
    shop("key", "create")
    (seen,) = regulars("audit", "verify", "--json").data
    assert (seen["rows"], seen["fault"], len(seen["head"])) == (2, None, 64)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE audit_log SET subject = 'another' WHERE act = 'key.create'")
    ran = regulars("audit", "verify", "-o", "Shop")
    assert ran.code == 1
    assert "Shop: row 2: its subject is not the one it commits to." in " ".join(ran.err.split())
