"""Erasing a person: nothing that tells who they were stays in any table, and no total moves."""

import asyncio
import json
from uuid import uuid4

import pytest
from tests.privacy.people import OTHER, PERSON, erase, look_for_stragglers, plant, record, sale, whole_database
from tests.support.database_fixtures import SECRET
from tests.support.waiting import until_locked

from regulars.kit.ids import PROFILE, ByExternalId, ById
from regulars.privacy.erase import ErasedProfile, erase_profiles
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profiles

pytestmark = pytest.mark.anyio


async def test_nothing_that_identifies_the_customer_stays_anywhere(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    traces = [*PERSON.values(), str(profile_id), PROFILE.encode(profile_id)]
    before = await whole_database(database, organization_id)
    assert [trace for trace in traces if trace not in before] == []
    [outcome] = await erase(database, organization_id, ById(profile_id))
    assert isinstance(outcome, ErasedProfile)
    assert outcome.profile_id == profile_id
    await look_for_stragglers(database, organization_id)
    after = await whole_database(database, organization_id)
    assert [trace for trace in traces if trace in after] == []


async def test_everyone_elses_data_stays(database, organization_id):
    await plant(database, organization_id, PERSON)
    other_id = await plant(database, organization_id, OTHER)
    neighbour = uuid4()
    await plant(database, neighbour, PERSON)
    theirs = await whole_database(database, neighbour)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    after = await whole_database(database, organization_id)
    assert [trace for trace in (*OTHER.values(), PROFILE.encode(other_id)) if trace not in after] == []
    assert await whole_database(database, neighbour) == theirs


async def test_the_sale_stays_without_a_name_and_the_total_does_not_move(database, organization_id):
    await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT count(*), sum(total_amount_cents), count(profile_id) FROM sales_events WHERE organization_id = %s",
            (organization_id,),
        )
    assert rows == [(1, 1000, 0)]


async def test_a_collision_with_an_erased_persons_ticket_keeps_nothing_of_them(database, organization_id):
    await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    ticket = json.loads(sale(f"S1:{PERSON['external_id'][-4:]}", PERSON["external_id"], amount=7))
    for name in ("loyalty", "payments", "metadata"):
        ticket[name] = {"of": PERSON["first_name"]}
    async with database.transaction() as tx:
        (recorded,) = await record(tx, organization_id, json.dumps(ticket).encode())
        assert recorded.differs
        attempts = await tx.fetch(
            "SELECT attempt FROM ticket_collisions WHERE organization_id = %s", (organization_id,)
        )
    [[attempt]] = attempts
    assert (attempt["total_amount_cents"], attempt["profile_id"]) == (7, None)
    assert attempt["loyalty"] is attempt["payments"] is attempt["metadata"] is None


async def test_a_profile_named_twice_is_erased_once(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    other_id = await plant(database, organization_id, OTHER)
    outcomes = await erase(
        database,
        organization_id,
        ById(profile_id),
        ByExternalId(PERSON["external_id"]),
        ById(other_id),
        ByExternalId("nobody"),
        ById(None),
    )
    assert [it.profile_id for it in outcomes if isinstance(it, ErasedProfile)] == [profile_id, other_id]
    assert all(isinstance(outcomes[index], ProfileNotFound) for index in (1, 3, 4))


async def test_a_sale_that_arrives_during_the_erasure_belongs_to_a_new_profile(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)

    async def sell(external_id: str, profile: str):
        async with database.transaction() as tx:
            return (await record(tx, organization_id, sale(external_id, profile)))[0]

    async with database.transaction() as tx:
        await erase_profiles(tx, organization_id, [ById(profile_id)], secret=SECRET)
        by_name = asyncio.create_task(sell("S1:late", PERSON["external_id"]))
        by_id = asyncio.create_task(sell("S1:later", PROFILE.encode(profile_id)))
        await until_locked(database, count=2)
        assert not by_name.done()
        assert not by_id.done()
    assert (await by_name).sale.profile.id != profile_id
    assert isinstance(await by_id, ProfileNotFound)


async def test_an_erasure_waits_for_a_sale_that_is_being_recorded_and_finds_it(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    async with database.transaction() as tx:
        await record(tx, organization_id, sale("S1:early", PERSON["external_id"]))
        erasing = asyncio.create_task(erase(database, organization_id, ById(profile_id)))
        await until_locked(database)
        assert not erasing.done()
    await erasing
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT count(*), count(profile_id) FROM sales_events WHERE organization_id = %s", (organization_id,)
        )
        assert rows == [(2, 0)]
        assert await find_profiles(tx, organization_id, [ById(profile_id)]) == {}


async def test_a_sale_that_slipped_in_beside_the_erasure_becomes_anonymous_later(database, organization_id):
    """The hot path holds no lock on the customer, so its sale may commit with the id of a customer just erased."""
    profile_id = await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ById(profile_id))
    async with database.transaction() as tx:
        (slipped,) = await record(tx, organization_id, sale("S1:slipped", "somebody-else"))
        await tx.execute(
            "UPDATE sales_events SET profile_id = %s WHERE organization_id = %s AND id = %s",
            (profile_id, organization_id, slipped.sale.id),
        )
    await look_for_stragglers(database, organization_id)
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT count(profile_id) FROM sales_events WHERE organization_id = %s AND id = %s",
            (organization_id, slipped.sale.id),
        )
        assert rows == [(0,)]
