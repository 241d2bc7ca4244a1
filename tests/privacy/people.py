"""People with something in every table, and looks at what an erasure left of them."""

import json
from datetime import timedelta
from uuid import UUID

from psycopg import sql
from tests.support.database_fixtures import SECRET
from tests.support.drain_queues import drain

from regulars.consent.ledger import EventOrigin, OptInResult
from regulars.consent.model import Proof
from regulars.consent.opt_in import Consent, opt_in
from regulars.idempotency.model import StoredResponse
from regulars.idempotency.records import store_responses
from regulars.kit.db import Database, Tx
from regulars.kit.ids import PROFILE, SUBSCRIPTION, ByExternalId
from regulars.privacy.erase import erase_profiles
from regulars.profiles.model import Phone, ProfileUpsert
from regulars.profiles.write import UpsertedProfile, upsert_profiles
from regulars.sales.decode import decode_sale
from regulars.sales.record import record_sales
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores
from regulars.worker import LISTENERS

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
        assert isinstance(upserted, UpsertedProfile)
        await record(tx, organization_id, sale(f"S1:{name[-4:]}", name), sale(f"S1:{name[-4:]}", name, amount=5))
        consent = Consent(
            phone_number=number,
            source="WEBSITE",
            consented_at=tx.now - timedelta(hours=1),
            proof=Proof(source_text=person["proof"]),
            profile=ByExternalId(name),
            origin=EventOrigin(),
        )
        (recorded,) = await opt_in(tx, organization_id, [consent], secret=SECRET)
        assert isinstance(recorded, OptInResult)
        answers = {
            "upsert": {"id": PROFILE.encode(upserted.profile.id), "first_name": person["first_name"]},
            "opt-in": {"id": SUBSCRIPTION.encode(recorded.subscription.id), "profile": None, "phone_number": number},
        }
        for key, body in answers.items():
            await remember(tx, organization_id, f"{key} {name[-4:]}", body)
        return upserted.profile.id


async def remember(tx: Tx, organization_id: UUID, key: str, body: object, *, age: timedelta = timedelta(0)) -> None:
    compact = json.dumps(body, separators=(",", ":")).encode()
    record = StoredResponse(key=key, fingerprint=bytes(32), status=201, body=compact, created_at=tx.now - age)
    await store_responses(tx, organization_id, [record])


async def blanked(database: Database, organization_id: UUID) -> dict[str, bool]:
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT key, body IS NULL FROM idempotency_keys WHERE organization_id = %s", (organization_id,)
        )
    return dict(rows)


async def whole_database(database: Database, organization_id: UUID) -> str:
    """Every row of the organization in every table as text; stored bytes are shown as the text they hold."""
    texts = []
    async with database.transaction() as tx:
        tables = await tx.fetch(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'organization_id'"
        )
        for (table,) in tables:
            # Ids and keyed hashes of those who were erased, which a restore needs.
            if table == "erasures":
                continue
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
            "UPDATE outbox SET not_before = NULL, due_at = created_at WHERE organization_id = %s AND due_at > %s RETURNING topic",
            (organization_id, tx.now),
        )
        assert due == [("privacy.profile_erased",)]
    await drain(database, organization_id, LISTENERS)


async def blank_keys(database: Database, organization_id: UUID) -> set[str]:
    return {key for key, is_blank in (await blanked(database, organization_id)).items() if is_blank}
