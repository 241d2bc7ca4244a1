"""Texts from the command line: send, receive, decide, hold, and how an organization texts."""

import threading
from datetime import UTC, datetime

import psycopg
import pytest
from tests.support.waiting import wait_until

from regulars.texts.public_holidays import coming_holidays


@pytest.fixture
def database_url(shop_database_url):
    return shop_database_url


TWILIO = ("--account-sid", "AC1", "--sender", "+15005550006", "--auth-token", "s3cret-token", "--brand", "Shop & Co")


def run(regulars, *words, **variables):
    return regulars(*words, "--organization", "Shop", **variables)


def test_a_text_is_queued_and_listed(regulars):
    sent = run(regulars, "message", "send", "--number", "+33 6 12 34 56 78", "--text", "Hello")
    assert sent.out.startswith("txt_")
    [text] = run(regulars, "message", "list", "--json", "--number", "+33612345678").data
    assert (text["id"], text["state"]) == (sent.out.strip(), "queued")
    assert text["body"] == "Shop: Hello Reply STOP to opt out"
    assert run(regulars, "message", "list", "--json", "--state", "sent").data == []
    assert "Shop: Hello" in run(regulars, "message", "list").out
    assert "queued" in run(regulars, "message", "resend", text["id"]).complains(code=1)


REFUSALS = [
    (("message", "send", "--number", "12", "--text", "x"), 2, "is not a phone number"),
    (("message", "send", "--number", "+33612345678", "--text", "Hi {{ name"), 2, "does not end"),
    (("message", "send", "--number", "+33612345678", "--text", "{{ brand }}"), 1, "has no customer"),
    (("message", "resend", "key_1"), 2, "is not the id of a text"),
    (("message", "resend", "txt_01h455vb4pex5vsknk084sn02q"), 1, "There is no text"),
    (("inbox", "decide", "rpl_01h455vb4pex5vsknk084sn02q", "stop"), 1, "There is no reply"),
    (("sms", "provider", "set", "pigeon"), 2, "simulator or twilio"),
    (("sms", "provider", "set", "twilio"), 2, "--account-sid"),
    (("sms", "provider", "set", "twilio", *TWILIO), 2, "Set REGULARS_SECRET_KEY"),
    (("sms", "rules", "set", "--hours", "Monday=8-20"), 2, "add --country"),
    (("sms", "rules", "set", "--country", "FR", "--hours", "Monday=20-8"), 1, "must begin before it ends"),
    (("sms", "rules", "set", "--country", "ZZ", "--hours", "Monday=8-20"), 1, "is not a country"),
    (("sms", "rules", "set", "--cap", "many"), 2, "TEXTS/HOURS"),
    (("sms", "rules", "set-sender", "US", "--sender", "Shop"), 1, "refuse a name"),
    (("sms", "rules", "set-sender", "US", "--price", "0.1"), 1, "is not a currency"),
]


def test_what_cannot_be_done_is_one_sentence(regulars):
    for words, code, complaint in REFUSALS:
        assert complaint in run(regulars, *words).complains(code=code), words
    assert "There is no organization" in regulars("message", "list", "--organization", "Nobody").complains(code=1)


def test_the_links_of_a_text_are_checked_against_the_host_of_short_links(regulars):
    to = ("message", "send", "--number", "+33612345678", "--text")
    host = {"REGULARS_LINK_URL": "https://go.example"}
    refused = run(regulars, *to, 'See {{ link("https://go.example/x") }}', **host)
    assert "is the host of the short links" in refused.complains(code=2)
    assert run(regulars, *to, "Bye {{ opt_out_link() }}", **host).out.startswith("txt_")


def test_a_stop_withdraws_and_an_unclear_reply_waits_for_a_person(regulars):
    received = run(regulars, "message", "receive", "--json", "--from", "+33612345678", "--text", "STOP")
    assert received.data["meaning"] == "stop"
    assert run(regulars, "inbox", "list", "--json").data == []
    run(regulars, "message", "receive", "--from", "+33612345679", "--text", "remove me please")
    [reply] = run(regulars, "inbox", "list", "--json").data
    assert reply["meaning"] == "perhaps_stop"
    assert run(regulars, "inbox", "answer", reply["id"], "--text", "Sorry").code == 0
    assert run(regulars, "inbox", "decide", reply["id"], "stop").code == 0
    assert run(regulars, "inbox", "list", "--json").data == []
    assert len(run(regulars, "inbox", "list", "--all", "--json").data) == 2


def test_the_token_of_a_provider_is_sealed_and_another_provider_begins_on_hold(regulars):
    key = "k" * 40
    done = run(regulars, "sms", "provider", "set", "twilio", *TWILIO, REGULARS_SECRET_KEY=key)
    assert "on hold" in done.err
    assert "/sms/twilio/org_" in done.err
    shown = run(regulars, "sms", "provider", "show", "--json", REGULARS_SECRET_KEY=key)
    assert shown.data["provider"] == "twilio"
    assert shown.data["held_reason"] == "The provider was changed."
    assert "s3cret-token" not in shown.out
    assert run(regulars, "sms", "release", REGULARS_SECRET_KEY=key).code == 0
    assert run(regulars, "sms", "provider", "show", "--json", REGULARS_SECRET_KEY=key).data["held_since"] is None
    assert run(regulars, "sms", "hold", "--reason", "A mistake", REGULARS_SECRET_KEY=key).code == 0
    assert (
        run(regulars, "sms", "provider", "show", "--json", REGULARS_SECRET_KEY=key).data["held_reason"] == "A mistake"
    )


def test_rules_are_set_with_a_warning_where_they_are_looser(regulars):
    done = run(
        regulars, "sms", "rules", "set", "--country", "fr", "--hours", "Sunday=10-12", "--hours", "mon=9:30-17",
        "--notice", "STOP 36111", "--reply-path", "36111", "--cap", "9/24",
    )  # fmt: skip
    assert "Sunday is closed by default in FR" in done.err
    assert "Monday is" not in done.err
    assert "at most 1 in 24 hours" in done.err
    shown = run(regulars, "sms", "rules", "show", "--json").data
    assert shown["hours"]["FR"]["Sunday"] == "10:00-12:00"
    assert shown["hours"]["FR"]["Monday"] == "9:30-17:00"
    assert shown["hours"]["US"]["Saturday"] == "10:00-17:00"
    assert shown["caps"] == [{"texts": 9, "hours": 24}]
    assert shown["notices"] == {"FR": {"words": "STOP 36111", "reply_path": "36111"}}


def test_a_country_has_a_sender_a_rate_and_a_price(regulars):
    words = ("--sender", "Shop", "--parts-per-second", "10", "--price", "0.0725 EUR")
    assert run(regulars, "sms", "rules", "set-sender", "fr", *words).code == 0
    assert run(regulars, "sms", "rules", "set-sender", "us", "--price", "0.0079 usd").code == 0
    shown = run(regulars, "sms", "rules", "show", "--json").data
    assert (shown["senders"], shown["parts_per_second"]) == ({"FR": "Shop"}, {"Shop": 10.0})
    assert shown["prices"] == {
        "FR": {"amount": "0.0725", "currency": "EUR"},
        "US": {"amount": "0.0079", "currency": "USD"},
    }
    assert "FR: a part costs 0.0725 EUR" in run(regulars, "sms", "rules", "show").err
    assert run(regulars, "sms", "rules", "set-sender", "fr", "--sender", "", "--price", "").code == 0
    shown = run(regulars, "sms", "rules", "show", "--json").data
    assert (shown["senders"], list(shown["prices"])) == ({}, ["US"])


@pytest.mark.parametrize(
    "words", [("message", "receive", "--from", "+33612345678", "--text", "STOP"), ("inbox", "decide", "REPLY", "stop")]
)
def test_a_withdrawal_is_answered_when_nothing_is_on_its_way_any_more(regulars, database_url, words):
    run(regulars, "message", "receive", "--from", "+33612345678", "--text", "remove me please")
    [reply] = run(regulars, "inbox", "list", "--json").data
    words = [reply["id"] if word == "REPLY" else word for word in words]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, number_hash, phone_number, body,"
            " parts, state, due_at, expires_at, created_at, claimed_at)"
            " SELECT organization_id, gen_random_uuid(), 'person', gen_random_uuid(), '1', number_hash, phone_number,"
            " 'x', 1, 'sending', now() + interval '1 hour', now() + interval '1 hour', now(), now() FROM replies"
        )
        answered = threading.Event()
        still_waiting = []

        def end_it():
            withdrawn = "SELECT 1 FROM subscriptions WHERE status = 'UNSUBSCRIBED'"
            wait_until(lambda: connection.execute(withdrawn).fetchone())
            still_waiting.append(not answered.wait(0.5))
            connection.execute("UPDATE texts SET state = 'sent', due_at = NULL")

        ending = threading.Thread(target=end_it)
        ending.start()
        assert run(regulars, *words).code == 0
        answered.set()
        ending.join(30)
    assert still_waiting == [True]


def test_a_restored_backup_of_an_older_schema_is_on_hold_before_it_is_migrated(regulars, database_url, tmp_path):
    key = "k" * 40
    assert run(regulars, "sms", "provider", "set", "twilio", *TWILIO, REGULARS_SECRET_KEY=key).code == 0
    assert run(regulars, "sms", "release", REGULARS_SECRET_KEY=key).code == 0
    file = str(tmp_path / "before.dump")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM migrations WHERE name = (SELECT max(name) FROM migrations)")
        assert regulars("backup", file).code == 0
        restored = regulars("restore", "--force", file)
        assert restored.code == 0, restored.err
        assert "on hold" in restored.err
        assert "regulars migrate" in restored.err
        held = connection.execute("SELECT held_reason FROM sms_settings WHERE held_since IS NOT NULL").fetchall()
    assert held == [("A backup was restored.",)]


def test_the_holidays_of_a_country_are_listed_before_a_rule_is_set(regulars):
    days = run(regulars, "sms", "rules", "holidays", "fr", "--json").data
    assert [one["day"] for one in days["everywhere"]] == [
        str(day) for day, _ in coming_holidays("FR", datetime.now(UTC).date())
    ]
    assert days["regions"] == {}
    assert "Christmas Day" in run(regulars, "sms", "rules", "holidays", "IT").err
    changed = run(regulars, "sms", "rules", "set", "--country", "FR", "--hours", "Monday=9-18")
    assert "No texts on these public holidays" in changed.err
    assert "National Day" in changed.err
    opened = run(regulars, "sms", "rules", "set", "--country", "FR", "--on-holidays")
    assert "National Day" not in opened.err


def test_the_global_holdout_is_set_and_a_share_that_is_too_large_is_one_sentence(regulars):
    refused = run(regulars, "sms", "holdout", "set", "--percent", "100")
    assert "A global holdout has 0 to 20 % of the customers, and this is 100 %." in refused.complains(code=1)
    said = run(regulars, "sms", "holdout", "set", "--percent", "10", "--journeys")
    assert "The global holdout is 10 %, with journeys." in said.out + said.err
    found = run(regulars, "sms", "holdout", "show", "--json").data
    assert (found["percent"], found["with_journeys"], found["quarters"]) == (10, True, [])
    # What is not given stays.
    changed = run(regulars, "sms", "holdout", "set", "--percent", "5", "--json").data
    assert (changed["percent"], changed["with_journeys"]) == (5, True)
    said = run(regulars, "sms", "holdout", "show")
    assert "No customer is held out now." in said.out + said.err
