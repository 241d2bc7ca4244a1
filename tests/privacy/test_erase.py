"""Erasing a person: nothing that tells who they were stays in any table, and no total moves."""

import asyncio
import json
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from psycopg import sql
from tests.support.room import SECRET, request

from regulars.consent.ledger import Origin
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent, opt_in
from regulars.http.route import Answer, Write
from regulars.idempotency.model import Record
from regulars.idempotency.remember import store
from regulars.kit.db import Database, Tx
from regulars.kit.errors import ProfileNotFound
from regulars.kit.ids import PROFILE, ByExternalId, ById
from regulars.privacy import api
from regulars.privacy.erase import Erased, erase_profiles
from regulars.profiles.find import find_profiles
from regulars.profiles.model import Phone, ProfileUpsert
from regulars.profiles.upsert import Upserted, upsert_profiles
from regulars.sales.decode import decode_sale
from regulars.sales.record import record_sales
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores
from regulars.work.outbox import drain
from regulars.worker import LISTENERS

pytestmark = pytest.mark.anyio

TOLERANCE = timedelta(seconds=30)
PERSON = {
    "external_id": "CUST-ERASE-ME",
    "number": "+33612345678",
    "first_name": "Persephone",
    "last_name": "Unmistakable",
    "attribute": "likes-purple-scarves",
    "proof": "I, Persephone, agree",
}
OTHER = {
    "external_id": "CUST-STAYS",
    "number": "+33698765432",
    "first_name": "Otto",
    "last_name": "Remains",
    "attribute": "likes-hats",
    "proof": "I, Otto, agree",
}


def sale(external_id: str, profile_id: str | None, *, amount: int = 1000) -> bytes:
    ticket = {
        "external_id": external_id,
        "type": "PURCHASE",
        "occurred_at": "2026-01-05T10:00:00Z",
        "store_id": "S1",
        "profile_id": profile_id,
        "currency": "EUR",
        "total_amount_cents": amount,
        "total_discount_cents": 0,
        "line_items": [{"quantity": 1, "total_price_cents": amount}],
    }
    return json.dumps(ticket).encode()


async def record(tx: Tx, organization_id: UUID, *tickets: bytes):
    return await record_sales(tx, organization_id, [decode_sale(ticket) for ticket in tickets], tolerance=TOLERANCE)


async def plant(database: Database, organization_id: UUID, person: dict[str, str]) -> UUID:
    """A profile with a sale, a ticket collision, a consent with its proof, and two stored answers that show them."""
    name, number = person["external_id"], person["number"]
    async with database.transaction() as tx:
        await upsert_stores(tx, organization_id, [StoreUpsert(external_id="S1")])
        upsert = ProfileUpsert(
            external_id=name,
            phone=Phone(number, reachable=True),
            first_name=person["first_name"],
            last_name=person["last_name"],
            attributes={"hobby": person["attribute"]},
        )
        (upserted,) = await upsert_profiles(tx, organization_id, [upsert])
        assert isinstance(upserted, Upserted)
        await record(tx, organization_id, sale(f"S1:{name[-4:]}", name), sale(f"S1:{name[-4:]}", name, amount=5))
        consent = Consent(
            phone_number=number,
            source="WEBSITE",
            consented_at=tx.now - timedelta(hours=1),
            proof=Proof(source_text=person["proof"]),
            profile=ByExternalId(name),
            origin=Origin(),
        )
        await opt_in(tx, organization_id, [consent], secret=SECRET)
        canonical = PROFILE.encode(upserted.profile.id)
        answers = {
            "upsert": {"id": canonical, "first_name": person["first_name"]},
            "opt-in": {"profile": None, "phone_number": number},
        }
        for key, body in answers.items():
            compact = json.dumps(body, separators=(",", ":")).encode()
            row = Record(key=f"{key} {name[-4:]}", fingerprint=bytes(32), status=201, body=compact, created_at=tx.now)
            await store(tx, organization_id, [row])
        return upserted.profile.id


async def whole_database(database: Database, organization_id: UUID) -> str:
    """Every row of the organization in every table as text; stored bytes are shown as the text they hold."""
    texts = []
    async with database.transaction() as tx:
        tables = await tx.fetch(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'organization_id'"
        )
        for (table,) in tables:
            query = sql.SQL("SELECT row_to_json(t)::text FROM {} AS t WHERE organization_id = %s").format(
                sql.Identifier(table)
            )
            texts += [row[0] for row in await tx.fetch(query, (organization_id,))]
        bodies = await tx.fetch(
            "SELECT body FROM idempotency_keys WHERE organization_id = %s AND body IS NOT NULL", (organization_id,)
        )
        texts += [body.decode() for (body,) in bodies]
    return "\n".join(texts)


async def erase(database: Database, organization_id: UUID, *references):
    async with database.transaction() as tx:
        return await erase_profiles(tx, organization_id, references, secret=SECRET)


async def look_for_stragglers(database: Database, organization_id: UUID) -> None:
    """What the worker does a minute after an erasure, and not before."""
    await drain(database, organization_id, LISTENERS)
    async with database.transaction() as tx:
        due = await tx.fetch(
            "UPDATE outbox SET not_before = NULL WHERE organization_id = %s AND not_before > %s RETURNING topic",
            (organization_id, tx.now),
        )
        assert due == [("privacy.profile_erased",)]
    await drain(database, organization_id, LISTENERS)


async def test_nothing_that_tells_who_it_was_stays_anywhere(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    traces = [*PERSON.values(), str(profile_id), PROFILE.encode(profile_id)]
    before = await whole_database(database, organization_id)
    assert [trace for trace in traces if trace not in before] == []
    assert await erase(database, organization_id, ById(profile_id)) == [Erased(profile_id)]
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


async def test_a_stored_answer_loses_its_body_and_keeps_its_key(database, organization_id):
    await plant(database, organization_id, PERSON)
    await plant(database, organization_id, OTHER)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT key, body IS NULL FROM idempotency_keys WHERE organization_id = %s ORDER BY key", (organization_id,)
        )
    assert dict(rows) == {
        "opt-in E-ME": True,
        "upsert E-ME": True,
        "opt-in TAYS": False,
        "upsert TAYS": False,
    }


async def test_a_consent_from_before_cannot_bring_the_number_back(database, organization_id):
    await plant(database, organization_id, PERSON)
    await erase(database, organization_id, ByExternalId(PERSON["external_id"]))
    async with database.transaction() as tx:
        old = Consent(
            phone_number=PERSON["number"],
            source="IMPORT",
            consented_at=tx.now - timedelta(minutes=30),
            origin=Origin(),
        )
        (recorded,) = await opt_in(tx, organization_id, [old], secret=SECRET)
    assert (recorded.outcome, recorded.subscription.state.status) == ("superseded", "UNSUBSCRIBED")


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
    assert outcomes[0] == Erased(profile_id)
    assert outcomes[2] == Erased(other_id)
    assert all(isinstance(outcomes[index], ProfileNotFound) for index in (1, 3, 4))


async def test_the_route_answers_without_a_body(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    asked = [request(organization_id, references=(reference,)) for reference in (PROFILE.encode(profile_id), "nobody")]
    async with database.transaction() as tx:
        answers = await api.run_erasures(
            tx, organization_id, [Write(each, api.prepare_erasure(each)) for each in asked]
        )
    assert answers[0] == Answer(204, b"")
    assert isinstance(answers[1], ProfileNotFound)


async def test_a_sale_that_arrives_during_the_erasure_belongs_to_a_new_profile(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)

    async def sell(external_id: str, profile: str):
        async with database.transaction() as tx:
            return (await record(tx, organization_id, sale(external_id, profile)))[0]

    async with database.transaction() as tx:
        await erase_profiles(tx, organization_id, [ById(profile_id)], secret=SECRET)
        by_name = asyncio.create_task(sell("S1:late", PERSON["external_id"]))
        by_id = asyncio.create_task(sell("S1:later", PROFILE.encode(profile_id)))
        await asyncio.sleep(0.2)
        assert not by_name.done()
        assert not by_id.done()
    assert (await by_name).sale.profile.id != profile_id
    assert isinstance(await by_id, ProfileNotFound)


async def test_an_erasure_waits_for_a_sale_that_is_being_recorded_and_finds_it(database, organization_id):
    profile_id = await plant(database, organization_id, PERSON)
    async with database.transaction() as tx:
        await record(tx, organization_id, sale("S1:early", PERSON["external_id"]))
        erasing = asyncio.create_task(erase(database, organization_id, ById(profile_id)))
        await asyncio.sleep(0.2)
        assert not erasing.done()
    await erasing
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT count(*), count(profile_id) FROM sales_events WHERE organization_id = %s", (organization_id,)
        )
        assert rows == [(2, 0)]
        assert await find_profiles(tx, organization_id, [ById(profile_id)]) == {}


async def test_a_sale_that_slipped_in_beside_the_erasure_becomes_anonymous_later(database, organization_id):
    """The hot path holds no lock on the customer, so its sale may commit with the id of somebody just erased."""
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
