"""The statements of the hot path. Values travel as finished bytes, and ids are their sixteen bytes.

A batch of sales is one wide statement over arrays. What that costs before its first row is as much as several rows, so
one or a few sales are written by small statements instead, which run together in one transaction: first the sales, and
then what hangs on a sale that went in. Both leave the same rows.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import msgspec
from psycopg.pq.abc import PGresult

from regulars.idempotency.model import write_headers
from regulars.kit.arrays import (
    Bigints,
    BinaryArray,
    Blobs,
    Jsons,
    Labels,
    Texts,
    Timestamps,
    Uuids,
    bigint,
    read_timestamp,
    read_uuids,
    text,
    timestamp,
)
from regulars.kit.clock import format_timestamp
from regulars.kit.connection import Asked, Connection, Prepared
from regulars.kit.errors import Headers
from regulars.kit.ids import PROFILE, new_uuid, new_uuids
from regulars.profiles.facts import ProfilesChanged
from regulars.profiles.tell import LIGHT_PROFILE
from regulars.sales.encode import Split
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale


class _Told(NamedTuple):
    """A column of what a caller told of a sale: named like the field of `Sale` it comes from."""

    name: LiteralString
    # How many of them travel, and how one does.
    array: Callable[[list[Any]], BinaryArray]
    value: Callable[[Any], bytes | None]


def _as_it_is(document: bytes | None) -> bytes | None:
    return document


TOLD: Final = (
    _Told("external_id", Texts, text),
    _Told("type", Labels, text),
    _Told("occurred_at", Timestamps, timestamp),
    _Told("currency", Labels, text),
    _Told("total_amount_cents", Bigints, bigint),
    _Told("total_discount_cents", Bigints, bigint),
    _Told("total_tax_cents", Bigints, bigint),
    _Told("source", Labels, text),
    _Told("payments", Jsons, _as_it_is),
    _Told("loyalty", Jsons, _as_it_is),
    _Told("metadata", Jsons, _as_it_is),
    _Told("line_items", Jsons, _as_it_is),
)
# Up to so many sales are cheaper by statements of their own.
SMALL_SALES_MAX: Final = 3
_SALES_TOPIC: Final = SalesRecorded.topic.encode()
_PROFILES_TOPIC: Final = ProfilesChanged.topic.encode()
_PROFILE_PREFIX: Final = PROFILE.prefix.encode()
# Facts of one sale and of one profile, as the wide statement writes those of many; the last part is `LIGHT_PROFILE`.
_SALE_TOLD: Final = b'[{"sales":["%b"]}]'
_PROFILE_TOLD: Final = b'[{"at":"%b","changes":[{"id":"%b","change":"created","shown":{"id":"%b","external_id":%b%b]}]'
# Beside these a row has its organization, its profile, and the time it was created at.
COLUMNS: Final[LiteralString] = ", ".join(["id", "store_id", *[column.name for column in TOLD]])
_ARRAYS: Final = [(column.array, attrgetter(column.name)) for column in TOLD]
_VALUES: Final = [(column.value, attrgetter(column.name)) for column in TOLD]


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

# One sale, its customer looked up as above. With a key, it goes in only if that is not taken: a key that is would fail
# all that runs together with it.
_INSERT_ONE: Final[LiteralString] = (
    "INSERT INTO sales_events (organization_id, created_at, profile_id, "  # noqa: S608  # the names are ours
    + COLUMNS
    + """)
    SELECT $1::uuid, $2::timestamptz,
        COALESCE((SELECT id FROM profiles WHERE organization_id = $1 AND external_id = $3::text), $4::uuid),
        $5::uuid, $6::uuid, $7::text, $8::text, $9::timestamptz, $10::text, $11::bigint, $12::bigint, $13::bigint,
        $14::text, $15::json, $16::json, $17::json, $18::json
    WHERE now() BETWEEN $2 - interval '1 second' AND $2 + interval '1 second'
"""
)
_UNLESS_ANSWERED: Final[LiteralString] = """
    AND NOT EXISTS (SELECT FROM idempotency_keys WHERE organization_id = $1 AND key = $19::text)
"""
_RETURNING: Final[LiteralString] = " RETURNING now(), profile_id"
_INSERT_PROFILE: Final[LiteralString] = """
INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
SELECT $1::uuid, $3::uuid, $4::text, $2::timestamptz, $2
WHERE EXISTS (SELECT FROM sales_events WHERE organization_id = $1 AND profile_id = $3)
"""
_INSERT_ANSWER: Final[LiteralString] = """
INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, headers, created_at)
SELECT $1::uuid, $3::text, $4::bytea, $5::smallint,
    $6::bytea || COALESCE(convert_to(canonical_id($10::text, profile_id), 'UTF8') || $7::bytea, ''), $8::text,
    $2::timestamptz
FROM sales_events WHERE organization_id = $1 AND id = $9::uuid
"""
_INSERT_FACT: Final[LiteralString] = """
INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
SELECT $1::uuid, $3::uuid, $4::text, $5::json, $2::timestamptz, $2
FROM sales_events WHERE organization_id = $1 AND id = $6::uuid
"""
_INSERT_FACT_OF_PROFILE: Final[LiteralString] = """
INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
SELECT $1::uuid, $3::uuid, $4::text, $5::json, $2::timestamptz, $2
FROM profiles WHERE organization_id = $1 AND id = $6::uuid
    AND EXISTS (SELECT FROM interests WHERE organization_id = $1 AND topic = $4)
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
_RECORD_ONE = Prepared(b"record_one", _INSERT_ONE + _IF_NEW + _RETURNING)
_RECORD_ONE_WITH_KEY = Prepared(b"record_one_with_key", _INSERT_ONE + _UNLESS_ANSWERED + _IF_NEW + _RETURNING)
_ADD_PROFILE = Prepared(b"add_profile", _INSERT_PROFILE)
_KEEP_ANSWER = Prepared(b"keep_answer", _INSERT_ANSWER)
_TELL_SALE = Prepared(b"tell_sale", _INSERT_FACT)
_TELL_PROFILE = Prepared(b"tell_profile", _INSERT_FACT_OF_PROFILE)


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


class New(msgspec.Struct, frozen=True, gc=False):
    """Sales of one organization to insert, the profiles of customers who may be new, and the answers to keep."""

    organization_id: UUID
    sales: Sequence[NewSale]
    candidates: Sequence[tuple[bytes, str]]
    kept: Sequence[Kept]
    now: datetime


class Inserted(NamedTuple):
    """The sales that went in with their profiles, and the database's time where it is known."""

    profiles: dict[bytes, bytes | None]
    now: datetime | None


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


async def insert(connection: Connection, statement: Prepared, new: New, *, status: int) -> Inserted:
    """By one wide statement."""
    return _read_wide(await connection.run(*_ask_wide(statement, new, status=status)))


async def insert_together(connection: Connection, news: Sequence[New], *, status: int) -> list[Inserted]:
    """Those of several organizations in one transaction, each by the wide statement or by small ones."""
    if len(news) == 1 and len(news[0].sales) > SMALL_SALES_MAX:
        return [await insert(connection, RECORD, news[0], status=status)]
    asked = [
        _ask_small(new, status=status) if len(new.sales) <= SMALL_SALES_MAX else [_ask_wide(RECORD, new, status=status)]
        for new in news
    ]
    results = iter(await connection.run_together([one for some in asked for one in some]))
    inserted: list[Inserted] = []
    for new, some in zip(news, asked, strict=True):
        own = [next(results) for _ in some]
        inserted.append(_read_small(new, own) if len(new.sales) <= SMALL_SALES_MAX else _read_wide(own[0]))
    return inserted


def _ask_wide(statement: Prepared, new: New, *, status: int) -> Asked:
    sales, kept = new.sales, new.kept
    values = (
        Texts([sale.customer for sale in sales]),
        Uuids([sale.profile for sale in sales]),
        *arrays(
            [sale.told for sale in sales],
            ids=[sale.id for sale in sales],
            stores=[sale.store for sale in sales],
        ),
        Uuids([identifier for identifier, _ in new.candidates]),
        Texts([name for _, name in new.candidates]),
    )
    return (
        statement,
        [
            new.organization_id.bytes,
            timestamp(new.now),
            *[array.payload for array in values],
            status.to_bytes(2, "big"),
            Uuids([answer.sale for answer in kept]).payload,
            Texts([answer.key for answer in kept]).payload,
            Blobs([answer.fingerprint for answer in kept]).payload,
            Blobs([answer.body.head for answer in kept]).payload,
            Blobs([answer.body.tail for answer in kept]).payload,
            Texts([write_headers(answer.headers) for answer in kept]).payload,
            new_uuid().bytes,
            _SALES_TOPIC,
            new_uuid().bytes,
            _PROFILES_TOPIC,
            format_timestamp(new.now).encode(),
            LIGHT_PROFILE,
            _PROFILE_PREFIX,
        ],
    )


def _read_wide(result: PGresult) -> Inserted:
    now, ids, profiles = [result.get_value(0, column) or b"" for column in range(3)]
    went_in = (identifier for identifier in read_uuids(ids) if identifier is not None)
    return Inserted(dict(zip(went_in, read_uuids(profiles), strict=True)), read_timestamp(now))


def _ask_small(new: New, *, status: int) -> list[Asked]:
    """All sales first, then all profiles and all keys, each in their order: two processes that share some of them do
    not wait for each other crosswise."""
    whose = (new.organization_id.bytes, timestamp(new.now))
    keys = {answer.sale: answer.key for answer in new.kept}
    asked: list[Asked] = []
    for sale in new.sales:
        values = [*whose, text(sale.customer), sale.profile, sale.id, sale.store]
        values += [value(get(sale.told)) for value, get in _VALUES]
        key = keys.get(sale.id)
        asked.append((_RECORD_ONE, values) if key is None else (_RECORD_ONE_WITH_KEY, [*values, key.encode()]))
    for profile, name in new.candidates:
        asked.append((_ADD_PROFILE, (*whose, profile, name.encode())))
    for answer in new.kept:
        body = answer.body
        kept = (answer.key.encode(), answer.fingerprint, status.to_bytes(2, "big"), body.head, body.tail)
        headers = text(write_headers(answer.headers))
        asked.append((_KEEP_ANSWER, (*whose, *kept, headers, answer.sale, _PROFILE_PREFIX)))
    facts = new_uuids(len(new.sales) + len(new.candidates))
    for fact, sale in zip(facts, new.sales, strict=False):
        asked.append((_TELL_SALE, (*whose, fact, _SALES_TOPIC, _SALE_TOLD % _written(sale.id), sale.id)))
    for fact, told, (profile, _) in zip(facts[len(new.sales) :], _tell_profiles(new), new.candidates, strict=True):
        asked.append((_TELL_PROFILE, (*whose, fact, _PROFILES_TOPIC, told, profile)))
    return asked


def _tell_profiles(new: New) -> list[bytes]:
    """What would be told of each of the candidates, as `tell_light_profiles` does it."""
    moment = format_timestamp(new.now).encode()
    rest = LIGHT_PROFILE.replace(b"{at}", moment)
    shown_ids = PROFILE.spell([profile for profile, _ in new.candidates])
    return [
        _PROFILE_TOLD % (moment, _written(profile), shown_id.encode(), msgspec.json.encode(name), rest)
        for (profile, name), shown_id in zip(new.candidates, shown_ids, strict=True)
    ]


def _written(identifier: bytes) -> bytes:
    return str(UUID(bytes=identifier)).encode()


def _read_small(new: New, results: Sequence[PGresult]) -> Inserted:
    profiles: dict[bytes, bytes | None] = {}
    now = None
    for sale, result in zip(new.sales, results, strict=False):
        if result.ntuples:
            now = result.get_value(0, 0)
            profiles[sale.id] = result.get_value(0, 1)
    return Inserted(profiles, None if now is None else read_timestamp(now))
