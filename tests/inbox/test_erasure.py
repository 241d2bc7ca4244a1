"""What an erasure leaves of texts and replies: nothing that names the person, and no deadlock."""

import asyncio

import pytest
from tests.support.desk import NUMBER
from tests.support.waiting import until_locked

from regulars.inbox.receive import IncomingMessage, receive_reply
from regulars.kit.ids import ById, new_uuid
from regulars.privacy import erase as privacy
from regulars.profiles.personal import lock_profiles_to_erase
from regulars.texts.facts import MessagesChanged
from regulars.texts.providers.base import Accepted, Refused
from regulars.texts.providers.simulator import Simulator
from regulars.work import outbox
from regulars.work.outbox import register_interest


def customer(desk, external_id, number=NUMBER):
    """A customer who consented with this number."""
    profile_id = desk.customer(external_id, phone=number)
    desk.opt_in(external_id, number)
    return profile_id


async def erase(desk, secret, profile_id):
    async with desk.database.transaction() as tx:
        await privacy.erase_profiles(tx, desk.organization_id, [ById(profile_id)], secret=secret)


def rows_with(desk, text):
    """How many rows of each table of this room, and of what waits to be told, hold a text."""
    tables = ("texts", "simulated_texts", "replies", "suppressions", "outbox", "outbox_retries")
    return {
        table: found
        for table in tables
        if (
            found := desk.sql(
                f"SELECT count(*) FROM {table} AS it WHERE organization_id = %s AND strpos(it::text, %s) > 0",  # noqa: S608  # names of the test's own
                text,
            )[0][0]
        )
    }


@pytest.mark.parametrize("outcome", [Accepted("sid"), Refused("21211", f"The 'To' number {NUMBER} is not valid.")])
def test_a_text_on_its_way_at_the_erasure_goes_when_its_sender_has_ended(desk, outcome):
    profile_id = customer(desk, "C1")
    desk.order("Unmistakable", profile_id=profile_id)
    secret, simulator = desk.texting.secret, Simulator(desk.database)
    texting = desk.texting

    async def erased_meanwhile(text):
        await erase(desk, secret, profile_id)
        # The provider had it before; the simulator's phone shows it after the erasure.
        await simulator.send(text, texting)
        return outcome

    desk.gateway.answer = erased_meanwhile
    desk.turn()
    assert len(desk.gateway.sent) == 1
    assert rows_with(desk, NUMBER) == {}
    assert rows_with(desk, "Unmistakable") == {}
    # It counts all the same.
    assert desk.sql("SELECT sum(texts) FROM text_totals WHERE organization_id = %s") == [(1,)]


def test_a_sender_that_died_with_the_text_of_an_erased_person_leaves_nothing(desk):
    profile_id = customer(desk, "C1")
    desk.order("Unmistakable", profile_id=profile_id)
    secret, simulator, texting = desk.texting.secret, Simulator(desk.database), desk.texting

    async def die(text):
        await erase(desk, secret, profile_id)
        await simulator.send(text, texting)
        raise RuntimeError("killed")

    desk.gateway.answer = die
    desk.turn()
    desk.alter("UPDATE texts SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    desk.turn()
    assert rows_with(desk, NUMBER) == {}
    assert desk.sql("SELECT state, texts FROM text_totals WHERE organization_id = %s") == [("unknown", 1)]


def test_unhandled_facts_about_a_person_s_texts_are_erased_with_them(desk):
    profile_id, other_id = customer(desk, "C1"), customer(desk, "C2", "+33612345679")
    desk.do(lambda tx: register_interest(tx, desk.organization_id, MessagesChanged, needed_by="test"))
    desk.order("One", profile_id=profile_id)
    by_number = desk.order("Two")
    other = desk.order("Three", profile_id=other_id, number="+33612345679")
    desk.turn()
    desk.reply("remove me please")
    facts = [MessagesChanged("text", new_uuid(), "person", new_uuid(), "1", profile_id, "sent")]
    desk.do(lambda tx: outbox.record(tx, desk.organization_id, facts))
    assert rows_with(desk, str(profile_id))["outbox"] > 0
    desk.runner.run(erase(desk, desk.texting.secret, profile_id))
    [(left,)] = desk.sql(
        "SELECT json_agg(payload)::text FROM outbox WHERE organization_id = %s AND topic = %s", MessagesChanged.topic
    )
    assert str(profile_id) not in left
    assert str(by_number) not in left
    assert str(other) in left


def test_a_number_that_moved_on_is_not_suppressed_for_ever_by_a_person_who_is_gone(desk):
    first = customer(desk, "C1")
    desk.reply("remove me please")
    customer(desk, "C2")
    desk.runner.run(erase(desk, desk.texting.secret, first))
    assert desk.may_text() == (True, "SUBSCRIBED")
    desk.order()
    desk.turn()
    assert desk.texts() == [("sent", None)]


def test_a_number_that_moved_on_stays_suppressed_while_a_reply_of_its_new_owner_waits(desk):
    first = customer(desk, "C1")
    desk.reply("remove me please")
    customer(desk, "C2")
    desk.reply("please no more messages, remove me")
    desk.runner.run(erase(desk, desk.texting.secret, first))
    assert desk.may_text() == (False, "SUPPRESSED")


def test_a_start_and_an_erasure_at_once_do_not_wait_for_each_other(desk):
    profile_id = customer(desk, "C1")
    desk.reply("STOP")
    texting = desk.texting

    async def start():
        incoming = IncomingMessage(provider="test", provider_id="SM-start", phone_number=NUMBER, body="START")
        async with desk.database.transaction() as tx:
            return await receive_reply(tx, desk.organization_id, incoming, texting=texting)

    async def play():
        async with desk.database.transaction() as tx:
            found = await lock_profiles_to_erase(tx, desk.organization_id, [ById(profile_id)])
            starting = asyncio.create_task(start())
            await until_locked(desk.database)
            assert not starting.done()
            # It waits for the profile; were the number in its hands by now, this would end in a circle.
            people = privacy._describe_people(list(found.values()), secret=texting.secret)
            await privacy._erase(tx, desk.organization_id, people)  # the second half of an erasure
        return await starting

    received = desk.runner.run(play())
    assert not received.is_new
    assert not desk.is_subscribed()
    assert rows_with(desk, str(profile_id)).get("replies") is None
