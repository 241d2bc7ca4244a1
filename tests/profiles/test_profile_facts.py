"""Facts that profiles publish for the rooms above: one for each change that the API would show, only on interest."""

from uuid import UUID

import msgspec
import pytest

from regulars.kit.clock import format_timestamp
from regulars.kit.ids import PROFILE, ByExternalId
from regulars.profiles.facts import LIGHT_PROFILE_JSON_END, ProfilesChanged, publish_light_profiles
from regulars.profiles.find import find_profile
from regulars.profiles.model import AttributeChanges, ProfileRef, ProfileUpsert
from regulars.profiles.wire import to_profile_out
from regulars.profiles.write import set_attributes, upsert_profiles
from regulars.work.outbox import register_interest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def listening(database, organization_id):
    async with database.transaction() as tx:
        await register_interest(tx, organization_id, ProfilesChanged, needed_by="test")


async def published_changes(database, organization_id) -> list[tuple[str, dict]]:
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT payload::text FROM outbox WHERE organization_id = %s AND topic = 'profiles.changed' ORDER BY id",
            (organization_id,),
        )
    facts = [fact for (payload,) in rows for fact in msgspec.json.decode(payload, type=list[ProfilesChanged])]
    return [(change.change, msgspec.json.decode(change.shown)) for fact in facts for change in fact.changes]


async def upsert(database, organization_id, *upserts):
    async with database.transaction() as tx:
        return await upsert_profiles(tx, organization_id, upserts)


async def test_a_batch_publishes_each_change_with_the_profile_right_after_it(database, organization_id, listening):
    await upsert(
        database,
        organization_id,
        ProfileUpsert(external_id="a", first_name="Ada"),
        ProfileUpsert(external_id="b"),
        ProfileUpsert(external_id="a", attributes={"size": "M", "colour": "red"}),
        ProfileUpsert(external_id="a", first_name="Ada"),
    )
    changes = await published_changes(database, organization_id)
    assert [(change, shown["external_id"], shown["attributes"]) for change, shown in changes] == [
        ("created", "a", {}),
        ("created", "b", {}),
        ("updated", "a", {"colour": "red", "size": "M"}),
    ]
    async with database.transaction() as tx:
        stored = await find_profile(tx, organization_id, ByExternalId("a"))
    assert changes[-1][1] == msgspec.to_builtins(to_profile_out(stored))


async def test_a_write_that_changes_nothing_publishes_nothing(database, organization_id, listening):
    await upsert(database, organization_id, ProfileUpsert(external_id="a", attributes={"size": "M"}))
    await upsert(database, organization_id, ProfileUpsert(external_id="a", attributes={"size": "M"}))
    async with database.transaction() as tx:
        same = AttributeChanges(ByExternalId("a"), {"size": "M"})
        await set_attributes(tx, organization_id, [same])
    assert [change for change, _ in await published_changes(database, organization_id)] == ["created"]


async def test_each_change_of_attributes_is_published_once(database, organization_id, listening):
    await upsert(database, organization_id, ProfileUpsert(external_id="a"))
    async with database.transaction() as tx:
        await set_attributes(
            tx,
            organization_id,
            [
                AttributeChanges(ByExternalId("a"), {"size": "M"}),
                AttributeChanges(ByExternalId("nobody"), {"size": "M"}),
                AttributeChanges(ByExternalId("a"), {"size": None}),
            ],
        )
    changes = await published_changes(database, organization_id)
    assert [(change, shown["attributes"]) for change, shown in changes[1:]] == [
        ("updated", {"size": "M"}),
        ("updated", {}),
    ]


async def test_without_interest_nothing_is_recorded(database, organization_id):
    await upsert(database, organization_id, ProfileUpsert(external_id="a"))
    assert await published_changes(database, organization_id) == []


async def test_a_statement_can_publish_light_profiles_with_the_same_text(database, organization_id, listening):
    identifier = UUID(int=5)
    async with database.transaction() as tx:
        await publish_light_profiles(tx, organization_id, [ProfileRef(identifier, 'quote " and é')])
        time = format_timestamp(tx.now).encode()
        rows = await tx.fetch("SELECT to_json('quote \" and é'::text)::text", ())
    written = (
        f'{{"id":"{PROFILE.encode(identifier)}","external_id":{rows[0][0]}'.encode()
        + LIGHT_PROFILE_JSON_END.replace(b"{at}", time)[:-1]
    )
    assert msgspec.json.decode(written) == (await published_changes(database, organization_id))[0][1]
    assert time.decode() == msgspec.json.decode(written)["created_at"]
