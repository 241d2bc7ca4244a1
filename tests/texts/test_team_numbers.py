"""Test texts: to a number of the team that was verified with a code, and to no number that asked to stop."""

from datetime import timedelta

import msgspec
import pytest
from tests.support.desk import NUMBER
from tests.support.gateway import OPEN

from regulars.inbox.retention import erase_messages
from regulars.kit.ids import new_uuid
from regulars.texts.errors import MessagingError, SettingRefused
from regulars.texts.providers.base import Unclear
from regulars.texts.request import resend
from regulars.texts.settings.model import SendHoursRule, SmsSettings
from regulars.texts.settings.store import lock_texting
from regulars.texts.team_numbers import find_team_number, request_code, send_test, verify_code, write_test
from regulars.texts.template import TextVariants

CLOSED = dict.fromkeys(OPEN, SendHoursRule(days=(None,) * 7))


class Member:
    """A member of the team at the desk."""

    def __init__(self, desk):
        self.desk = desk
        self.user_id = new_uuid()

    def _do(self, act, *given, later=timedelta()):
        async def run(tx):
            texting = await lock_texting(tx, self.desk.organization_id)
            return await act(tx, self.user_id, *given, texting=texting)

        now = self.desk.now() + later
        return self.desk.do(run, now=now)

    def request(self, number=NUMBER):
        return self._do(request_code, number)

    def verify(self, code, **more):
        return self._do(verify_code, code, **more)

    def test(self, words="Hello", **more):
        return self._do(send_test, words, **more)

    @property
    def is_verified(self):
        texting = self.desk.texting
        found = self.desk.do(lambda tx: find_team_number(tx, self.user_id, texting=texting))
        return found is not None and found.is_verified

    def read_code(self):
        """What the telephone shows."""
        self.desk.turn()
        return self.desk.gateway.sent[-1].body.removeprefix("Shop: ")[:6]

    def join(self, number=NUMBER):
        self.request(number)
        assert self.verify(self.read_code())


@pytest.fixture
def member(desk):
    return Member(desk)


def test_a_number_is_verified_by_its_code_and_gets_tests_without_an_opt_in_at_any_hour(desk, member):
    desk.settings(SmsSettings(brand="Shop", rules=CLOSED))
    with pytest.raises(SettingRefused, match="Verify your own number"):
        member.test()
    member.request()
    code = member.read_code()
    assert code.isdecimal()
    assert not member.is_verified
    # No page shows the code, which would let another person verify the number.
    assert desk.sql("SELECT body FROM texts WHERE organization_id = %s AND body LIKE %s", f"%{code}%") == []
    assert not member.verify("000000" if code != "000000" else "000001")
    assert member.verify(f" {code} ")
    assert member.is_verified
    member.test()
    desk.turn()
    assert desk.gateway.sent[-1].body == "Shop: Hello Reply STOP to opt out"
    assert desk.texts() == [("sent", None)] * 2
    assert not Member(desk).is_verified


def test_a_code_ends_after_five_attempts_ten_minutes_or_another_provider(desk, member):
    member.request()
    code = member.read_code()
    with pytest.raises(SettingRefused, match="expired"):
        member.verify(code, later=timedelta(minutes=11))
    for _ in range(5):
        assert not member.verify("wrong")
    with pytest.raises(SettingRefused, match="Too many"):
        member.verify(code)
    member.join()
    desk.alter("UPDATE sms_settings SET provider = 'twilio' WHERE organization_id = %s")
    assert not member.is_verified, "the simulator proves nothing about a telephone"


@pytest.mark.parametrize("stop", ["withdraw", "suppress", "erase"])
def test_a_number_that_asked_to_stop_gets_neither_a_code_nor_a_test(desk, member, stop):
    member.join()
    member.test("Waits")
    match stop:
        case "withdraw":
            desk.subscribe()
            desk.opt_out()
        case "suppress":
            desk.reply("remove me please")
        case "erase":
            [(number_hash,)] = desk.sql("SELECT number_hash FROM test_numbers WHERE organization_id = %s")
            desk.do(lambda tx: erase_messages(tx, desk.organization_id, profile_ids=[], number_hashes=[number_hash]))
            assert not member.is_verified
    desk.turn()
    assert len(desk.gateway.sent) == 1, "the test that waited was skipped or is gone"
    with pytest.raises(SettingRefused):
        member.test()
    if stop != "erase":
        with pytest.raises(SettingRefused, match="asked to stop"):
            member.request()


def test_codes_and_tests_together_are_at_most_twenty_a_day(desk, member):
    member.join()
    for _ in range(19):
        member.test()
    for act in (member.test, member.request, Member(desk).request):
        with pytest.raises(SettingRefused, match="At most 20"):
            act()
    assert member.test(later=timedelta(days=1)).is_new


def test_a_test_counts_in_no_cap_and_is_not_sent_again(desk, member):
    member.join()
    member.test()
    desk.turn()
    desk.subscribe()
    desk.order()
    desk.turn()
    assert desk.texts() == [("sent", None)] * 3
    desk.gateway.answer = Unclear("lost")
    placed = member.test()
    desk.turn()
    with pytest.raises(MessagingError, match="send a new one"):
        desk.do(lambda tx: resend(tx, desk.organization_id, placed.id))


def test_the_words_of_a_test_have_the_data_of_no_customer():
    text = "Hello {{ profile.first_name }}, {{ brand }} {{ profile.attributes.size | default('M') }} {{ store.name }}"
    variants = TextVariants("language", text, {"fr": "Bonjour {{ profile.last_name }}"})
    given = {"name": "Zo\u00e9 van Dam", "brand": "Shop"}
    assert write_test(text, **given, language="") == "Hello Zo\u00e9, Shop M store's name"
    assert write_test(variants, **given, language="fr") == "Bonjour van Dam"
    assert msgspec.json.decode(msgspec.json.encode(variants), type=TextVariants) == variants
