"""Upserting a list of profiles."""

import asyncio
from uuid import UUID

import pytest
from tests.support.waiting import until_locked

from regulars.kit.db import Database
from regulars.kit.errors import ValidationError
from regulars.kit.ids import ByExternalId
from regulars.profiles.find import find_profile
from regulars.profiles.model import Phone, Profile, ProfileUpsert
from regulars.profiles.write import UpsertedProfile, upsert_profiles

pytestmark = pytest.mark.anyio


async def upsert(database: Database, organization_id: UUID, *upserts: ProfileUpsert) -> list[UpsertedProfile]:
    async with database.transaction() as tx:
        outcomes = await upsert_profiles(tx, organization_id, upserts)
    return [outcome for outcome in outcomes if isinstance(outcome, UpsertedProfile)]


async def stored(database: Database, organization_id: UUID, external_id: str) -> Profile | None:
    async with database.transaction() as tx:
        return await find_profile(tx, organization_id, ByExternalId(external_id))


async def count(database: Database, organization_id: UUID) -> int:
    async with database.transaction() as tx:
        rows = await tx.fetch("SELECT count(*) FROM profiles WHERE organization_id = %s", (organization_id,))
    return rows[0][0]


async def test_what_it_answers_is_what_is_stored(database, organization_id):
    full = ProfileUpsert(
        external_id="a",
        phone=Phone("+33612345678", reachable=True),
        first_name="Ada \U0001f9e3",
        last_name='"\\',
        attributes={"tier": "gold", "gone": None, "é\n": ""},
    )
    (created,) = await upsert(database, organization_id, full)
    assert created.change == "created"
    assert created.profile.attributes == {"tier": "gold", "é\n": ""}
    assert await stored(database, organization_id, "a") == created.profile
    (changed,) = await upsert(
        database, organization_id, ProfileUpsert(external_id="a", phone=None, attributes={"tier": None})
    )
    assert changed.change == "updated"
    assert (changed.profile.id, changed.profile.phone_number) == (created.profile.id, None)
    assert await stored(database, organization_id, "a") == changed.profile


async def test_a_refused_upsert_changes_nothing_and_fails_no_other(database, organization_id):
    half = ProfileUpsert(external_id="a", attributes={f"k{number}": "v" for number in range(300)})
    other_half = ProfileUpsert(external_id="a", first_name="X", attributes={f"j{number}": "v" for number in range(300)})
    async with database.transaction() as tx:
        outcomes = await upsert_profiles(
            tx, organization_id, [half, other_half, ProfileUpsert(external_id="a", last_name="Martin")]
        )
    assert isinstance(outcomes[1], ValidationError)
    profile = await stored(database, organization_id, "a")
    assert profile is not None
    assert (profile.first_name, profile.last_name, len(profile.attributes)) == (None, "Martin", 300)


async def test_a_new_profile_with_too_many_attributes_is_not_created_and_registers_none(database, organization_id):
    async with database.transaction() as tx:
        outcomes = await upsert_profiles(
            tx, organization_id, [ProfileUpsert(external_id="a", attributes={f"k{n}": "v" for n in range(501)})]
        )
        keys = await tx.fetch("SELECT key FROM profile_attributes WHERE organization_id = %s", (organization_id,))
    assert isinstance(outcomes[0], ValidationError)
    assert (keys, await count(database, organization_id)) == ([], 0)


async def test_a_number_of_any_length_can_be_stored(database, organization_id):
    longest = "".join(chr(0x1F300 + number) for number in range(1024))
    (outcome,) = await upsert(
        database, organization_id, ProfileUpsert(external_id="a", phone=Phone(longest, reachable=False))
    )
    assert await stored(database, organization_id, "a") == outcome.profile


async def test_an_upsert_that_loses_the_race_to_create_updates_the_profile_of_the_winner(database, organization_id):
    async with database.transaction() as tx:
        await upsert_profiles(tx, organization_id, [ProfileUpsert(external_id="a", attributes={"first": "1"})])
        late = asyncio.create_task(
            upsert(database, organization_id, ProfileUpsert(external_id="a", attributes={"second": "2"}))
        )
        await until_locked(database)
        assert not late.done()
    (outcome,) = await late
    assert (outcome.change, outcome.profile.attributes) == ("updated", {"first": "1", "second": "2"})
    assert await stored(database, organization_id, "a") == outcome.profile


async def test_unknown_attributes_are_registered_with_the_type_of_their_first_value(database, organization_id):
    await upsert(
        database,
        organization_id,
        ProfileUpsert(external_id="a", attributes={"points": "12", "gone": None}),
        ProfileUpsert(external_id="b", attributes={"points": "twelve", "since": "2024-02-29"}),
    )
    await upsert(database, organization_id, ProfileUpsert(external_id="c", attributes={"points": "true"}))
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT key, type FROM profile_attributes WHERE organization_id = %s ORDER BY key", (organization_id,)
        )
    assert rows == [("points", "number"), ("since", "date")]
