"""The peer: FastAPI, pydantic and SQLAlchemy's asynchronous engine on the same schema, one transaction a request.

It is written the way a careful team would: SQLAlchemy Core, where the ORM's unit of work would only cost, with
statements built once, conflicts left to the unique keys, the API key remembered for a second, a pool that never opens
connections under load, answers serialised by pydantic itself. It does less than Regulars: no outbox, no webhooks, no
collision notes, no rate limit.
"""

import hashlib
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, HTTPException, Request, Response
from pydantic import AwareDatetime, BaseModel, Field
from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    bindparam,
    select,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

KEY_CACHE_S = 1.0
# No overflow: connections beyond the pool would be opened and closed for each request.
POOL_CONNECTIONS = int(os.environ["PEER_POOL_CONNECTIONS"])
FUTURE_TOLERANCE = timedelta(seconds=30)
AUTOMATION_WINDOW = timedelta(days=7)

metadata = MetaData()
moment = DateTime(timezone=True)
api_keys = Table(
    "api_keys", metadata, Column("organization_id", Uuid), Column("key_hash", LargeBinary), Column("revoked_at", moment)
)
stores = Table("stores", metadata, Column("organization_id", Uuid), Column("id", Uuid), Column("external_id", Text))
profiles = Table(
    "profiles",
    metadata,
    Column("organization_id", Uuid),
    Column("id", Uuid),
    Column("external_id", Text),
    Column("created_at", moment),
    Column("updated_at", moment),
)
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("organization_id", Uuid),
    Column("key", Text),
    Column("fingerprint", LargeBinary),
    Column("status", SmallInteger),
    Column("body", LargeBinary),
    Column("created_at", moment),
)
sales_events = Table(
    "sales_events",
    metadata,
    Column("organization_id", Uuid),
    Column("id", Uuid),
    Column("store_id", Uuid),
    Column("profile_id", Uuid),
    Column("occurred_at", moment),
    Column("created_at", moment),
    Column("total_amount_cents", BigInteger),
    Column("total_discount_cents", BigInteger),
    Column("total_tax_cents", BigInteger),
    Column("external_id", Text),
    Column("type", Text),
    Column("currency", Text),
    Column("source", Text),
    Column("payments", JSON(none_as_null=True)),
    Column("loyalty", JSON(none_as_null=True)),
    Column("metadata", JSON(none_as_null=True)),
    Column("line_items", JSON),
)

ExternalId = Annotated[str, Field(min_length=1, max_length=255)]
Cents = Annotated[int, Field(strict=True)]


class Product(BaseModel):
    external_id: str | None = None
    name: str | None = None
    properties: dict[str, str | float | bool] = {}


class LineItem(BaseModel):
    external_id: str | None = None
    product: Product | None = None
    quantity: float
    unit: str | None = None
    unit_price_cents: Cents | None = None
    total_price_cents: Cents
    discount_cents: Cents | None = None
    tax_cents: Cents | None = None


class SaleIn(BaseModel):
    external_id: ExternalId
    type: Literal["PURCHASE", "RETURN"]
    occurred_at: AwareDatetime
    store_id: ExternalId
    currency: Literal["EUR", "GBP", "USD", "CHF"]
    total_amount_cents: Annotated[Cents, Field(ge=0)]
    total_discount_cents: Annotated[Cents, Field(ge=0)]
    total_tax_cents: Cents | None = None
    profile_id: ExternalId | None = None
    source: str | None = None
    payments: Any = None
    loyalty: Any = None
    metadata: Any = None
    line_items: Annotated[list[LineItem], Field(min_length=1, max_length=1000)]


class Reference(BaseModel):
    id: str
    external_id: str


class SaleOut(BaseModel):
    id: str
    external_id: str
    type: str
    occurred_at: datetime
    store: Reference
    profile: Reference | None
    currency: str
    total_amount_cents: int
    total_discount_cents: int
    total_tax_cents: int | None
    loyalty: Any
    payments: Any
    metadata: Any
    source: str | None
    line_items: list[LineItem]
    created_at: datetime


class Automation(BaseModel):
    state: str


class RecordedOut(BaseModel):
    sales_event: SaleOut
    automation: Automation


# Built once: making a statement anew costs more than running its cached form.
FIND_KEY = select(api_keys.c.organization_id).where(
    api_keys.c.key_hash == bindparam("key_hash"), api_keys.c.revoked_at.is_(None)
)
CLAIM_KEY = insert(idempotency_keys).on_conflict_do_nothing()
FIND_CLAIM = select(idempotency_keys.c.fingerprint, idempotency_keys.c.status, idempotency_keys.c.body).where(
    idempotency_keys.c.organization_id == bindparam("organization"), idempotency_keys.c.key == bindparam("claimed")
)
STORE_ANSWER = (
    idempotency_keys.update()
    .where(
        idempotency_keys.c.organization_id == bindparam("organization"), idempotency_keys.c.key == bindparam("claimed")
    )
    .values(status=bindparam("new_status"), body=bindparam("new_body"))
)
FIND_STORE = select(stores.c.id).where(
    stores.c.organization_id == bindparam("organization"), stores.c.external_id == bindparam("wanted")
)
FIND_PROFILE = select(profiles.c.id).where(
    profiles.c.organization_id == bindparam("organization"), profiles.c.external_id == bindparam("wanted")
)
CREATE_PROFILE = insert(profiles).on_conflict_do_nothing()
CREATE_SALE = insert(sales_events).on_conflict_do_nothing()
FIND_SALE = select(sales_events).where(
    sales_events.c.organization_id == bindparam("organization"), sales_events.c.external_id == bindparam("wanted")
)
SALE_COLUMNS = set(SaleIn.model_fields) - {"store_id", "profile_id"}
SHARED_FIELDS = set(SaleOut.model_fields) - {"id", "store", "profile"}

engine = create_async_engine(
    os.environ["PEER_DATABASE_URL"],
    pool_size=POOL_CONNECTIONS,
    max_overflow=0,
    connect_args={"host": os.environ["PEER_DATABASE_HOST"], "server_settings": {"timezone": "UTC", "jit": "off"}},
)
known_keys: dict[str, tuple[float, uuid.UUID]] = {}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan, openapi_url="/v1/openapi.json")


@app.post("/v1/sales-events")
async def record_sale(
    sale: SaleIn,
    request: Request,
    x_api_key: Annotated[str, Header()],
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    if sale.occurred_at > datetime.now(UTC) + FUTURE_TOLERANCE:
        raise HTTPException(400, "occurred_at lies in the future")
    async with engine.begin() as connection:
        organization_id = await authenticate(connection, x_api_key)
        if idempotency_key is None:
            status, body = await record(connection, organization_id, sale)
            return Response(body, status, media_type="application/json")
        fingerprint = hashlib.sha256(request.url.path.encode() + await request.body()).digest()
        replay = await claim(connection, organization_id, idempotency_key, fingerprint)
        if replay is not None:
            return replay
        status, body = await record(connection, organization_id, sale)
        stored = {"organization": organization_id, "claimed": idempotency_key, "new_status": status, "new_body": body}
        await connection.execute(STORE_ANSWER, stored)
    return Response(body, status, media_type="application/json")


async def authenticate(connection: AsyncConnection, key: str) -> uuid.UUID:
    found = known_keys.get(key)
    if found is not None and time.monotonic() - found[0] < KEY_CACHE_S:
        return found[1]
    key_hash = hashlib.sha256(key.encode()).digest()
    organization_id: uuid.UUID | None = (await connection.execute(FIND_KEY, {"key_hash": key_hash})).scalar()
    if organization_id is None:
        raise HTTPException(401, "the API key is not valid")
    known_keys[key] = (time.monotonic(), organization_id)
    return organization_id


async def claim(
    connection: AsyncConnection, organization_id: uuid.UUID, key: str, fingerprint: bytes
) -> Response | None:
    row = {
        "organization_id": organization_id,
        "key": key,
        "fingerprint": fingerprint,
        "status": 0,
        "body": None,
        "created_at": datetime.now(UTC),
    }
    claimed = await connection.execute(CLAIM_KEY, row)
    if claimed.rowcount:
        return None
    first = (await connection.execute(FIND_CLAIM, {"organization": organization_id, "claimed": key})).one()
    if first.fingerprint != fingerprint:
        raise HTTPException(409, "the Idempotency-Key was used with another request")
    return Response(first.body, first.status, {"Idempotent-Replayed": "true"}, media_type="application/json")


async def record(connection: AsyncConnection, organization_id: uuid.UUID, sale: SaleIn) -> tuple[int, bytes]:
    wanted = {"organization": organization_id, "wanted": sale.store_id}
    store_id = (await connection.execute(FIND_STORE, wanted)).scalar()
    if store_id is None:
        raise HTTPException(404, "no such store")
    profile_id = None
    if sale.profile_id is not None:
        profile_id = await find_or_create_profile(connection, organization_id, sale.profile_id)
    now = datetime.now(UTC)
    row = {
        **sale.model_dump(include=SALE_COLUMNS),
        "organization_id": organization_id,
        "id": uuid.uuid4(),
        "store_id": store_id,
        "profile_id": profile_id,
        "created_at": now,
    }
    inserted = await connection.execute(CREATE_SALE, row)
    if not inserted.rowcount:
        first = await connection.execute(FIND_SALE, {"organization": organization_id, "wanted": sale.external_id})
        return 200, answer(dict(first.mappings().one()), sale, "not_applicable")
    state = "stale_fact" if now - sale.occurred_at > AUTOMATION_WINDOW else "eligible"
    return 201, answer(row, sale, state if profile_id else "not_applicable")


async def find_or_create_profile(
    connection: AsyncConnection, organization_id: uuid.UUID, external_id: str
) -> uuid.UUID | None:
    wanted = {"organization": organization_id, "wanted": external_id}
    profile_id: uuid.UUID | None = (await connection.execute(FIND_PROFILE, wanted)).scalar()
    if profile_id is not None:
        return profile_id
    now = datetime.now(UTC)
    row = {
        "organization_id": organization_id,
        "id": uuid.uuid4(),
        "external_id": external_id,
        "created_at": now,
        "updated_at": now,
    }
    created = await connection.execute(CREATE_PROFILE, row)
    return row["id"] if created.rowcount else (await connection.execute(FIND_PROFILE, wanted)).scalar()


def answer(row: dict[str, Any], sale: SaleIn, state: str) -> bytes:
    profile = None
    if row["profile_id"] is not None and sale.profile_id is not None:
        profile = Reference(id=f"prof_{row['profile_id'].hex}", external_id=sale.profile_id)
    event = SaleOut(
        **{name: row[name] for name in SHARED_FIELDS},
        id=f"evt_{row['id'].hex}",
        store=Reference(id=f"store_{row['store_id'].hex}", external_id=sale.store_id),
        profile=profile,
    )
    return RecordedOut(sales_event=event, automation=Automation(state=state)).model_dump_json().encode()
