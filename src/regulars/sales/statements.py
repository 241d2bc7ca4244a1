"""The statements of the hot path. Values travel as finished bytes, and ids are their sixteen bytes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import msgspec

from regulars.idempotency.model import Headers, write_headers
from regulars.kit.arrays import (
    Bigints,
    BinaryArray,
    Blobs,
    Jsons,
    Labels,
    Texts,
    Timestamps,
    Uuids,
    read_timestamp,
    read_uuids,
    timestamp,
)
from regulars.kit.clock import format_timestamp
from regulars.kit.connection import Connection, Prepared
from regulars.kit.ids import PROFILE, new_uuid
from regulars.profiles.facts import ProfilesChanged
from regulars.profiles.tell import LIGHT_PROFILE
from regulars.sales.encode import Split
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale


class _Told(NamedTuple):
    """A column of what a caller told of a sale: named like the field of `Sale` it comes from."""

    name: LiteralString
    array: Callable[[list[Any]], BinaryArray]


TOLD: Final = (
    _Told("external_id", Texts),
    _Told("type", Labels),
    _Told("occurred_at", Timestamps),
    _Told("currency", Labels),
    _Told("total_amount_cents", Bigints),
    _Told("total_discount_cents", Bigints),
    _Told("total_tax_cents", Bigints),
    _Told("source", Labels),
    _Told("payments", Jsons),
    _Told("loyalty", Jsons),
    _Told("metadata", Jsons),
    _Told("line_items", Jsons),
)
# Beside these a row has its organization, its profile, and the time it was created at.
COLUMNS: Final[LiteralString] = ", ".join(["id", "store_id", *[column.name for column in TOLD]])
_ARRAYS: Final = [(column.array, attrgetter(column.name)) for column in TOLD]


def arrays(sales: Sequence[Sale], *, ids: Sequence[bytes], stores: Sequence[bytes]) -> tuple[BinaryArray, ...]:
    """The sales as one array for each of `COLUMNS`."""
    return (Uuids(ids), Uuids(stores), *[array(list(map(get, sales))) for array, get in _ARRAYS])


# Looked up one name at a time, for the reason that `sales/queries.py` gives; the answer has an id, or null, for each
# name in its place.
_FIND_IDS: Final[LiteralString] = "SELECT ARRAY(SELECT (SELECT id FROM "
_BY_NAME: Final[LiteralString] = """
    WHERE organization_id = $1::uuid AND external_id = wanted.external_id)
    FROM unnest($2::text[]) WITH ORDINALITY AS wanted (external_id, place) ORDER BY place
)
"""

_FIND_PROPERTY_KEYS: Final[LiteralString] = """
SELECT found.key FROM unnest($2::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT key FROM product_properties WHERE organization_id = $1::uuid AND key = wanted.key LIMIT 1
) AS found
"""

# A sale comes with the customer to look up, or with none and the profile itself; a customer who is not found gets the
# profile that came along, which is then a candidate.
_INSERT: Final[LiteralString] = (
    "WITH inserted AS (INSERT INTO sales_events (organization_id, created_at, profile_id, "  # noqa: S608  # the names are ours
    + COLUMNS
    + """)
    SELECT $1::uuid, $2::timestamptz,
        COALESCE((SELECT id FROM profiles WHERE organization_id = $1 AND external_id = i.customer), i.candidate), """
    + COLUMNS
    + """
    FROM unnest($3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[], $8::text[], $9::timestamptz[], $10::text[],
        $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::json[], $16::json[], $17::json[], $18::json[])
        AS i (customer, candidate, """
    + COLUMNS
    + """)
    WHERE now() BETWEEN $2 - interval '1 second' AND $2 + interval '1 second'
"""
)
_IF_NEW: Final[LiteralString] = "ON CONFLICT (organization_id, external_id) DO NOTHING"
_AND_TELL: Final[LiteralString] = """
    RETURNING id, profile_id
), new_profiles AS (
    INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
    SELECT $1, n.id, n.external_id, $2, $2 FROM unnest($19::uuid[], $20::text[]) AS n (id, external_id)
    WHERE n.id IN (SELECT profile_id FROM inserted)
    RETURNING id, external_id
), answers AS (
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, headers, created_at)
    SELECT $1, k.key, k.fingerprint, $21::smallint,
        k.head || COALESCE(convert_to(canonical_id($34::text, i.profile_id), 'UTF8') || k.tail, ''), k.headers, $2
    FROM unnest($22::uuid[], $23::text[], $24::bytea[], $25::bytea[], $26::bytea[], $27::text[])
        AS k (sale_id, key, fingerprint, head, tail, headers)
    JOIN inserted i ON i.id = k.sale_id
), fact AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT $1, $28::uuid, $29::text, json_build_array(json_build_object('sales', json_agg(id))), $2, $2
    FROM inserted HAVING count(*) > 0
), fact_of_profiles AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT $1, $30::uuid, $31::text, concat('[{"at":"', $32::text, '","changes":[', string_agg(concat(
        '{"id":"', id, '","change":"created","shown":{"id":"', canonical_id($34, id),
        '","external_id":', to_json(external_id), replace($33::text, '{at}', $32)), ','), ']}]')::json, $2, $2
    FROM new_profiles
    WHERE EXISTS (SELECT FROM interests WHERE organization_id = $1 AND topic = $31)
    HAVING count(*) > 0
)
SELECT now(), array_agg(id), array_agg(profile_id) FROM inserted
"""

_NOW = Prepared(b"now", "SELECT now()")
_FIRST_STORES = Prepared(
    b"first_stores", "SELECT external_id, id FROM stores WHERE organization_id = $1::uuid ORDER BY id LIMIT 1000"
)
FIND_PROFILES = Prepared(b"find_profiles", _FIND_IDS + "profiles" + _BY_NAME)
FIND_STORES = Prepared(b"find_stores", _FIND_IDS + "stores" + _BY_NAME)
_FIND_KEYS = Prepared(b"find_property_keys", _FIND_PROPERTY_KEYS)
# Those whose external_id is taken are left out.
RECORD = Prepared(b"record", _INSERT + _IF_NEW + _AND_TELL)
# One whose external_id is taken fails them all.
RECORD_ALL = Prepared(b"record_all", _INSERT + _AND_TELL)


class NewSale(msgspec.Struct, frozen=True, gc=False):
    """A sale to insert, as `RECORD` takes it.

    With a customer to find, `profile` is the candidate for one who is not found; without, it is the profile itself.
    """

    id: bytes
    told: Sale
    store: bytes
    customer: str | None
    profile: bytes | None


class Kept(msgspec.Struct, frozen=True, gc=False):
    """The answer that is kept for a key, if the sale with this id goes in; its profile goes between the halves."""

    sale: bytes
    key: str
    fingerprint: bytes
    body: Split
    headers: Headers = ()


class Inserted(NamedTuple):
    """The sales that went in with their profiles, and the database's time."""

    profiles: dict[bytes, bytes | None]
    now: datetime


async def read_clock(connection: Connection) -> datetime:
    [moment] = await connection.fetch_row(_NOW, ())
    return read_timestamp(moment)


async def find_ids(
    connection: Connection, statement: Prepared, organization_id: UUID, names: Sequence[str]
) -> list[bytes | None]:
    [found] = await connection.fetch_row(statement, [organization_id.bytes, Texts(names).payload])
    return read_uuids(found)


async def find_first_stores(connection: Connection, organization_id: UUID) -> list[tuple[str, bytes]]:
    """The codes and ids of all stores, or of the first thousand."""
    result = await connection.run(_FIRST_STORES, [organization_id.bytes])
    return [
        ((result.get_value(row, 0) or b"").decode(), result.get_value(row, 1) or b"") for row in range(result.ntuples)
    ]


async def find_property_keys(connection: Connection, organization_id: UUID, keys: Sequence[str]) -> set[str]:
    result = await connection.run(_FIND_KEYS, [organization_id.bytes, Texts(keys).payload])
    return {(result.get_value(row, 0) or b"").decode() for row in range(result.ntuples)}


async def insert(
    connection: Connection,
    statement: Prepared,
    organization_id: UUID,
    sales: Sequence[NewSale],
    *,
    candidates: Sequence[tuple[bytes, str]],
    kept: Sequence[Kept],
    status: int,
    now: datetime,
) -> Inserted:
    values = (
        Texts([sale.customer for sale in sales]),
        Uuids([sale.profile for sale in sales]),
        *arrays(
            [sale.told for sale in sales],
            ids=[sale.id for sale in sales],
            stores=[sale.store for sale in sales],
        ),
        Uuids([identifier for identifier, _ in candidates]),
        Texts([name for _, name in candidates]),
    )
    database_now, ids, profiles = await connection.fetch_row(
        statement,
        [
            organization_id.bytes,
            timestamp(now),
            *[array.payload for array in values],
            status.to_bytes(2, "big"),
            Uuids([answer.sale for answer in kept]).payload,
            Texts([answer.key for answer in kept]).payload,
            Blobs([answer.fingerprint for answer in kept]).payload,
            Blobs([answer.body.head for answer in kept]).payload,
            Blobs([answer.body.tail for answer in kept]).payload,
            Texts([write_headers(answer.headers) for answer in kept]).payload,
            new_uuid().bytes,
            SalesRecorded.topic.encode(),
            new_uuid().bytes,
            ProfilesChanged.topic.encode(),
            format_timestamp(now).encode(),
            LIGHT_PROFILE,
            PROFILE.prefix.encode(),
        ],
    )
    went_in = (identifier for identifier in read_uuids(ids) if identifier is not None)
    return Inserted(dict(zip(went_in, read_uuids(profiles), strict=True)), read_timestamp(database_now))
