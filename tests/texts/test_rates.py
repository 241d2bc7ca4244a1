"""The rate of a sender: it holds over restarts and for several workers, and replies never wait for it."""

import asyncio
import time
from dataclasses import replace

import pytest
from tests.support.gateway import OPEN
from tests.texts.test_priorities import database_with_loop, numbers

from regulars.links.origin_kind import OriginKind
from regulars.texts.providers.base import Accepted
from regulars.texts.rates import find_rate
from regulars.texts.send import TextQueue
from regulars.texts.settings.model import OptOutNotice, SmsSettings, TwilioAccount

A_SECOND_LATER = """
    UPDATE sender_rates SET refilled_at = now() - interval '1 second' WHERE organization_id = %s
"""


def limit(desk, **parts_per_second):
    desk.settings(SmsSettings(brand="Shop", rules=OPEN, parts_per_second=parts_per_second))


def restart(desk):
    desk.texts_queue = TextQueue({"simulator": desk.gateway})


def test_a_sender_sends_no_more_than_its_rate_also_after_a_restart(desk):
    limit(desk, simulator=5.0)
    desk.subscribe(*numbers(0, 40))
    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 30))
    desk.turn()
    assert len(desk.gateway.sent) == 10
    restart(desk)
    desk.turn()
    assert len(desk.gateway.sent) <= 12
    sent = len(desk.gateway.sent)
    desk.alter("UPDATE sender_rates SET tokens = 0 WHERE organization_id = %s")
    desk.alter(A_SECOND_LATER)
    desk.turn()
    assert 5 <= len(desk.gateway.sent) - sent <= 7
    assert desk.sql("SELECT DISTINCT attempts FROM texts WHERE organization_id = %s AND state = 'queued'") == [(0,)]


def test_a_sender_earns_tokens_again_after_the_clock_was_set_back(desk):
    limit(desk, simulator=5.0)
    desk.subscribe(*numbers(0, 40))
    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 30))
    desk.turn()
    desk.alter(
        "UPDATE sender_rates SET tokens = 0, refilled_at = now() + interval '2 hours' WHERE organization_id = %s"
    )
    sent = len(desk.gateway.sent)
    desk.turn()
    assert desk.sql("SELECT refilled_at <= now() FROM sender_rates WHERE organization_id = %s") == [(True,)]
    desk.alter(A_SECOND_LATER)
    desk.turn()
    assert len(desk.gateway.sent) >= sent + 5


def test_a_reply_leaves_at_once_and_is_paid_by_the_texts_behind_it(desk):
    limit(desk, simulator=0.1)
    desk.subscribe(*numbers(0, 3))
    desk.order_all(OriginKind.PERSON, numbers(0, 2))
    desk.turn()
    desk.reply("STOP", number=numbers(2, 1)[0])
    desk.turn()
    assert [text.phone_number for text in desk.gateway.sent] == [numbers(0, 1)[0], numbers(2, 1)[0]]
    [(tokens,)] = desk.sql("SELECT tokens FROM sender_rates WHERE organization_id = %s")
    assert -1 <= tokens < -0.5


def test_a_sender_without_tokens_does_not_hold_up_another(desk):
    settings = SmsSettings(
        rules=OPEN,
        twilio=TwilioAccount("AC1", "+15005550006"),
        senders={"FR": "Shop"},
        notices={country: OptOutNotice("STOP 36111", "36111") for country in ("FR", "DE")},
        parts_per_second={"Shop": 1000.0},
    )
    desk.settings(settings)
    desk.alter("UPDATE sms_settings SET provider = 'twilio' WHERE organization_id = %s")
    desk.texts_queue = TextQueue({"twilio": desk.gateway})
    germans = [f"+49151{index:08d}" for index in range(5)]
    desk.subscribe(*germans, *numbers(0, 5))
    desk.order_all(OriginKind.CAMPAIGN, germans)
    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 5))
    desk.turn()
    sent = [text.phone_number for text in desk.gateway.sent]
    assert len(set(sent) & set(germans)) <= 3
    assert set(numbers(0, 5)) <= set(sent)


def test_texts_that_wait_for_their_sender_leave_when_it_has_tokens(desk, api_database_url):
    limit(desk, simulator=20.0)
    desk.subscribe(*numbers(0, 60))
    desk.order_all(OriginKind.CAMPAIGN, numbers(0, 60))

    async def scenario():
        async with database_with_loop(api_database_url, desk.texts_queue, desk.organization_id) as (_, loop):
            started = time.monotonic()
            loop.wake("texts", desk.organization_id)
            async with asyncio.timeout(20):
                await all_sent.wait()
            return time.monotonic() - started

    async def accept_and_count(text):
        if len(desk.gateway.sent) == 60:
            all_sent.set()
        return await accept(text)

    async def accept(text):
        return Accepted(f"sid-{text.text_id}")

    all_sent = asyncio.Event()
    desk.gateway.answer = accept_and_count
    # 40 at once, and 20 in the second after.
    assert desk.runner.run(scenario()) >= 0.9


@pytest.mark.parametrize(
    ("provider", "sender", "rate"),
    [
        ("twilio", "+15005550006", 1.0),
        ("twilio", "36111", None),
        ("twilio", "Shop", None),
        ("simulator", "+15005550006", None),
        ("twilio", "+15005550007", 3.0),
    ],
)
def test_only_a_long_code_of_twilio_has_a_rate_by_default(desk, provider, sender, rate):
    texting = replace(desk.texting, provider=provider, settings=SmsSettings(parts_per_second={"+15005550007": 3.0}))
    assert find_rate(texting, sender) == rate
