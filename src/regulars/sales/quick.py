"""The hot path: a whole batch of sales in one statement that commits by itself.

The answers are encoded before the statement runs, because the idempotency records in it hold them. What the statement
inserts is therefore exactly what was answered, or nothing:

- profiles are looked up first; a customer who is not known gets a candidate id, and the same statement inserts the
  profile without `ON CONFLICT`: if another process creates that customer meanwhile, the whole statement fails;
- an idempotency record is inserted the same way, and only for a sale that went in: a key that is taken fails it all;
- a sale whose external_id is taken is left out, with its profile, its record and its fact;
- nothing goes in when the prepared time is more than a second from the database's.

Whatever does not come back as inserted takes the careful path (`record.py`), a new statement that sees the winner.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from regulars.kit.arrays import Blobs, Texts, Uuids
from regulars.kit.clock import monotonic, truncate_to_milliseconds
from regulars.kit.db import Database, Tx
from regulars.kit.ids import ByExternalId, ById, Reference, new_uuid
from regulars.profiles.model import ProfileRef
from regulars.sales import queries
from regulars.sales.encode import encode_envelope
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale, StoredSale, automation_state, is_in_future, store_sale
from regulars.stores.model import StoreRef

CLOCK_READING_S_MAX = 1.0
STORES_CACHED_MAX = 100_000
ORGANIZATIONS_CACHED_MAX = 10_000
PROPERTY_KEYS_CACHED_MAX = 10_000

# Looked up one key at a time, for the reason that `sales/queries.py` gives.
_FIND_PROFILES = """
SELECT found.external_id, found.id FROM unnest(%s) AS wanted (external_id)
CROSS JOIN LATERAL (
    SELECT external_id, id FROM profiles WHERE organization_id = %s AND external_id = wanted.external_id LIMIT 1
) AS found
"""

_FIND_STORES = """
SELECT found.external_id, found.id FROM unnest(%s) AS wanted (external_id)
CROSS JOIN LATERAL (
    SELECT external_id, id FROM stores WHERE organization_id = %s AND external_id = wanted.external_id LIMIT 1
) AS found
"""

_FIND_PROPERTY_KEYS = """
SELECT found.key FROM unnest(%s) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT key FROM product_properties WHERE organization_id = %s AND key = wanted.key LIMIT 1
) AS found
"""

_RECORD = """
WITH inserted AS (
    INSERT INTO sales_events (organization_id, id, external_id, type, occurred_at, store_id, profile_id, currency,
        total_amount_cents, total_discount_cents, total_tax_cents, source, payments, loyalty, metadata, line_items,
        created_at)
    SELECT %s, i.* FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) AS i
    WHERE now() BETWEEN %s AND %s
    ON CONFLICT (organization_id, external_id) DO NOTHING
    RETURNING id, profile_id
), new_profiles AS (
    INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
    SELECT %s, n.id, n.external_id, %s, %s FROM unnest(%s, %s) AS n (id, external_id)
    WHERE n.id IN (SELECT profile_id FROM inserted)
), answers AS (
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)
    SELECT %s, k.key, k.fingerprint, 201, k.body, %s
    FROM unnest(%s, %s, %s, %s) AS k (sale_id, key, fingerprint, body)
    WHERE k.sale_id IN (SELECT id FROM inserted)
), fact AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at)
    SELECT %s, %s, %s, json_build_array(json_build_object('sales', json_agg(id))), %s
    FROM inserted HAVING count(*) > 0
)
SELECT now(), array_agg(id) FROM inserted
"""


class Keyed(Protocol):
    """A sale to record, with its idempotency key if it has one."""

    @property
    def command(self) -> Sale: ...
    @property
    def key(self) -> str | None: ...
    @property
    def fingerprint(self) -> bytes: ...


class QuickRecorder:
    """One per process, with connections of its own: as many as batches of different organizations are in flight."""

    def __init__(self, database: Database, *, tolerance: timedelta) -> None:
        self._database = database
        self._tolerance = tolerance
        self._idle: list[AsyncConnection[TupleRow]] = []
        self._database_ahead = timedelta()
        self._clock_read_at = float("-inf")
        # A store's code and id never change and a store is never deleted, so what was found once stays true.
        self._stores: dict[tuple[UUID, str], StoreRef] = {}
        # Neither does a key leave the catalog once it is in.
        self._property_keys: dict[UUID, set[str]] = {}

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def __call__(self, organization_id: UUID, writes: Sequence[Keyed]) -> list[bytes | None]:
        """The body of a 201 for each sale that went in, and None for each that did not."""
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            return await self._record(connection, organization_id, writes)
        finally:
            # A connection that failed is not used again, and neither are its idle neighbours: after a restart of
            # PostgreSQL they are all dead, and one batch should pay for that, not each in turn.
            if connection.closed:
                await self.close()
            else:
                self._idle.append(connection)

    async def record_in(self, tx: Tx, organization_id: UUID, sales: Sequence[Sale]) -> list[StoredSale | None]:
        """The same statement inside a transaction, for batch requests; None for each sale that did not go in."""
        outcomes: list[StoredSale | None] = [None] * len(sales)
        try:
            async with tx.connection.transaction():
                prepared = await self._prepare(tx.connection, organization_id, sales, now=tx.now)
                _, inserted = await _insert(tx.connection, organization_id, prepared, keyed=(), now=tx.now)
        except psycopg.IntegrityError:
            # Another process wrote one of the customers meanwhile; the savepoint is undone and nothing went in.
            return outcomes
        for index, stored in prepared.sales:
            if stored.id in inserted:
                outcomes[index] = stored
        return outcomes

    async def _record(
        self, connection: AsyncConnection[TupleRow], organization_id: UUID, writes: Sequence[Keyed]
    ) -> list[bytes | None]:
        now = await self._now(connection)
        prepared = await self._prepare(connection, organization_id, [write.command for write in writes], now=now)
        bodies: list[bytes | None] = [None] * len(writes)
        if not prepared.sales:
            return bodies
        answers = [
            (writes[index], stored, encode_envelope(stored, automation_state(stored, is_new=True, now=now)))
            for index, stored in prepared.sales
        ]
        keyed = sorted(
            (answer for answer in answers if answer[0].key is not None), key=lambda answer: answer[0].key or ""
        )
        database_now, inserted = await _insert(connection, organization_id, prepared, keyed=keyed, now=now)
        self._set_clock(database_now)
        for (index, stored), (_, _, body) in zip(prepared.sales, answers, strict=True):
            if stored.id in inserted:
                bodies[index] = body
        return bodies

    async def _prepare(
        self, connection: AsyncConnection[TupleRow], organization_id: UUID, sales: Sequence[Sale], *, now: datetime
    ) -> "_Prepared":
        """Choose the sales that the statement can decide, and give each what it will be stored with."""
        profiles, new_profiles = await _resolve_profiles(connection, organization_id, sales)
        stores = await self._resolve_stores(connection, organization_id, sales)
        known_keys = await self._resolve_property_keys(connection, organization_id, sales)
        chosen: list[tuple[int, StoredSale]] = []
        seen: set[str] = set()
        for index, sale in enumerate(sales):
            # A repeated ticket is not for this path, also when the first was not: it must not overtake the first.
            if sale.external_id in seen:
                continue
            seen.add(sale.external_id)
            store = stores.get(sale.store)
            profile = None if sale.profile is None else profiles.get(sale.profile)
            if store is None or (profile is None and sale.profile is not None):
                continue
            if is_in_future(sale, now=now, tolerance=self._tolerance) or not known_keys.issuperset(sale.property_keys):
                continue
            stored = store_sale(sale, identifier=new_uuid(), store=store, profile=profile, now=now)
            chosen.append((index, stored))
        # In external_id order, so that two processes that share tickets cannot deadlock on them.
        chosen.sort(key=lambda item: item[1].external_id)
        return _Prepared(chosen, new_profiles)

    async def _resolve_stores(
        self, connection: AsyncConnection[TupleRow], organization_id: UUID, sales: Sequence[Sale]
    ) -> dict[Reference, StoreRef]:
        cache = self._stores
        references = {sale.store for sale in sales}
        codes = {reference.external_id for reference in references if isinstance(reference, ByExternalId)}
        missing = [code for code in codes if (organization_id, code) not in cache]
        if missing:
            cursor = await connection.execute(_FIND_STORES, (Texts(sorted(missing)), organization_id))
            if len(cache) >= STORES_CACHED_MAX:
                cache.clear()
            for code, identifier in await cursor.fetchall():
                cache[organization_id, code] = StoreRef(identifier, code)
        return {
            reference: cache[organization_id, reference.external_id]
            for reference in references
            if not isinstance(reference, ById) and (organization_id, reference.external_id) in cache
        }

    async def _resolve_property_keys(
        self, connection: AsyncConnection[TupleRow], organization_id: UUID, sales: Sequence[Sale]
    ) -> set[str]:
        """The keys in the product catalog; a sale with another one takes the careful path, which tells of new keys."""
        known = self._property_keys.get(organization_id)
        if known is None:
            if len(self._property_keys) >= ORGANIZATIONS_CACHED_MAX:
                self._property_keys.clear()
            known = self._property_keys[organization_id] = set()
        missing = {key for sale in sales if not known.issuperset(sale.property_keys) for key in sale.property_keys}
        missing -= known
        if missing:
            cursor = await connection.execute(_FIND_PROPERTY_KEYS, (Texts(sorted(missing)), organization_id))
            found = {key for (key,) in await cursor.fetchall()}
            if len(known) + len(found) > PROPERTY_KEYS_CACHED_MAX:
                known.clear()
            known |= found
        return known

    async def _now(self, connection: AsyncConnection[TupleRow]) -> datetime:
        """The database's time, from the last reading when that is fresh."""
        if monotonic() - self._clock_read_at > CLOCK_READING_S_MAX:
            row = await (await connection.execute("SELECT now()")).fetchone()
            if row is not None:
                self._set_clock(row[0])
        return truncate_to_milliseconds(datetime.now(UTC) + self._database_ahead)

    def _set_clock(self, database_now: datetime) -> None:
        self._database_ahead = database_now - datetime.now(UTC)
        self._clock_read_at = monotonic()

    async def _connect(self) -> AsyncConnection[TupleRow]:
        connection = await self._database.dial()
        # Planning the statement takes longer than running it for a few sales, so it is planned once; and a plan made
        # while a table was empty must not scan it for ever.
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute("SET enable_seqscan = off")
        return connection


class _Prepared(NamedTuple):
    """Sales with their places in the list, in external_id order, and the profiles that some of them need."""

    sales: list[tuple[int, StoredSale]]
    new_profiles: list[ProfileRef]


async def _insert(
    connection: AsyncConnection[TupleRow],
    organization_id: UUID,
    prepared: _Prepared,
    *,
    keyed: Sequence[tuple[Keyed, StoredSale, bytes]],
    now: datetime,
) -> tuple[datetime, set[UUID]]:
    """Run the statement; give the database's time and the ids of the sales that went in."""
    slack = timedelta(seconds=CLOCK_READING_S_MAX)
    parameters: tuple[Any, ...] = (
        organization_id,
        *queries.columns([stored for _, stored in prepared.sales]),
        now - slack,
        now + slack,
        organization_id,
        now,
        now,
        Uuids([profile.id for profile in prepared.new_profiles]),
        Texts([profile.external_id for profile in prepared.new_profiles]),
        organization_id,
        now,
        Uuids([stored.id for _, stored, _ in keyed]),
        Texts([write.key for write, _, _ in keyed]),
        Blobs([write.fingerprint for write, _, _ in keyed]),
        Blobs([body for _, _, body in keyed]),
        organization_id,
        new_uuid(),
        SalesRecorded.topic,
        now,
    )
    cursor = await connection.execute(_RECORD, parameters)
    row = await cursor.fetchone()
    if row is None:
        raise psycopg.InterfaceError("an aggregate gave no row")
    return row[0], set(row[1] or ())


async def _resolve_profiles(
    connection: AsyncConnection[TupleRow], organization_id: UUID, sales: Sequence[Sale]
) -> tuple[dict[Reference, ProfileRef], list[ProfileRef]]:
    """The customers by external_id, with a candidate id for each who is not known."""
    references = {sale.profile for sale in sales if isinstance(sale.profile, ByExternalId)}
    if not references:
        return {}, []
    wanted = Texts(sorted(reference.external_id for reference in references))
    cursor = await connection.execute(_FIND_PROFILES, (wanted, organization_id))
    found: dict[Reference, ProfileRef] = {
        ByExternalId(external_id): ProfileRef(identifier, external_id)
        for external_id, identifier in await cursor.fetchall()
    }
    candidates = [ProfileRef(new_uuid(), reference.external_id) for reference in references if reference not in found]
    candidates.sort(key=lambda profile: profile.external_id)
    found.update((ByExternalId(profile.external_id), profile) for profile in candidates)
    return found, candidates
