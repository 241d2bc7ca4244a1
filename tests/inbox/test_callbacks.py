"""What Twilio calls us with: receipts of one attempt among several, and keywords that it understood itself."""

import httpx
import pytest
from starlette.applications import Starlette
from tests.support.desk import NUMBER
from tests.support.gateway import OPEN
from tests.texts.fake_twilio import ACCOUNT, TOKEN

from regulars.inbox.callbacks import Callbacks
from regulars.kit.public_address import PublicAddress
from regulars.texts.providers.base import Accepted, Unclear
from regulars.texts.providers.gateways import inbound_url, receipt_url
from regulars.texts.providers.twilio import sign
from regulars.texts.request import resend
from regulars.texts.settings.model import Cap, SmsSettings, TwilioAccount

HERE = "http://shop.example"


@pytest.fixture
def twilio(desk):
    """Post a form to an address of ours, signed as Twilio signs it; gives the status."""
    desk.settings(
        SmsSettings(brand="Shop", rules=OPEN, caps=(Cap(1, 24),), twilio=TwilioAccount(ACCOUNT, "+15005550006"))
    )
    desk.alter("UPDATE sms_settings SET credentials = 'sealed' WHERE organization_id = %s")
    callbacks = Callbacks(desk.database, address=PublicAddress(HERE), open_token=lambda _: TOKEN)
    transport = httpx.ASGITransport(Starlette(routes=callbacks.routes()))

    def post(url, signed_url=None, **form):
        async def run():
            async with httpx.AsyncClient(transport=transport) as client:
                signature = sign(TOKEN, signed_url or url, form)
                return await client.post(url, data=form, headers={"x-twilio-signature": signature})

        return desk.runner.run(run()).status_code

    return post


def lose_then_send_again(desk):
    """Two attempts: whether the first left is unknown, the second is sent. Gives the address of each."""
    desk.subscribe()
    text_id = desk.order()
    desk.gateway.answer = Unclear("lost")
    desk.turn()
    desk.do(lambda tx: resend(tx, desk.organization_id, text_id))
    desk.gateway.answer = None
    return text_id


@pytest.mark.parametrize("status", ["failed", "delivered"])
def test_a_receipt_of_an_earlier_attempt_does_not_end_a_later_one(desk, twilio, status):
    lose_then_send_again(desk)
    early = receipt_url(HERE, desk.gateway.sent[0], desk.texting)
    # Before the second attempt is made, while it is on its way, and after it was taken.
    assert twilio(early, MessageStatus=status, MessageSid="SM1") == 204
    assert desk.texts() == [("queued", None)]
    desk.gateway.answer = Accepted("SM2")
    desk.turn()
    assert twilio(early, MessageStatus=status, MessageSid="SM1") == 204
    assert desk.texts() == [("sent", None)]
    # The cap still knows it.
    desk.order()
    desk.turn()
    assert desk.texts() == [("sent", None), ("skipped", "cap")]
    late = receipt_url(HERE, desk.gateway.sent[1], desk.texting)
    assert twilio(late, MessageStatus="delivered", MessageSid="SM2") == 204
    assert desk.texts()[0] == ("delivered", None)


def test_a_receipt_that_names_no_attempt_is_of_the_first(desk, twilio):
    """Addresses that an earlier release gave away are still called."""
    desk.subscribe()
    desk.order()
    desk.turn()
    address = receipt_url(HERE, desk.gateway.sent[0], desk.texting).partition("?")[0]
    assert twilio(address, MessageStatus="delivered", MessageSid=f"sid-{desk.gateway.sent[0].text_id}") == 204
    assert desk.texts() == [("delivered", None)]


def test_an_unsigned_attempt_is_refused(desk, twilio):
    desk.subscribe()
    desk.order()
    desk.turn()
    address = receipt_url(HERE, desk.gateway.sent[0], desk.texting)
    forged = address.replace("attempt=1", "attempt=2")
    assert twilio(forged, signed_url=address, MessageStatus="failed", MessageSid="SM1") == 403


def test_what_twilio_understood_counts_whatever_the_words_and_is_not_answered_again(desk, twilio):
    desk.subscribe()
    address = inbound_url(HERE, desk.texting)
    common = {"From": NUMBER, "To": "+15005550006"}
    assert twilio(address, **common, MessageSid="SM1", Body="adios", OptOutType="STOP") == 200
    assert not desk.is_subscribed()
    assert twilio(address, **common, MessageSid="SM2", Body="hola de nuevo", OptOutType="START") == 200
    assert desk.is_subscribed()
    assert twilio(address, **common, MessageSid="SM3", Body="que es esto", OptOutType="HELP") == 200
    desk.turn()
    assert desk.gateway.sent == []
    rows = desk.sql("SELECT meaning, decided FROM replies WHERE organization_id = %s ORDER BY id")
    assert rows == [("stop", "withdrew"), ("start", "revived"), ("help", "answered")]
