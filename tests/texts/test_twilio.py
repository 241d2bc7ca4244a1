"""Twilio, against one of our own on loopback: what left, what did not, and what is unknown."""

import asyncio
import base64
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from tests.texts.fake_twilio import ACCOUNT, TOKEN, fake_twilio

from regulars.kit.ids import new_uuid
from regulars.kit.vault import VaultError
from regulars.texts.model import TextState
from regulars.texts.providers import twilio
from regulars.texts.providers.base import Accepted, NotAuthorized, NotReached, OutgoingText, Refused, Unclear
from regulars.texts.providers.twilio import Twilio, read_receipt
from regulars.texts.settings.model import SmsSettings, TwilioAccount
from regulars.texts.settings.store import Texting

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ACCOUNT_REFUSED = "Twilio refused the account: "


def texting(sender: str = "+15005550006", **senders: str) -> Texting:
    return Texting(
        organization_id=new_uuid(),
        organization_name="Shop",
        secret=b"s" * 32,
        provider="twilio",
        settings=SmsSettings(twilio=TwilioAccount(ACCOUNT, sender), senders=senders),
        encrypted_token=b"sealed",
    )


def outgoing() -> OutgoingText:
    return OutgoingText(
        organization_id=new_uuid(),
        text_id=new_uuid(),
        phone_number="+33612345678",
        body="Shop: Hé ! STOP 36111",
        until=NOW + timedelta(hours=3),
        sent_at=NOW,
    )


def send(*, respond=None, sender="+15005550006", prepare=None, open_token=lambda _: TOKEN, **senders):
    async def run():
        async with fake_twilio() as fake:
            if respond is not None:
                fake.respond = respond
            if prepare is not None:
                prepare(fake)
            provider = Twilio(fake.url, open_token=open_token, callback_url=lambda *_: "https://shop.example/x")
            try:
                return await provider.send(outgoing(), texting(sender, **senders)), fake.posts
            finally:
                await provider.close()

    return asyncio.run(run())


def test_a_text_leaves_with_its_validity_and_the_address_for_receipts():
    outcome, [post] = send()
    assert outcome == Accepted("SM1")
    authorization = post.pop("authorization")
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"{ACCOUNT}:{TOKEN}"
    assert post == {
        "To": "+33612345678",
        "From": "+15005550006",
        "Body": "Shop: Hé ! STOP 36111",
        "ValidityPeriod": "10800",
        "StatusCallback": "https://shop.example/x",
    }


def test_a_messaging_service_is_named_as_one():
    _, [post] = send(sender="MG123")
    assert post["MessagingServiceSid"] == "MG123"
    assert "From" not in post


def test_the_sender_is_the_one_of_the_country_of_the_number():
    _, [post] = send(FR="Shop", DE="+4915112345678")
    assert post["From"] == "Shop"


def test_a_token_that_cannot_be_opened_means_that_nothing_left():
    def locked(_texting):
        raise VaultError("another key")

    outcome, posts = send(open_token=locked)
    assert isinstance(outcome, NotAuthorized)
    assert posts == []


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"code": 21211, "message": "Invalid 'To'"}, Refused("21211", "Invalid 'To'")),
        (400, {"code": 21610, "message": "unsubscribed"}, Refused("21610", "unsubscribed", is_stop=True)),
        (401, {"code": 20003, "message": "Authenticate"}, NotAuthorized(f"{ACCOUNT_REFUSED}20003 Authenticate.")),
        (401, {}, NotAuthorized(f"{ACCOUNT_REFUSED}401.")),
        (403, {"code": 20005, "message": "Suspended."}, NotAuthorized(f"{ACCOUNT_REFUSED}20005 Suspended.")),
        (400, {"code": 21611, "message": "full"}, NotReached("The provider's queue is full.", is_busy=True)),
        (302, {}, Refused("302", "")),
        (500, {"message": "oops"}, Unclear("The provider responded with 500.")),
        (503, {}, Unclear("The provider responded with 503.")),
        (200, {"no": "sid"}, Unclear("The provider responded with 200.")),
    ],
)
def test_an_answer_is_read_for_whether_the_text_has_left(status, body, kind):
    outcome, _ = send(respond=lambda _: web.json_response(body, status=status))
    assert outcome == kind


def test_too_many_requests_means_that_nothing_left():
    outcome, _ = send(respond=lambda _: web.Response(status=429, headers={"Retry-After": "7"}))
    assert outcome == NotReached("The provider is rate limiting.", timedelta(seconds=7), is_busy=True)


@pytest.mark.parametrize("seconds", ["99999999999999", "9" * 5000])
def test_a_provider_that_asks_to_come_again_in_a_thousand_years_is_asked_within_one(seconds):
    outcome, _ = send(respond=lambda _: web.Response(status=429, headers={"Retry-After": seconds}))
    assert outcome == NotReached("The provider is rate limiting.", timedelta(days=366), is_busy=True)


def test_an_error_message_of_the_provider_can_be_stored():
    said = {"code": 21211, "message": "Not\0 a number"}
    outcome, _ = send(respond=lambda _: web.json_response(said, status=400))
    assert outcome == Refused("21211", "Not a number")


def test_a_connection_that_breaks_after_the_request_is_unclear():
    def hang_up(fake):
        fake.hangs_up = True

    outcome, posts = send(prepare=hang_up)
    assert isinstance(outcome, Unclear)
    assert len(posts) == 1


def test_a_provider_that_does_not_answer_in_time_is_unclear(monkeypatch):
    monkeypatch.setattr("regulars.texts.providers.twilio.RESPONSE_WITHIN_S", 0.3)

    def stall(fake):
        fake.stalls_s = 0.6

    outcome, _ = send(prepare=stall)
    assert isinstance(outcome, Unclear)


def test_without_a_listener_nothing_left():
    async def run():
        provider = Twilio("http://127.0.0.1:9", open_token=lambda _: TOKEN, callback_url=lambda *_: None)
        try:
            return await provider.send(outgoing(), texting())
        finally:
            await provider.close()

    assert isinstance(asyncio.run(run()), NotReached)


def test_a_signature_covers_the_address_and_every_field():
    # The example of Twilio's own documentation of signatures.
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    form = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+12349013030",
        "Digits": "1234",
        "From": "+12349013030",
        "To": "+18005551212",
    }
    signature = twilio.sign("12345", url, form)
    assert twilio.is_signed("12345", url, form, signature)
    assert not twilio.is_signed("12345", url + "x", form, signature)
    assert not twilio.is_signed("12345", url, {**form, "Digits": "4321"}, signature)
    assert not twilio.is_signed("12345", url, form, "nonsense é")


@pytest.mark.parametrize(
    ("form", "receipt"),
    [
        ({"MessageStatus": "delivered"}, (TextState.DELIVERED, None)),
        ({"MessageStatus": "undelivered", "ErrorCode": "30003"}, (TextState.FAILED, "30003")),
        ({"MessageStatus": "sent"}, (TextState.SENT, None)),
        ({"MessageStatus": "queued"}, None),
        ({}, None),
    ],
)
def test_receipts_say_what_they_know(form, receipt):
    assert read_receipt(form) == receipt
