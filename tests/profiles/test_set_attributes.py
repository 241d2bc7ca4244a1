"""Setting attributes on profiles that exist."""

from uuid import uuid4

import pytest

from regulars.kit.errors import ValidationError
from regulars.kit.ids import ByExternalId, ById
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profile
from regulars.profiles.model import AttributeChanges, Profile, ProfileUpsert
from regulars.profiles.write import UpsertedProfile, set_attributes, upsert_profiles

pytestmark = pytest.mark.anyio


@pytest.fixture
async def profile(database, organization_id) -> Profile:
    async with database.transaction() as tx:
        outcome = (
            await upsert_profiles(tx, organization_id, [ProfileUpsert(external_id="a", attributes={"tier": "gold"})])
        )[0]
    assert isinstance(outcome, UpsertedProfile)
    return outcome.profile


async def change(database, organization_id, *wanted: AttributeChanges):
    async with database.transaction() as tx:
        return await set_attributes(tx, organization_id, wanted)


async def test_it_finds_no_profile_and_creates_none(database, organization_id, profile):
    references = [ByExternalId("nobody"), ById(None), ById(uuid4()), ByExternalId("a\0")]
    outcomes = await change(database, organization_id, *(AttributeChanges(each, {"x": "1"}) for each in references))
    assert all(isinstance(outcome, ProfileNotFound) for outcome in outcomes)
    async with database.transaction() as tx:
        rows = await tx.fetch("SELECT count(*) FROM profiles WHERE organization_id = %s", (organization_id,))
    assert rows == [(1,)]


async def test_changes_under_both_names_of_a_profile_are_folded_in_order(database, organization_id, profile):
    outcomes = await change(
        database,
        organization_id,
        AttributeChanges(ById(profile.id), {"x": "1"}),
        AttributeChanges(ByExternalId("a"), {"x": "2", "tier": None}),
        AttributeChanges(ById(profile.id), {}),
    )
    assert [outcome.attributes for outcome in outcomes] == [{"tier": "gold", "x": "1"}, {"x": "2"}, {"x": "2"}]
    async with database.transaction() as tx:
        assert await find_profile(tx, organization_id, ById(profile.id)) == outcomes[-1]
        rows = await tx.fetch(
            "SELECT key, type FROM profile_attributes WHERE organization_id = %s AND key = 'x'", (organization_id,)
        )
    assert rows == [("x", "number")]


async def test_one_attribute_too_many_is_refused_and_nothing_is_applied(database, organization_id, profile):
    (refused,) = await change(
        database, organization_id, AttributeChanges(ByExternalId("a"), {f"k{number}": "v" for number in range(500)})
    )
    assert isinstance(refused, ValidationError)
    async with database.transaction() as tx:
        assert await find_profile(tx, organization_id, ById(profile.id)) == profile
