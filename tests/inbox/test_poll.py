"""Reading the provider's list of replies: whatever the sender is, to the mark, without a lock for what is known, and
without bringing an erased person back."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.inbox.test_erasure import customer, erase, rows_with
from tests.support.desk import NUMBER
from tests.support.gateway import OPEN
from tests.texts.fake_twilio import ACCOUNT, TOKEN, FakeTwilio, fake_twilio

from regulars.inbox import poll as inbound_poll
from regulars.inbox.deduplication import sweep_hashes
from regulars.inbox.find import list_replies
from regulars.inbox.poll import InboundPolls
from regulars.texts.providers.twilio import Twilio
from regulars.texts.settings.model import SmsSettings, TwilioAccount

SENDER = "+15005550006"


def use_twilio(desk, sender=SENDER):
    desk.settings(SmsSettings(brand="Shop", rules=OPEN, twilio=TwilioAccount(ACCOUNT, sender)))
    desk.alter("UPDATE sms_settings SET provider = 'twilio', credentials = 'sealed' WHERE organization_id = %s")


def message(sid, body="STOP", *, number=NUMBER, to=SENDER, ago=timedelta(minutes=1), direction="inbound"):
    sent = format_datetime(datetime.now(UTC) - ago)
    return {"sid": sid, "direction": direction, "from": number, "to": to, "body": body, "date_sent": sent}


@pytest.fixture
def fake(desk) -> Iterator[FakeTwilio]:
    """A Twilio on loopback."""
    opening = fake_twilio()
    yield desk.runner.run(opening.__aenter__())
    desk.runner.run(opening.__aexit__(None, None, None))


class Polls:
    def __init__(self, desk, fake) -> None:
        self.desk = desk
        self.provider = Twilio(fake.url, open_token=lambda _: TOKEN, callback_url=lambda *_: None)
        self.queue = InboundPolls(self.provider, desk.database)

    def read(self) -> None:
        """Reads the list once."""
        self.desk.alter("UPDATE sms_settings SET due_at = now() - interval '1 second' WHERE organization_id = %s")
        self.desk.runner.run(self.read_due())

    async def read_due(self) -> None:
        await self.queue.run_pass(self.desk.database, self.desk.organization_id)
        await self.queue.finish()


@pytest.fixture
def polls(desk, fake) -> Iterator[Polls]:
    opened = Polls(desk, fake)
    yield opened
    desk.runner.run(opened.provider.close())


def replies(desk):
    return desk.do(lambda tx: list_replies(tx, desk.organization_id, limit=1000))


@pytest.mark.parametrize(
    ("sender", "to"),
    [(SENDER, SENDER), ("12345", "12345"), ("MG1", "+15005550008"), ("MG1", "54321")],
    ids=["number", "short code", "number of a service", "short code of a service"],
)
def test_a_stop_is_found_behind_any_number_of_texts_that_we_sent(desk, fake, polls, sender, to):
    use_twilio(desk, sender)
    desk.subscribe()
    fake.numbers, fake.short_codes = ["+15005550007", "+15005550008"], ["54321"]
    ours = [message(f"OUT{it}", "Hello", to=NUMBER, direction="outbound-api") for it in range(12_000)]
    fake.inbound = [*ours, message("SM1", to=to)]
    polls.read()
    assert not desk.is_subscribed()
    assert desk.texting.inbound_progress.read_until is not None
    assert not desk.texting.inbound_progress.is_behind


def test_replies_to_the_sender_of_a_country_are_read_too(desk, fake, polls):
    account = TwilioAccount(ACCOUNT, "SHOP")
    desk.settings(SmsSettings(rules=OPEN, twilio=account, senders={"DE": SENDER, "FR": "38123", "CH": SENDER}))
    desk.alter("UPDATE sms_settings SET provider = 'twilio', credentials = 'x' WHERE organization_id = %s")
    desk.subscribe()
    fake.inbound = [message("SM1", to="38123")]
    polls.read()
    assert not desk.is_subscribed()
    assert set(desk.texting.inbound_progress.senders) == {SENDER, "38123"}


def test_a_name_gets_no_replies_and_its_list_is_not_read(desk, fake, polls):
    use_twilio(desk, "SHOP")
    polls.read()
    assert fake.asked == []


def test_a_list_that_is_longer_than_a_pass_is_read_on_until_the_mark_and_says_so(desk, fake, polls, monkeypatch):
    monkeypatch.setattr(inbound_poll, "SENDER_PAGES_MAX", 2)
    use_twilio(desk)
    desk.subscribe()
    fake.page_messages = 3
    fake.inbound = [message(f"SM{it}", "ok", number=f"+3361234000{it}") for it in range(9)]
    fake.inbound.append(message("SM10", "STOP", ago=timedelta(hours=20)))
    for is_behind in (True, False):
        polls.read()
        soon = desk.sql("SELECT due_at - now() < interval '1 minute' FROM sms_settings WHERE organization_id = %s")
        assert (desk.texting.inbound_progress.is_behind, soon) == (is_behind, [(is_behind,)])
    # The mark is reached: from now on only what is newer is read.
    asked = len(fake.asked)
    fake.inbound.insert(0, message("SM11", "merci", number="+33612340020"))
    polls.read()
    assert len(fake.asked) - asked <= 2
    assert not desk.is_subscribed()
    assert len(replies(desk)) == 11


def test_a_list_that_cannot_be_read_is_said_on_the_page_until_it_can(desk, fake, polls):
    use_twilio(desk)
    desk.subscribe()
    fake.refuses_to_list = 503
    polls.read()
    marks = desk.texting.inbound_progress
    assert "503" in marks.error
    assert marks.failing_since is not None
    fake.refuses_to_list = 0
    fake.inbound = [message("SM1")]
    polls.read()
    assert desk.texting.inbound_progress.error is None
    assert not desk.is_subscribed()


def test_a_sender_whose_list_cannot_be_read_keeps_no_other_from_being_read(desk, fake, polls, monkeypatch):
    monkeypatch.setattr(inbound_poll, "PASS_PAGES_MAX", 2)
    use_twilio(desk, "MG1")
    desk.subscribe()
    bad, good, last = "+15005550007", "+15005550008", "54321"
    fake.numbers, fake.short_codes = [bad, good], [last]
    fake.unlisted = {bad}
    fake.inbound = [message("SM1", "merci", to=good)]
    polls.read()
    marks = desk.texting.inbound_progress
    # The one that failed comes last: a pass has time for two.
    fake.inbound = [message("SM2", "STOP", to=last)]
    polls.read()
    assert len(replies(desk)) == 2
    assert not desk.is_subscribed()
    assert "500" in marks.error
    assert marks.failing_since is not None
    read_until = {sender: mark.read_until for sender, mark in marks.senders.items()}
    assert read_until[good] > read_until[bad] == read_until[last]
    again = desk.texting.inbound_progress
    assert again.senders[last].read_until > read_until[good]
    assert again.senders[bad].read_until == read_until[bad]


def test_known_replies_are_taken_again_without_a_lock(desk, fake, polls):
    use_twilio(desk)
    desk.subscribe()
    fake.inbound = [message("SM1", "merci")]
    polls.read()
    desk.alter("UPDATE sms_settings SET due_at = now() - interval '1 second' WHERE organization_id = %s")

    async def read_while_locked(tx):
        # A withdrawal at this moment locks the number; the poll must neither wait for it nor delay it.
        await tx.fetch("SELECT 1 FROM subscriptions WHERE organization_id = %s FOR UPDATE", (desk.organization_id,))
        await asyncio.wait_for(polls.read_due(), 60)

    desk.do(read_while_locked)
    assert desk.texting.inbound_progress.error is None
    assert len(replies(desk)) == 1


def test_a_person_who_was_erased_does_not_come_back_with_the_list(desk, fake, polls):
    profile_id = customer(desk, "C1")
    use_twilio(desk)
    fake.inbound = [message("SM2", "Unmistakable"), message("SM1")]
    polls.read()
    desk.runner.run(erase(desk, desk.texting.secret, profile_id))
    # One that was not received before the erasure, and one by a clock that is ahead of ours.
    fake.inbound.append(message("SM3", "Unmistakable too", ago=timedelta(hours=2)))
    fake.inbound[0]["date_sent"] = format_datetime(datetime.now(UTC) + timedelta(minutes=1))
    polls.read()
    desk.gateway.sent.clear()
    desk.alter("UPDATE sms_settings SET provider = 'simulator' WHERE organization_id = %s")
    desk.turn()
    assert desk.gateway.sent == []
    assert rows_with(desk, NUMBER) == {}
    assert rows_with(desk, "Unmistakable") == {}
    assert desk.may_text() == (False, "DO_NOT_CONTACT")


@pytest.mark.parametrize("body", ["STOP", "START", "HELP"])
def test_a_number_that_was_erased_is_never_answered(desk, body):
    profile_id = customer(desk, "C1")
    desk.runner.run(erase(desk, desk.texting.secret, profile_id))
    desk.reply(body)
    desk.turn()
    assert desk.gateway.sent == []
    assert desk.may_text() == (False, "DO_NOT_CONTACT")
    assert rows_with(desk, NUMBER) == {}


def test_a_reply_after_the_erasure_is_read_by_a_person(desk):
    profile_id = customer(desk, "C1")
    desk.runner.run(erase(desk, desk.texting.secret, profile_id))
    assert desk.reply("Where is my parcel?").is_new
    assert [row.body for row in replies(desk)] == ["Where is my parcel?"]


def test_the_hashes_of_erased_replies_go_after_thirty_days(desk):
    profile_id = customer(desk, "C1")
    desk.reply("merci")
    desk.runner.run(erase(desk, desk.texting.secret, profile_id))
    count = "SELECT count(*) FROM erased_replies WHERE organization_id = %s"
    desk.runner.run(sweep_hashes(desk.database, desk.organization_id))
    assert desk.sql(count) == [(1,)]
    desk.alter("UPDATE erased_replies SET erased_at = now() - interval '31 days' WHERE organization_id = %s")
    desk.runner.run(sweep_hashes(desk.database, desk.organization_id))
    assert desk.sql(count) == [(0,)]
