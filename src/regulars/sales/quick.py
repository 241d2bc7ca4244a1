"""The hot path: a whole batch of sales in one statement that commits by itself.

The answers are encoded before the statement runs, because the idempotency records in it hold them. What the statement
inserts is therefore exactly what was answered, or nothing:

- profiles are looked up first; a customer who is not known gets a candidate id, and the same statement inserts the
  profile without `ON CONFLICT`: if another process creates that customer meanwhile, the whole statement fails;
- an idempotency record is inserted the same way, and only for a sale that went in: a key that is taken fails it all;
- a sale whose external_id is taken is left out, with its profile, its record and its fact; of a batch request, which
  has one answer for all its sales, either all go in or none;
- nothing goes in when the prepared time is more than a second from the database's.

Whatever was not inserted takes the careful path (`record.py`), a new statement that sees the winner.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol
from uuid import UUID

from regulars.kit.arrays import (
    Blobs,
    Texts,
    Uuids,
    read_bigint,
    read_timestamp,
    read_uuids,
    timestamp,
)
from regulars.kit.clock import monotonic, truncate_to_milliseconds
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE, ByExternalId, new_uuid_number
from regulars.kit.prepared import PreparedConnection
from regulars.sales import queries
from regulars.sales.encode import ReferenceOut, encode_new
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale, freshness, is_in_future

CLOCK_READING_S_MAX = 1.0
STORES_CACHED_MAX = 100_000
ORGANIZATIONS_CACHED_MAX = 10_000
PROPERTY_KEYS_CACHED_MAX = 10_000
UUID_BYTES = 16

# Looked up one key at a time, for the reason that `sales/queries.py` gives; the answer has an element, or null, for
# each name in its place.
_FIND = """
SELECT ARRAY(
    SELECT (SELECT id FROM {table} WHERE organization_id = $1::uuid AND external_id = wanted.external_id)
    FROM unnest($2::text[]) WITH ORDINALITY AS wanted (external_id, place) ORDER BY place
)
"""

_FIND_PROPERTY_KEYS = """
SELECT found.key FROM unnest($2::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT key FROM product_properties WHERE organization_id = $1::uuid AND key = wanted.key LIMIT 1
) AS found
"""

_RECORD = """
WITH inserted AS (
    INSERT INTO sales_events (organization_id, created_at, id, external_id, type, occurred_at, store_id, profile_id,
        currency, total_amount_cents, total_discount_cents, total_tax_cents, source, payments, loyalty, metadata,
        line_items)
    SELECT $1::uuid, $2::timestamptz, i.* FROM unnest($3::uuid[], $4::text[], $5::text[], $6::timestamptz[],
        $7::uuid[], $8::uuid[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::json[],
        $15::json[], $16::json[], $17::json[]) AS i
    WHERE now() BETWEEN $2 - interval '1 second' AND $2 + interval '1 second'
    {on_conflict}
    RETURNING id, profile_id
), new_profiles AS (
    INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
    SELECT $1, n.id, n.external_id, $2, $2 FROM unnest($18::uuid[], $19::text[]) AS n (id, external_id)
    WHERE n.id IN (SELECT profile_id FROM inserted)
), answers AS (
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)
    SELECT $1, k.key, k.fingerprint, $20::smallint, k.body, $2
    FROM unnest($21::uuid[], $22::text[], $23::bytea[], $24::bytea[]) AS k (sale_id, key, fingerprint, body)
    WHERE k.sale_id IN (SELECT id FROM inserted)
), fact AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at)
    SELECT $1, $25::uuid, $26::text, json_build_array(json_build_object('sales', json_agg(id))), $2
    FROM inserted HAVING count(*) > 0
)
SELECT now(), count(*), CASE WHEN count(*) < cardinality($3) THEN array_agg(id) END FROM inserted
"""

_STATEMENTS = {
    b"find_profiles": _FIND.format(table="profiles"),
    b"find_stores": _FIND.format(table="stores"),
    b"find_property_keys": _FIND_PROPERTY_KEYS,
    b"record": _RECORD.format(on_conflict="ON CONFLICT (organization_id, external_id) DO NOTHING"),
    b"record_all": _RECORD.format(on_conflict=""),
}


class Keyed(Protocol):
    """Something to record, with its idempotency key if it has one."""

    @property
    def key(self) -> str | None: ...
    @property
    def fingerprint(self) -> bytes: ...


class KeyedSale(Keyed, Protocol):
    @property
    def command(self) -> Sale: ...


class QuickRecorder:
    """One per process, with connections of its own: as many as batches of different organizations are in flight."""

    def __init__(self, database: Database, *, tolerance: timedelta) -> None:
        self._database = database
        self._tolerance = tolerance
        self._idle: list[PreparedConnection] = []
        self._database_ahead = timedelta()
        self._clock_read_at = float("-inf")
        self._known: dict[UUID, _Known] = {}

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def record(self, organization_id: UUID, writes: Sequence[KeyedSale]) -> list[bytes | None]:
        """The body of a 201 for each sale that went in, and None for each that did not."""
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            return await self._record(connection, organization_id, writes)
        finally:
            self._give_back(connection)

    async def record_all(
        self,
        organization_id: UUID,
        sales: Sequence[Sale],
        *,
        write: Keyed,
        status: int,
        answer: Callable[[list[bytes]], bytes],
    ) -> bytes | None:
        """Record all sales of one request or none. `answer` makes its body of the bodies of its sales."""
        connection = self._idle.pop() if self._idle else await self._connect()
        try:
            now = await self._now(connection)
            chosen, candidates = await self._choose(connection, organization_id, sales, now=now)
            if len(chosen) < len(sales):
                return None
            body = answer([row.body for row in chosen])
            keyed = [] if write.key is None else [(chosen[0].id, write, body)]
            chosen.sort(key=_by_external_id)
            inserted = await self._insert(
                connection, b"record_all", organization_id, chosen, candidates, keyed=keyed, status=status, now=now
            )
            return body if inserted is None else None
        finally:
            self._give_back(connection)

    async def _record(
        self, connection: PreparedConnection, organization_id: UUID, writes: Sequence[KeyedSale]
    ) -> list[bytes | None]:
        now = await self._now(connection)
        sales = [write.command for write in writes]
        chosen, candidates = await self._choose(connection, organization_id, sales, now=now)
        bodies: list[bytes | None] = [None] * len(writes)
        if not chosen:
            return bodies
        # In the order of what is unique, so that two processes that share tickets or keys cannot deadlock on them.
        chosen.sort(key=_by_external_id)
        keyed = [(row.id, writes[row.place], row.body) for row in chosen if writes[row.place].key is not None]
        keyed.sort(key=lambda answer: answer[1].key or "")
        inserted = await self._insert(
            connection, b"record", organization_id, chosen, candidates, keyed=keyed, status=201, now=now
        )
        for row in chosen:
            if inserted is None or row.id in inserted:
                bodies[row.place] = row.body
        return bodies

    async def _choose(
        self, connection: PreparedConnection, organization_id: UUID, sales: Sequence[Sale], *, now: datetime
    ) -> "tuple[list[_Row], _Candidates]":
        """Choose the sales that the statement can decide, and give each what it will be stored with."""
        known = self._known_of(organization_id)
        profiles, candidates = await _find_profiles(connection, organization_id, sales)
        await _learn(connection, organization_id, sales, known)
        stores, property_keys = known.stores, known.property_keys
        rows: list[_Row] = []
        seen: set[str] = set()
        for place, sale in enumerate(sales):
            # A repeated ticket is not for this path, also when the first was not: it must not overtake the first.
            if sale.external_id in seen:
                continue
            seen.add(sale.external_id)
            store = stores.get(sale.store.external_id) if isinstance(sale.store, ByExternalId) else None
            if store is None or not property_keys.issuperset(sale.property_keys):
                continue
            profile = None
            if sale.profile is not None:
                if not isinstance(sale.profile, ByExternalId):
                    continue
                profile = profiles[sale.profile.external_id]
            if is_in_future(sale, now=now, tolerance=self._tolerance):
                continue
            number = new_uuid_number()
            body = encode_new(
                sale,
                SALES_EVENT.spell(number),
                store=store.shown,
                profile=None if profile is None else profile.shown,
                created_at=now,
                state="not_applicable" if profile is None else freshness(sale, now=now),
            )
            rows.append(_Row(place, number.to_bytes(UUID_BYTES, "big"), sale, store, profile, body))
        return rows, candidates

    async def _insert(
        self,
        connection: PreparedConnection,
        statement: bytes,
        organization_id: UUID,
        rows: "Sequence[_Row]",
        candidates: "_Candidates",
        *,
        keyed: Sequence[tuple[bytes, Keyed, bytes]],
        status: int,
        now: datetime,
    ) -> set[bytes | None] | None:
        """Run the statement; give the ids of the sales that went in, or None when all did."""
        arrays = (
            *queries.columns(
                [row.sale for row in rows],
                ids=[row.id for row in rows],
                stores=[row.store.id for row in rows],
                profiles=[None if row.profile is None else row.profile.id for row in rows],
            ),
            Uuids([profile.id for profile in candidates]),
            Texts([profile.shown.external_id for profile in candidates]),
        )
        result = await connection.run(
            statement,
            [
                organization_id.bytes,
                timestamp(now),
                *[array.payload for array in arrays],
                status.to_bytes(2, "big"),
                Uuids([sale for sale, _, _ in keyed]).payload,
                Texts([write.key or "" for _, write, _ in keyed]).payload,
                Blobs([write.fingerprint for _, write, _ in keyed]).payload,
                Blobs([body for _, _, body in keyed]).payload,
                new_uuid_number().to_bytes(UUID_BYTES, "big"),
                SalesRecorded.topic.encode(),
            ],
        )
        self._set_clock(read_timestamp(result.get_value(0, 0) or b""))
        if read_bigint(result.get_value(0, 1) or b"") == len(rows):
            return None
        return set(read_uuids(result.get_value(0, 2) or b""))

    def _known_of(self, organization_id: UUID) -> "_Known":
        known = self._known.get(organization_id)
        if known is None:
            if len(self._known) >= ORGANIZATIONS_CACHED_MAX:
                self._known.clear()
            known = self._known[organization_id] = _Known({}, set())
        return known

    async def _now(self, connection: PreparedConnection) -> datetime:
        """The database's time, from the last reading when that is fresh."""
        if monotonic() - self._clock_read_at > CLOCK_READING_S_MAX:
            result = await connection.run(b"now", ())
            self._set_clock(read_timestamp(result.get_value(0, 0) or b""))
        return truncate_to_milliseconds(datetime.now(UTC) + self._database_ahead)

    def _set_clock(self, database_now: datetime) -> None:
        self._database_ahead = database_now - datetime.now(UTC)
        self._clock_read_at = monotonic()

    async def _connect(self) -> PreparedConnection:
        connection = await self._database.dial()
        # Planning the statement takes longer than running it for a few sales, so it is planned once; and a plan made
        # while a table was empty must not scan it for ever.
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute("SET enable_seqscan = off")
        prepared = PreparedConnection(connection)
        await prepared.prepare({b"now": "SELECT now()", **_STATEMENTS})
        return prepared

    def _give_back(self, connection: PreparedConnection) -> None:
        # A connection that failed is not used again, and neither are its idle neighbours: after a restart of
        # PostgreSQL they are all dead, and one batch should pay for that, not each in turn.
        if connection.is_closed:
            self.close()
        else:
            self._idle.append(connection)


class _Named(NamedTuple):
    """A store or a customer: the bytes of its id, and how it is shown."""

    id: bytes
    shown: ReferenceOut


_Candidates = list[_Named]


class _Row(NamedTuple):
    """A sale that the statement will insert, with its place among those that were asked for."""

    place: int
    id: bytes
    sale: Sale
    store: _Named
    profile: _Named | None
    body: bytes


class _Known(NamedTuple):
    """What is known of an organization.

    A store's code and id never change and a store is never deleted, so what was found once stays true. Neither does a
    key of a product property leave the catalog once it is in.
    """

    stores: dict[str, _Named]
    property_keys: set[str]


def _by_external_id(row: _Row) -> str:
    return row.sale.external_id


async def _find_profiles(
    connection: PreparedConnection, organization_id: UUID, sales: Sequence[Sale]
) -> tuple[dict[str, _Named], _Candidates]:
    """The customers by external_id, with a candidate id for each who is not known."""
    names = sorted({sale.profile.external_id for sale in sales if isinstance(sale.profile, ByExternalId)})
    if not names:
        return {}, []
    result = await connection.run(b"find_profiles", [organization_id.bytes, Texts(names).payload])
    profiles: dict[str, _Named] = {}
    candidates: _Candidates = []
    for name, identifier in zip(names, read_uuids(result.get_value(0, 0) or b""), strict=True):
        number = new_uuid_number() if identifier is None else int.from_bytes(identifier, "big")
        profile = _Named(number.to_bytes(UUID_BYTES, "big"), ReferenceOut(PROFILE.spell(number), name))
        profiles[name] = profile
        if identifier is None:
            candidates.append(profile)
    return profiles, candidates


async def _learn(connection: PreparedConnection, organization_id: UUID, sales: Sequence[Sale], known: _Known) -> None:
    """Look up the stores and the property keys that were not met before."""
    codes = {sale.store.external_id for sale in sales if isinstance(sale.store, ByExternalId)}
    if not codes <= known.stores.keys():
        missing = sorted(codes - known.stores.keys())
        result = await connection.run(b"find_stores", [organization_id.bytes, Texts(missing).payload])
        if len(known.stores) + len(missing) > STORES_CACHED_MAX:
            known.stores.clear()
        for code, identifier in zip(missing, read_uuids(result.get_value(0, 0) or b""), strict=True):
            if identifier is not None:
                shown = ReferenceOut(STORE.spell(int.from_bytes(identifier, "big")), code)
                known.stores[code] = _Named(identifier, shown)
    keys = {key for sale in sales for key in sale.property_keys} - known.property_keys
    if keys:
        result = await connection.run(b"find_property_keys", [organization_id.bytes, Texts(sorted(keys)).payload])
        if len(known.property_keys) + result.ntuples > PROPERTY_KEYS_CACHED_MAX:
            known.property_keys.clear()
        known.property_keys.update((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))
