"""How an organization texts: who changes it waits for who sends, and the demo never texts anybody."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
from tests.messaging.desk import OPEN

from regulars.demo.load import RealProviderError, mark_organization
from regulars.messaging.errors import SettingRefused
from regulars.messaging.holds import hold
from regulars.messaging.settings.change import change_settings, with_notice
from regulars.messaging.settings.model import Notice, SmsSettings, TwilioAccount
from regulars.messaging.settings.store import change_provider, lock_texting, share_texting


def set_twilio(desk):
    async def act(tx):
        texting = await lock_texting(tx, desk.organization_id)
        return await change_provider(
            tx, desk.organization_id, texting, provider="twilio", settings=texting.settings, sealed=b"sealed"
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
    assert set_twilio(desk).is_held
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
            seen = await share_texting(tx, desk.organization_id)
            holding = asyncio.create_task(_hold(desk))
            await asyncio.sleep(0.3)
            assert not holding.done(), "it would be answered while a claim that saw no hold is still open"
        await holding
        assert not seen.is_held

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
            sending = asyncio.create_task(desk.queue.run_pass(desk.database, desk.organization_id))
            await asyncio.sleep(0.3)
            assert not sending.done()
        await sending
        await desk.queue.finish()

    desk.runner.run(play())
    assert desk.gateway.sent == []


def test_a_change_of_settings_that_runs_beside_a_hold_does_not_undo_it(desk):
    async def change():
        async with desk.database.transaction() as tx:
            texting = await lock_texting(tx, desk.organization_id)
            settings = msgspec.structs.replace(texting.settings, brand="Other")
            await asyncio.sleep(0.2)
            await change_settings(tx, desk.organization_id, texting, settings)

    async def play():
        changing = asyncio.create_task(change())
        await asyncio.sleep(0.05)
        await asyncio.gather(changing, _hold(desk))

    desk.runner.run(play())
    texting = desk.texting
    assert (texting.brand, texting.is_held) == ("Other", True)
    assert replace(texting, settings=SmsSettings(brand="Other", rules=OPEN)) == texting


@pytest.mark.parametrize(
    ("sender", "reply_path", "is_reached"),
    [("Shop", "36111", True), ("Shop", "STOP", False), ("+33700000000", "STOP", True), ("38123", "STOP", True)],
)
def test_a_text_to_france_under_a_name_needs_a_number_that_stops(sender, reply_path, is_reached):
    settings = SmsSettings(twilio=TwilioAccount("AC1", sender), notices={"FR": Notice("STOP 36111", reply_path)})
    assert (settings.notice_of("FR", "twilio") is not None) is is_reached
    if is_reached:
        assert with_notice(settings, "FR", words="STOP 36111", reply_path=reply_path)
    else:
        with pytest.raises(SettingRefused, match="36111"):
            with_notice(settings, "FR", words="STOP", reply_path=reply_path)
    # Elsewhere it is not asked for.
    assert with_notice(settings, "DE", words="STOP", reply_path="STOP").notice_of("DE", "twilio") is not None


def test_every_change_of_provider_begins_on_hold_and_nothing_else_does(desk):
    assert set_twilio(desk).is_held

    async def back(tx):
        texting = replace(await lock_texting(tx, desk.organization_id), held_since=None)
        return await change_provider(
            tx, desk.organization_id, texting, provider="simulator", settings=texting.settings, sealed=None
        )

    # What is queued for people must not end in the simulator by mistake.
    assert desk.do(back).is_held
    assert not desk.do(back).is_held
