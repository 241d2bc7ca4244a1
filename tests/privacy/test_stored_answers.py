"""Stored idempotent answers of an erased person: no retry gets one, wherever and whenever it was stored."""

from datetime import timedelta
from uuid import uuid4

import pytest
from tests.privacy.people import (
    OTHER,
    PERSON,
    blank_keys,
    blanked,
    erase,
    look_for_stragglers,
    plant,
    remember,
)
from tests.support.database_fixtures import SECRET
from tests.support.drain_queues import drain

from regulars.consent.ledger import EventOrigin
from regulars.consent.opt_in import Consent, opt_in
from regulars.kit.ids import PROFILE, SUBSCRIPTION, ByExternalId, ById
from regulars.privacy import erase as erasing
from regulars.privacy import jobs
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio


async def test_a_stored_answer_loses_its_body_and_keeps_its_key(database, organization_id):
    await plant(database, organization_id, PERSON)
    await plant(database, organization_id, OTHER)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    assert await blanked(database, organization_id) == {
        "opt-in E-ME": True,
        "upsert E-ME": True,
        "opt-in TAYS": False,
        "upsert TAYS": False,
    }


async def test_an_answer_that_slipped_in_beside_the_erasure_loses_its_body_later(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ById(profile_id))
    async with database.transaction() as tx:
        named = {"profile": {"id": PROFILE.encode(profile_id), "external_id": PERSON["external_id"]}}
        await remember(tx, organization_id, "just before", named, age=timedelta(seconds=30))
        await remember(tx, organization_id, "just after", named)
        await remember(tx, organization_id, "somebody else", {"profile": {"id": PROFILE.encode(uuid4())}})
    await look_for_stragglers(database, organization_id)
    after = await blanked(database, organization_id)
    assert (after["just before"], after["just after"], after["somebody else"]) == (True, True, False)


async def test_a_consent_given_after_the_erasure_keeps_its_stored_answer(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ById(profile_id))
    async with database.transaction() as tx:
        new = Consent(
            phone_number=PERSON["number"],
            source="WEBSITE",
            consented_at=tx.now + timedelta(minutes=1),
            origin=EventOrigin(),
        )
        (recorded,) = await opt_in(tx, organization_id, [new], secret=SECRET)
        subscription_id = SUBSCRIPTION.encode(recorded.subscription.id)
        await remember(tx, organization_id, "new consent", {"id": subscription_id, "phone_number": PERSON["number"]})
    await look_for_stragglers(database, organization_id)
    assert (await blanked(database, organization_id))["new consent"] is False


async def test_an_answer_about_another_profile_with_the_same_number_stays(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    async with database.transaction() as tx:
        other = {"id": PROFILE.encode(uuid4()), "phone_number": PERSON["number"]}
        await remember(tx, organization_id, "same number", other)
    await erase(database, organization_id, ById(profile_id))
    assert (await blanked(database, organization_id))["same number"] is False


async def test_the_worker_reads_the_answers_that_the_erasure_had_no_time_for(database, organization_id, monkeypatch):
    monkeypatch.setattr(erasing, "ERASE_RESPONSES_S_MAX", 0)
    monkeypatch.setattr(jobs, "CONTINUE_S_MAX", 0)
    profile_id = await plant(database, organization_id, PERSON)
    async with database.transaction() as tx:
        rows = await tx.fetch("SELECT id FROM subscriptions WHERE organization_id = %s", (organization_id,))
        consented = {"id": SUBSCRIPTION.encode(rows[0][0]), "phone_number": PERSON["number"]}
        for minutes in (2, 7):
            age = timedelta(minutes=minutes)
            await remember(tx, organization_id, f"upsert {minutes}", {"id": PROFILE.encode(profile_id)}, age=age)
            await remember(tx, organization_id, f"opt-in {minutes}", consented, age=age)
            await remember(tx, organization_id, f"other {minutes}", {"id": PROFILE.encode(uuid4())}, age=age)
    await drain(database, organization_id, LISTENERS)
    await erase(database, organization_id, ById(profile_id))
    at_once = {"upsert E-ME", "opt-in E-ME"}
    two_minutes = {"upsert 2", "opt-in 2"}
    seven_minutes = {"upsert 7", "opt-in 7"}
    assert await blank_keys(database, organization_id) == at_once
    async with database.transaction() as tx:
        waiting = str(await tx.fetch("SELECT payload::text FROM outbox WHERE organization_id = %s", (organization_id,)))
    assert [trace for trace in PERSON.values() if trace in waiting] == []
    # Each drain reads a minute and leaves the rest to the next one.
    for _ in range(2):
        assert await drain(database, organization_id, LISTENERS) == 1
    assert await blank_keys(database, organization_id) == at_once | two_minutes
    for _ in range(5):
        assert await drain(database, organization_id, LISTENERS) == 1
    assert await blank_keys(database, organization_id) == at_once | two_minutes | seven_minutes


async def test_the_worker_comes_to_an_end(database, organization_id, monkeypatch):
    monkeypatch.setattr(erasing, "ERASE_RESPONSES_S_MAX", 0)
    profile_id = await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ById(profile_id))
    await look_for_stragglers(database, organization_id)
    async with database.transaction() as tx:
        assert await tx.fetch("SELECT topic FROM outbox WHERE organization_id = %s", (organization_id,)) == []
