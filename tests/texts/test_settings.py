"""Texting settings: a change waits for texts that are being sent, and the demo never texts a real number."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest
from tests.support.gateway import OPEN
from tests.support.waiting import until_locked

from regulars.demo.load import RealProviderError, mark_organization
from regulars.texts.cost import estimate
from regulars.texts.errors import SettingRefused
from regulars.texts.send import TextQueue
from regulars.texts.settings.change import change_settings, with_notice, with_price, with_rate, with_sender
from regulars.texts.settings.model import OptOutNotice, Price, SmsSettings, TwilioAccount
from regulars.texts.settings.store import change_provider, load_texting_shared, lock_texting
from regulars.texts.stops import hold


def set_twilio(desk):
    async def act(tx):
        texting = await lock_texting(tx, desk.organization_id)
        return await change_provider(
            tx, desk.organization_id, texting, provider="twilio", settings=texting.settings, token=b"sealed"
        )

    return desk.do(act)


def test_an_organization_with_made_up_customers_refuses_a_real_provider(desk):
    desk.runner.run(mark_organization(desk.database, desk.organization_id))
    with pytest.raises(SettingRefused, match="only simulates"):
        set_twilio(desk)
    # Whatever a table says, for example after a restore.
    desk.alter("UPDATE sms_settings SET provider = 'twilio' WHERE organization_id = %s")
    assert (desk.texting.provider, desk.texting.is_demo) == ("simulator", True)


def test_the_demo_does_not_fill_an_organization_that_texts_people(desk):
    assert set_twilio(desk).is_on_hold
    with pytest.raises(RealProviderError):
        desk.runner.run(mark_organization(desk.database, desk.organization_id))
    assert not desk.texting.is_demo


async def _hold(desk):
    async with desk.database.transaction() as tx:
        texting = await lock_texting(tx, desk.organization_id)
        await hold(tx, desk.organization_id, texting, reason="A test.")


def test_a_hold_is_answered_after_the_claims_before_it_and_seen_by_all_after_it(desk):
    desk.subscribe()
    desk.order()

    async def play():
        async with desk.database.transaction() as tx:
            seen = await load_texting_shared(tx, desk.organization_id)
            holding = asyncio.create_task(_hold(desk))
            await until_locked(desk.database)
            assert not holding.done(), "it would be answered while a claim that saw no hold is still open"
        await holding
        assert not seen.is_on_hold

    desk.runner.run(play())
    desk.turn()
    assert (desk.texts(), desk.gateway.sent) == ([("queued", None)], [])


def test_a_hold_of_an_organization_that_never_set_anything_is_seen_too(desk):
    desk.alter("DELETE FROM sms_settings WHERE organization_id = %s")
    desk.subscribe()
    desk.order()

    async def play():
        async with desk.database.transaction() as tx:
            texting = await lock_texting(tx, desk.organization_id)
            await hold(tx, desk.organization_id, texting, reason="A test.")
            sending = asyncio.create_task(desk.texts_queue.run_pass(desk.database, desk.organization_id))
            await until_locked(desk.database)
            assert not sending.done()
        await sending
        await desk.texts_queue.finish()

    desk.runner.run(play())
    assert desk.gateway.sent == []


def test_a_change_of_settings_that_runs_beside_a_hold_does_not_undo_it(desk):
    async def play():
        async with desk.database.transaction() as tx:
            texting = await lock_texting(tx, desk.organization_id)
            holding = asyncio.create_task(_hold(desk))
            await until_locked(desk.database)
            settings = msgspec.structs.replace(texting.settings, brand="Other")
            await change_settings(tx, desk.organization_id, texting, settings)
        await holding

    desk.runner.run(play())
    texting = desk.texting
    assert (texting.brand, texting.is_on_hold) == ("Other", True)
    assert replace(texting, settings=SmsSettings(brand="Other", rules=OPEN)) == texting


@pytest.mark.parametrize(
    ("sender", "reply_path", "is_reached"),
    [("Shop", "36111", True), ("Shop", "STOP", False), ("+33900000000", "STOP", True), ("38123", "STOP", True)],
)
@pytest.mark.parametrize("country", ["FR", "RE", "GP", "MQ", "GF", "YT"])
def test_a_text_to_france_under_a_name_needs_a_number_that_stops(country, sender, reply_path, is_reached):
    settings = SmsSettings(
        twilio=TwilioAccount("AC1", sender), notices={country: OptOutNotice("STOP 36111", reply_path)}
    )
    assert (settings.opt_out_notice_of(country, "twilio") is not None) is is_reached
    if is_reached:
        assert with_notice(settings, country, words="STOP 36111", reply_path=reply_path)
    else:
        with pytest.raises(SettingRefused, match="36111"):
            with_notice(settings, country, words="STOP", reply_path=reply_path)
    # Elsewhere it is not asked for.
    assert with_notice(settings, "DE", words="STOP", reply_path="STOP").opt_out_notice_of("DE", "twilio") is not None


@pytest.mark.parametrize(
    ("country", "sender", "words"),
    [
        ("FR", "+33 6 44 64 00 01", "refuses a French mobile number"),
        ("RE", "+33744640001", "refuses a French mobile number"),
        ("US", "Shop", "refuse a name"),
        ("CA", "Shop", "refuse a name"),
        ("DE", "A name that is too long", "at most 11"),
        ("DE", "Gr\u00fcner", "without accents"),
        ("DE", "12", "A sender is"),
    ],
)
def test_a_sender_that_its_country_refuses_is_not_saved(country, sender, words):
    settings = SmsSettings(twilio=TwilioAccount("AC1", "+15005550006"))
    with pytest.raises(SettingRefused, match=words):
        with_sender(settings, country, sender)


def test_a_country_has_its_own_sender_or_the_one_of_the_account():
    settings = SmsSettings(twilio=TwilioAccount("AC1", "+15005550006"))
    assert with_sender(settings, "DE", "+33 6 44 64 00 01").sender_of("DE") == "+33644640001"
    changed = with_sender(settings, "fr", "Shop")
    assert (changed.sender_of("FR"), changed.sender_of("DE"), changed.sender_of(None)) == (
        "Shop",
        *["+15005550006"] * 2,
    )
    assert changed.all_senders() == ("+15005550006", "Shop")
    assert with_sender(changed, "FR", None) == settings
    # Under a name the notice of France must name 36xxx, whichever of the two was set first.
    noticed = with_notice(settings, "FR", words="STOP", reply_path="STOP")
    with pytest.raises(SettingRefused, match="36111"):
        with_sender(noticed, "FR", "Shop")


def test_an_account_whose_sender_a_country_refuses_is_not_saved_until_that_country_has_its_own(desk):
    desk.settings(with_notice(SmsSettings(), "US", words="Reply STOP", reply_path="STOP"))

    def change(settings):
        async def act(tx):
            texting = await lock_texting(tx, desk.organization_id)
            return await change_provider(
                tx, desk.organization_id, texting, provider="twilio", settings=settings, token=b"sealed"
            )

        return desk.do(act)

    named = msgspec.structs.replace(desk.texting.settings, twilio=TwilioAccount("AC1", "Shop"))
    with pytest.raises(SettingRefused, match="Set another sender for US first"):
        change(named)
    assert change(with_sender(named, "US", "+15005550006")).settings.sender_of("US") == "+15005550006"


@pytest.mark.parametrize(
    ("sender", "senders", "outcome"),
    [
        ("+33644640001", {}, ("skipped", "sender_refused")),
        ("+33644640001", {"FR": "Shop"}, ("sent", None)),
        ("Shop", {}, ("sent", None)),
    ],
)
def test_a_text_leaves_under_no_sender_that_its_country_refuses(desk, sender, senders, outcome):
    desk.texts_queue = TextQueue({"twilio": desk.gateway})
    notices = {"FR": OptOutNotice("STOP 36111", "36111")}
    desk.settings(SmsSettings(rules=OPEN, notices=notices, twilio=TwilioAccount("AC1", sender), senders=senders))
    desk.alter("UPDATE sms_settings SET provider = 'twilio' WHERE organization_id = %s")
    desk.subscribe()
    desk.order()
    desk.turn()
    assert desk.texts() == [outcome]


def test_a_rate_belongs_to_a_sender_and_a_price_has_a_currency():
    settings = with_rate(SmsSettings(senders={"FR": "Shop"}), "Shop", "10")
    assert settings.parts_per_second == {"Shop": 10.0}
    assert with_rate(settings, "Shop", "").parts_per_second == {}
    settings = with_price(settings, "fr", "0,0725", "eur")
    assert settings.prices == {"FR": Price(Decimal("0.0725"), "EUR")}
    assert msgspec.json.decode(msgspec.json.encode(settings), type=SmsSettings) == settings
    assert with_price(settings, "FR", "", "").prices == {}
    for amount, currency in (("-1", "EUR"), ("nan", "EUR"), ("11", "EUR"), ("0.0000001", "EUR"), ("1", "EURO")):
        with pytest.raises(SettingRefused, match="is no"):
            with_price(settings, "FR", amount, currency)
    for sender, rate in (("Shop", "0"), ("Shop", "fast"), (None, "1")):
        with pytest.raises(SettingRefused):
            with_rate(settings, sender, rate)


def test_costs_are_estimated_per_currency_and_name_countries_without_a_price():
    prices = {
        "FR": Price(Decimal("0.0725"), "EUR"),
        "DE": Price(Decimal("0.1"), "EUR"),
        "US": Price(Decimal("0.0079"), "USD"),
    }
    found = estimate({"US": 1_000, "FR": 1_000, "DE": 10, "CH": 3, "IT": 0}, prices)
    assert list(found.amounts.items()) == [("EUR", Decimal("73.5")), ("USD", Decimal("7.9"))]
    assert (found.parts_without_price, found.is_complete) == ({"CH": 3}, False)


def test_every_change_of_provider_begins_on_hold_and_nothing_else_does(desk):
    assert set_twilio(desk).is_on_hold

    async def back(tx):
        texting = replace(await lock_texting(tx, desk.organization_id), held_since=None)
        return await change_provider(
            tx, desk.organization_id, texting, provider="simulator", settings=texting.settings, token=None
        )

    # What is queued for people must not end in the simulator by mistake.
    assert desk.do(back).is_on_hold
    assert not desk.do(back).is_on_hold
