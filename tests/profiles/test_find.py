"""Looking up profiles, and light profiles."""

import asyncio
from uuid import uuid4

import pytest
from tests.support.waiting import until_locked

from regulars.kit.ids import ByExternalId, ById, new_uuid
from regulars.profiles.find import find_profiles, find_profiles_by_phone, list_profiles, lock_profiles
from regulars.profiles.model import Phone, ProfileRef, ProfileUpsert
from regulars.profiles.personal import delete_profiles, lock_profiles_to_erase
from regulars.profiles.write import create_light_profiles, upsert_profiles

pytestmark = pytest.mark.anyio

NUMBER = "+33612345678"


async def test_it_finds_by_either_name_and_leaves_out_the_unknown(database, organization_id):
    async with database.transaction() as tx:
        made = await create_light_profiles(tx, organization_id, ["a", "b"])
        a = ProfileRef(made["a"].id, "a")
        references = [
            ById(a.id),
            ByExternalId("a"),
            ById(new_uuid()),
            ById(None),
            ByExternalId("z"),
            ByExternalId("\0"),
        ]
        assert await find_profiles(tx, organization_id, references) == {ById(a.id): a, ByExternalId("a"): a}
        assert await find_profiles(tx, uuid4(), references) == {}
        assert await find_profiles(tx, organization_id, []) == {}


async def test_it_finds_by_phone_only_numbers_that_could_be_read(database, organization_id):
    readable = Phone(NUMBER, reachable=True)
    async with database.transaction() as tx:
        await upsert_profiles(
            tx,
            organization_id,
            [
                ProfileUpsert(external_id="a", phone=readable),
                ProfileUpsert(external_id="b", phone=readable),
                ProfileUpsert(external_id="c", phone=Phone("12", reachable=False)),
            ],
        )
        found = await find_profiles_by_phone(tx, organization_id, [NUMBER, "12", "+41446681800"])
        assert {number: [profile.external_id for profile in profiles] for number, profiles in found.items()} == {
            NUMBER: ["a", "b"]
        }
        listed = await list_profiles(tx, organization_id, external_id=None, phone_number="12", after=None, limit=10)
        assert [profile.external_id for profile in listed] == ["c"]


async def test_light_profiles_are_made_once_and_said_to_be_new_once(database, organization_id):
    async with database.transaction() as tx:
        first = await create_light_profiles(tx, organization_id, ["a", "a", "b"])
    async with database.transaction() as tx:
        second = await create_light_profiles(tx, organization_id, ["b", "c"])
    assert {name: profile.is_new for name, profile in first.items()} == {"a": True, "b": True}
    assert {name: profile.is_new for name, profile in second.items()} == {"b": False, "c": True}
    assert first["b"].id == second["b"].id


async def test_a_profile_that_someone_refers_to_is_erased_only_afterwards(database, organization_id):
    async with database.transaction() as tx:
        made = (await create_light_profiles(tx, organization_id, ["a"]))["a"]

    async def erase() -> None:
        async with database.transaction() as tx:
            locked = await lock_profiles_to_erase(tx, organization_id, [ById(made.id)])
            await delete_profiles(tx, organization_id, list(locked.values()))

    async with database.transaction() as tx:
        assert await lock_profiles(tx, organization_id, [made.id]) == {made.id}
        erasing = asyncio.create_task(erase())
        await until_locked(database)
        assert not erasing.done()
    await erasing
    async with database.transaction() as tx:
        assert await lock_profiles(tx, organization_id, [made.id]) == set()


async def test_referring_to_a_profile_does_not_hold_up_changes_of_it(database, organization_id):
    async with database.transaction() as tx:
        made = (await create_light_profiles(tx, organization_id, ["a"]))["a"]
    async with database.transaction() as tx:
        await lock_profiles(tx, organization_id, [made.id])
        async with asyncio.timeout(60), database.transaction() as beside:
            await upsert_profiles(beside, organization_id, [ProfileUpsert(external_id="a", first_name="Ada")])
