"""An erasure takes the person out of facts that wait for their listeners, and then publishes that they are gone."""

from typing import Any

import msgspec
import pytest
from tests.privacy.people import OTHER, PERSON, erase, plant, whole_database
from tests.support.drain_queues import drain

from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.ids import PROFILE, ByExternalId
from regulars.privacy.facts import ProfileErased
from regulars.privacy.jobs import anonymise_stragglers
from regulars.profiles.facts import ProfilesChanged
from regulars.work.facts import Fact
from regulars.work.outbox import register_interest

pytestmark = pytest.mark.anyio

KINDS: tuple[type[Fact], ...] = (ProfilesChanged, SubscriptionsChanged)


@pytest.fixture
async def listening(database, organization_id):
    async with database.transaction() as tx:
        for kind in KINDS:
            await register_interest(tx, organization_id, kind, needed_by="test")


async def waiting(database, organization_id, kind: type[Any]) -> list[Any]:
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT payload::text FROM outbox WHERE organization_id = %(o)s AND topic = %(t)s"
            " UNION ALL SELECT payload::text FROM outbox_retries WHERE organization_id = %(o)s AND topic = %(t)s",
            {"o": organization_id, "t": kind.topic},
        )
    facts = [fact for (payload,) in rows for fact in msgspec.json.decode(payload, type=list[kind])]
    return [change for fact in facts for change in fact.changes]


async def fail(tx, organization_id, facts):
    raise RuntimeError("planted")


async def accept(tx, organization_id, facts):
    pass


async def both_planted(database, organization_id):
    """One row of each kind holds both people, as the rows of a batch do."""
    ids = [await plant(database, organization_id, person) for person in (PERSON, OTHER)]
    async with database.transaction() as tx:
        for kind in KINDS:
            await tx.execute(
                "UPDATE outbox SET payload = (SELECT json_agg(f) FROM outbox o, json_array_elements(o.payload) f"
                " WHERE o.organization_id = %(o)s AND o.topic = %(t)s)"
                " WHERE organization_id = %(o)s AND topic = %(t)s",
                {"o": organization_id, "t": kind.topic},
            )
    return ids


async def test_only_the_erasure_itself_is_left_to_be_published(database, organization_id, listening):
    person, other = await both_planted(database, organization_id)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    profiles = await waiting(database, organization_id, ProfilesChanged)
    mine = [(one.change, msgspec.json.decode(one.shown)) for one in profiles if one.id == person]
    assert mine == [("deleted", {"id": PROFILE.encode(person), "external_id": PERSON["external_id"]})]
    assert {one.change for one in profiles if one.id == other} == {"created"}
    consents = await waiting(database, organization_id, SubscriptionsChanged)
    erased = [one for one in consents if one.by_erasure]
    shown = msgspec.json.decode(erased[0].shown)
    assert [(one.outcome, one.automation) for one in erased] == [("unsubscribed", "not_applicable")]
    assert (shown["phone_number"], shown["profile"], shown["consent_proof"]) == (None, None, None)
    assert person not in {one.profile_id for one in consents}
    assert other in {one.profile_id for one in consents}
    left = await whole_database(database, organization_id)
    for secret in ("number", "first_name", "last_name", "attribute", "proof"):
        assert PERSON[secret] not in left
        assert OTHER[secret] in left


async def test_what_waits_for_a_failed_listener_or_is_parked_is_rewritten_too(database, organization_id, listening):
    await both_planted(database, organization_id)
    listeners = {kind: {"late": fail, "parked": fail, "fine": accept} for kind in KINDS}
    await drain(database, organization_id, listeners)
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE outbox_retries SET due_at = NULL WHERE organization_id = %s AND listener = 'parked'",
            (organization_id,),
        )
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    left = await whole_database(database, organization_id)
    assert PERSON["first_name"] not in left
    assert PERSON["number"] not in left
    assert len(await waiting(database, organization_id, ProfilesChanged)) >= 3


async def test_the_pass_for_late_commits_erases_again_and_leaves_the_erasure_to_be_published(
    database, organization_id, listening
):
    person, _ = await both_planted(database, organization_id)
    async with database.transaction() as tx:
        late = await tx.fetch(
            "SELECT id, topic, payload::text FROM outbox WHERE organization_id = %s AND topic LIKE '%%.changed'",
            (organization_id,),
        )
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    async with database.transaction() as tx:
        # A transaction that had written them commits only now.
        for identifier, topic, payload in late:
            await tx.execute("DELETE FROM outbox WHERE organization_id = %s AND id = %s", (organization_id, identifier))
            await tx.execute(
                "INSERT INTO outbox (organization_id, id, topic, payload, created_at) VALUES (%s, %s, %s, %s, now())",
                (organization_id, identifier, topic, payload),
            )
    assert PERSON["first_name"] in await whole_database(database, organization_id)
    async with database.transaction() as tx:
        await anonymise_stragglers(tx, organization_id, [ProfileErased(person, tx.now)])
    assert PERSON["first_name"] not in await whole_database(database, organization_id)
    assert "deleted" in {one.change for one in await waiting(database, organization_id, ProfilesChanged)}
    assert any(one.by_erasure for one in await waiting(database, organization_id, SubscriptionsChanged))
