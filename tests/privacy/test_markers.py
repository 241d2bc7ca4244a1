"""After an erasure nothing of the person stands in any column; an export holds all of it before."""

import json
from datetime import timedelta

import pytest
from tests.privacy.markers import MARKER, find_traces, plant_everywhere
from tests.privacy.people import OTHER, PERSON, erase, look_for_stragglers, plant
from tests.privacy.test_declared import declarations
from tests.support.database_fixtures import SECRET, database

from regulars.columns.engine.compaction import compact
from regulars.kit.ids import ById
from regulars.privacy.export import export_person
from regulars.profiles.find import find_profile

# Traces are searched in the whole database.
__all__ = ["database"]
pytestmark = pytest.mark.anyio

# By ruling a number that is not to be contacted stays as a keyed hash; and a message without content knows its profile.
STAYS = {"subscriptions.number_hash", "webhook_messages.profile_id", "erasures.profile_id", "erasures.number_hashes"}


async def test_no_trace_of_an_erased_person_stands_in_any_column(database, organization_id):
    planted = await plant_everywhere(database, organization_id)
    personal = {column for data in declarations().values() for column in data.columns}
    assert personal - await find_traces(database, organization_id, planted.traces) == set()
    await erase(database, organization_id, ById(planted.profile_id))
    await look_for_stragglers(database, organization_id)
    await compact(database, organization_id, purge_after=timedelta(0))
    assert await find_traces(database, organization_id, planted.traces) == STAYS


async def export(database, organization_id, profile_id):
    async with database.reading() as tx:
        profile = await find_profile(tx, organization_id, ById(profile_id))
    pieces = [piece async for piece in export_person(database, organization_id, profile, secret=SECRET)]
    return b"".join(pieces)


async def test_an_export_holds_nothing_of_another_person(database, organization_id):
    planted = await plant_everywhere(database, organization_id)
    text = await export(database, organization_id, await plant(database, organization_id, OTHER))
    assert [trace for trace in (*planted.traces, MARKER.encode()) if trace in text] == []
    sizes = {key: len(value) for key, value in json.loads(text).items() if isinstance(value, list)}
    assert {key: size for key, size in sizes.items() if size} == {"consents": 1, "sales_events": 1}


async def test_an_export_holds_texts_replies_and_runs_with_their_traces(database, organization_id):
    planted = await plant_everywhere(database, organization_id)
    exported = json.loads(await export(database, organization_id, planted.profile_id))
    assert exported["profile"]["external_id"] == PERSON["external_id"]
    assert {key: len(value) for key, value in exported.items() if isinstance(value, list)} == {
        "consents": 1,
        "attribution": 1,
        "journey_runs": 1,
        "campaigns": 1,
        "texts": 2,
        "replies": 1,
        "global_holdouts": 1,
        "clicks": 1,
        "sales_events": 1,
    }
    text, confirmation = sorted(exported["texts"], key=lambda text: text["state"])
    assert (text["text"], text["phone_number"], text["state"]) == (MARKER, PERSON["number"], "failed")
    assert confirmation["origin"] == "stop"
    assert exported["replies"][0]["text"] == MARKER
    [run] = exported["journey_runs"]
    assert (run["journey"]["name"], run["trace"][0]["event"], run["trace"][0]["detail"]) == ("J", "sent", MARKER)


async def test_a_condition_keeps_a_value_that_another_customer_has(database, organization_id):
    planted = await plant_everywhere(database, organization_id)
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO profiles (organization_id, id, external_id, attributes, created_at, updated_at)"
            " SELECT organization_id, gen_random_uuid(), 'other', attributes, now(), now() FROM profiles"
            " WHERE organization_id = %s",
            (organization_id,),
        )
    await erase(database, organization_id, ById(planted.profile_id))
    async with database.reading() as tx:
        [(definition,)] = await tx.fetch(
            "SELECT definition FROM segment_versions WHERE organization_id = %s", (organization_id,)
        )
    assert definition["match"]["of"][0]["values"] == ["other", MARKER]
