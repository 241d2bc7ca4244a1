"""Every command that changes an organization is in the audit log, and the log can be verified."""

import json

import psycopg
import pytest
from typer.core import TyperGroup

from regulars.cli.main import COMMANDS
from regulars.kit import ids

# Commands that change nothing but the last count of a segment.
READING = {
    "key list", "consent verify", "audit verify", "message list", "segment schema", "segment list", "segment show",
    "segment count", "segment members", "segment explain", "inbox list", "journey schema", "journey list",
    "journey show", "journey runs", "journey trace", "journey backtest", "webhook list", "webhook show",
    "webhook deliveries", "sms provider show", "sms rules show", "sms rules holidays", "sms holdout show",
    "organization list", "user list", "config", "backup", "campaign schema", "campaign list", "campaign show",
    "campaign check", "campaign recipients", "attribution show", "explore", "address show",
}  # fmt: skip
# Commands about the installation and not about one organization; and a log is deleted with its organization.
BEYOND_ORGANIZATIONS = {
    "serve", "serve-process", "worker", "analysis", "migrate", "restore", "vault seal", "vault rotate",
    "organization delete", "address set", "address clear",
}  # fmt: skip
SMS_COMMANDS = (
    "hold", "release", "provider set simulator --brand Corvelle", "rules set --cap 1/24", "rules set-sender FR --sender S",
    "holdout set --percent 10",
)  # fmt: skip
RECORDED = {
    "organization create": "organization.create",
    "organization set": "organization.change",
    "organization rename": "organization.change",
    "key create": "key.create",
    "key revoke": "key.revoke",
    "sms hold": "texts.hold",
    "sms release": "texts.release",
    "sms provider set": "texts.provider",
    "sms rules set": "texts.rules",
    "sms rules set-sender": "texts.sender",
    "sms holdout set": "texts.holdout",
    "segment create": "segment.create",
    "segment update": "segment.update",
    "segment rebuild": "segment.rebuild",
    "segment delete": "segment.delete",
    "journey create": "journey.create",
    "journey update": "journey.save_version",
    "journey activate": "journey.activate",
    "journey resume": "journey.resume_run",
    "journey pause": "journey.pause",
    "journey archive": "journey.archive",
    "campaign create": "campaign.create",
    "campaign duplicate": "campaign.create",
    "campaign follow-up": "campaign.create",
    "campaign update": "campaign.update",
    "campaign approval": "campaign.approval",
    "campaign approve": "campaign.approve",
    "campaign schedule": "campaign.schedule",
    "campaign send": "campaign.send",
    "campaign pause": "campaign.pause",
    "campaign resume": "campaign.resume",
    "campaign cancel": "campaign.cancel",
    "campaign archive": "campaign.archive",
    "campaign proof": "campaign.proof",
    "attribution recompute": "attribution.recompute",
    "webhook create": "webhook.create",
    "webhook ping": "webhook.ping",
    "webhook replay": "webhook.replay",
    "webhook disable": "webhook.disable",
    "webhook enable": "webhook.enable",
    "webhook rotate": "webhook.rotate",
    "webhook delete": "webhook.delete",
    "message send": "text.send",
    "message resend": "text.resend",
    "message receive": "reply.receive",
    "inbox answer": "reply.answer",
    "inbox decide": "reply.not_stop",
    "import": "import.run",
    "demo": "demo.fill",
    "user create": "member.invite",
    "user role": "member.role",
    "user disable": "user.disable",
    "user enable": "user.enable",
    "user link": "member.password_link",
    "doctor": "organization.recount",
}
# The same commands with options that change something else.
RECORDED_OPTIONS = {"reply.withdraw", "webhook.replay_range", "second_factor.disable"}


def walk(command, path):
    if not isinstance(command, TyperGroup):
        yield path
        return
    for name, inner in command.commands.items():
        lazy = getattr(command, "table", {}).get(name)
        yield from walk(lazy.load(name) if lazy else inner, f"{path} {name}")


def acts(database_url):
    with psycopg.connect(database_url) as connection:
        return [
            row[0]
            for row in connection.execute(
                "SELECT act FROM audit_log WHERE actor IN ('the command line', 'them@shop.example') ORDER BY id"
            )
        ]


@pytest.fixture
def shop(regulars):
    def run(*words):
        ran = regulars(*words, "-o", "Shop", REGULARS_SECRET_KEY="k" * 40, REGULARS_WEBHOOK_ALLOW="127.0.0.0/8")
        assert ran.code == 0, ran.err
        return ran

    assert regulars("organization", "create", "Shop").code == 0
    return run


def test_a_new_command_is_recorded_or_said_to_change_nothing():
    commands = {path for name, lazy in COMMANDS.items() for path in walk(lazy.load(name), name)}
    assert commands == RECORDED.keys() | READING | BEYOND_ORGANIZATIONS


def run_campaigns(shop, segment, file, change):
    later = {"start": "at", "at": "2099-11-20T10:00:00Z"}
    definition = {"name": "Sale", "include": [segment], "variants": [{"text": "Hello"}], "schedule": later}
    sale = file("campaign.json", json.dumps(definition))
    campaign = shop("campaign", "create", sale, "--json").data["id"]
    shop("campaign", "update", campaign, sale)
    shop("campaign", "approval", "--recipients", "0")
    change(
        "UPDATE campaigns SET updated_by = 'me@shop.example', created_by = 'me@shop.example', changed_by = '{me@shop.example}'"
    )
    shop("campaign", "approve", campaign, "--as", "them@shop.example", "--recipients", "1")
    shop("campaign", "approval")
    shop("campaign", "schedule", campaign, "--recipients", "1")
    for verb in ("pause", "resume", "cancel", "proof", "archive"):
        shop("campaign", verb, campaign)
    copy = shop("campaign", "duplicate", campaign, "--json").data["id"]
    shop("campaign", "send", copy, "--recipients", "1")
    shop("campaign", "cancel", copy)
    change("UPDATE campaigns SET frozen_at = now() WHERE state = 'cancelled'")
    shop("campaign", "follow-up", copy)
    shop("attribution", "recompute")


def test_every_command_that_changes_an_organization_is_in_the_audit_log(shop, regulars, database_url, tmp_path):
    def do(*words):
        assert regulars(*words).code == 0, words

    def change(statement, *values):
        with psycopg.connect(database_url) as connection:
            connection.execute(statement, values)

    def file(name, content):
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    do("organization", "set", "Shop", "--locale", "fr-FR")
    do("organization", "rename", "Shop", "Other")
    do("organization", "rename", "Other", "Shop")
    key = shop("key", "create", "--json").data["id"]
    do("key", "revoke", key)
    for words in SMS_COMMANDS:
        shop("sms", *words.split())
    definition = file(
        "segment.json",
        json.dumps({"name": "Buyers", "match": {"type": "all", "of": [{"type": "tickets", "at_least": 1}]}}),
    )
    segment = shop("segment", "create", definition, "--json").data["id"]
    shop("segment", "update", segment, definition)
    shop("segment", "rebuild")
    change(
        "INSERT INTO users (id, email, name, created_at) VALUES (%s, 'them@shop.example', '', now())", ids.new_uuid()
    )
    change(
        "INSERT INTO memberships SELECT o.id, u.id, 'admin', now() FROM organizations o, users u WHERE o.name = 'Shop'"
    )
    run_campaigns(shop, segment, file, change)
    shop("segment", "delete", segment)
    definition = {"name": "Thanks", "trigger": "purchase", "steps": [{"do": "exit", "id": "a"}]}
    thanks = file("journey.json", json.dumps(definition))
    journey = shop("journey", "create", thanks, "--json").data["id"]
    shop("journey", "update", journey, thanks)
    shop("journey", "activate", journey)
    run = ids.new_uuid()
    change(
        "INSERT INTO journey_runs (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id, state, step,"
        " entered_at) SELECT organization_id, %s, id, 2, 'sale', '1', %s, 'parked', 'a', now() FROM journeys",
        run, ids.new_uuid(),
    )  # fmt: skip
    shop("journey", "resume", ids.RUN.encode(run))
    shop("journey", "pause", journey)
    shop("journey", "archive", journey)
    endpoint = shop("webhook", "create", "http://127.0.0.1:9/hook", "--json").data["id"]
    delivery = shop("webhook", "ping", endpoint, "--json").data["delivery"]
    shop("webhook", "replay", delivery)
    shop("webhook", "replay", "--endpoint", endpoint, "--from", "2026-01-01T00:00:00Z")
    for verb in ("disable", "enable", "rotate", "delete"):
        shop("webhook", verb, endpoint)
    text = shop("message", "send", "--number", "+33612345678", "--text", "Hello").out.strip()
    change("UPDATE texts SET state = 'unknown'")
    shop("message", "resend", text)
    asking = ("message", "receive", "--from", "+33612345678", "--text", "Who is this?", "--json")
    shop("inbox", "answer", shop(*asking).data["id"], "--text", "Your shop.")
    for verdict in ("not-stop", "stop"):
        shop("inbox", "decide", shop(*asking).data["id"], verdict)
    shop("import", "stores", file("stores.csv", "external_id\nS1\n"))
    regulars("demo", "-o", "Demo", "--sales", "1", REGULARS_SECRET_KEY="k" * 40)
    shop("user", "create", "me@shop.example")
    shop("user", "role", "them@shop.example", "analyst")
    for verb in ("disable", "enable", "link"):
        do("user", verb, "them@shop.example")
    do("user", "link", "them@shop.example", "--without-second-factor")
    do("doctor", "--recount")
    assert set(acts(database_url)) == {*RECORDED.values(), *RECORDED_OPTIONS}


def test_verify_prints_the_end_of_each_chain_and_complains_about_a_changed_row(shop, regulars, database_url):
    shop("key", "create")
    (seen,) = regulars("audit", "verify", "--json").data
    assert (seen["rows"], seen["fault"], len(seen["head"])) == (2, None, 64)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE audit_log SET subject = 'another' WHERE act = 'key.create'")
    ran = regulars("audit", "verify", "-o", "Shop")
    assert ran.code == 1
    assert "Shop: row 2: its subject is not the one it commits to." in " ".join(ran.err.split())
