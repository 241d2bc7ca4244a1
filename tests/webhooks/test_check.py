"""The signature checker, step by step; and the samples that pages and the document share."""

import base64
import json
import re
from datetime import UTC, datetime

import pytest
from tests.support.project import ROOT

from regulars.webhooks.event_reference import EVENTS, read_example_receiver
from regulars.webhooks.secrets import format_secret
from regulars.webhooks.signature import NamedSecret, check_signature, read_headers, read_secret, sign

SECRET = bytes(range(32))
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
AT = int(NOW.timestamp())
KNOWN = (NamedSecret(SECRET, "the secret"),)
BODY = '{"type":"profile.created","data":{"name":"Zoë"}}'
DOCUMENT = (ROOT / "docs" / "webhooks.md").read_text()


def headers(**changes):
    signature = sign([SECRET], message_id="msg_1", timestamp=AT, body=BODY.encode())
    made = {"webhook-id": "msg_1", "webhook-timestamp": str(AT), "webhook-signature": signature}
    made.update({name.replace("_", "-"): value for name, value in changes.items()})
    return {name: value for name, value in made.items() if value is not None}


def wrong(given, body=BODY, secrets=KNOWN):
    """The titles of the steps that fail."""
    return [step.title for step in check_signature(given, body, secrets, now=NOW) if step.is_right is False]


def test_what_is_genuine_passes_every_step():
    assert all(step.is_right for step in check_signature(headers(), BODY, [NamedSecret(SECRET, "it")], now=NOW))


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"webhook_id": None}, "The three headers are there"),
        ({"webhook_timestamp": "2026-03-02"}, "The time can be read"),
        ({"webhook_timestamp": "²"}, "The time can be read"),
        ({"webhook_timestamp": str(AT - 301)}, "The time is near"),
        ({"webhook_timestamp": str(AT + 301)}, "The time is near"),
        ({"webhook_timestamp": "9" * 4000}, "The time is near"),
        ({"webhook_signature": "K5oZ"}, "The signature has the right form"),
        ({"webhook_signature": "v1,%20"}, "The signature has the right form"),
        ({"webhook_signature": "v1," + base64.b64encode(bytes(31)).decode()}, "The signature has the right form"),
        ({"webhook_id": "msg_2"}, "The signature fits"),
    ],
)
def test_the_step_that_fails_is_named(changes, fails):
    assert fails in wrong(headers(**changes))


@pytest.mark.parametrize("body", [BODY + "\n", json.dumps(json.loads(BODY)), json.dumps(json.loads(BODY), indent=4)])
def test_a_body_that_was_written_again_is_recognised(body):
    assert wrong(headers(), body) == ["The signature fits"]
    last = check_signature(headers(), body, [NamedSecret(SECRET, "it")], now=NOW)[-1]
    assert "It would fit if" in last.text


def test_another_secret_does_not_fit_and_the_one_before_does():
    assert wrong(headers(), secrets=[NamedSecret(bytes(32), "it")]) == ["The signature fits"]
    assert wrong(headers(), secrets=[NamedSecret(bytes(32), "it"), NamedSecret(SECRET, "the one before")]) == []
    assert wrong(headers(), secrets=[]) == ["There is a secret to check with"]


def test_headers_are_read_as_people_paste_them():
    pasted = "POST /hook HTTP/1.1\nWebhook-Id: msg_1\n  -H 'webhook-timestamp: 12' \\\nwebhook-signature=v1,ab=\n\n"
    assert read_headers(pasted) == {"webhook-id": "msg_1", "webhook-timestamp": "12", "webhook-signature": "v1,ab="}


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_ä", "pizza!", "whsec_abc"])
def test_what_is_no_secret_is_none(text):
    assert read_secret(text) is None


def test_a_shown_secret_is_read_back():
    assert read_secret(f" {format_secret(SECRET)} ") == SECRET


def test_the_samples_and_receivers_of_the_pages_are_those_of_the_document():
    documented = {
        json.loads(text)["type"]: json.loads(text) for text in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    }
    assert {one.type: one.body for one in EVENTS} == documented
    for language, name in (("python", "python"), ("javascript", "node")):
        assert re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL) == [read_example_receiver(name)]


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ('-H "Webhook-Id: msg_1"', {"webhook-id": "msg_1"}),
        ("-H 'webhook-id : msg_1' \\", {"webhook-id": "msg_1"}),
        ("'webhook-id: msg_1'", {"webhook-id": "msg_1"}),
        ("webhook-id=msg_1", {"webhook-id": "msg_1"}),
        ("host: a:b=c", {"host": "a:b=c"}),
        ("x y: z", {}),
        (": z", {}),
        ("é: z", {}),
        ("webhook-id", {}),
    ],
)
def test_a_header_is_a_name_a_colon_and_a_value(line, header):
    assert read_headers(line) == header


def test_a_body_of_any_depth_is_checked():
    assert wrong(headers(), "[" * 500_000) == ["The signature fits"]


def test_a_line_without_end_is_cut():
    found = read_headers("webhook-id: " + " " * 1_000_000 + "x\n" + "\n" * 1_000_000 + "webhook-timestamp: 1")
    assert found == {"webhook-id": ""}
