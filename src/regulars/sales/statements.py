"""The statements of the hot path. Values travel as finished bytes, and ids are their sixteen bytes.

A batch of sales is one statement over arrays: the sales, and what hangs on each that went in. It names its organization
by a parameter, as statements do; or the batches of several organizations are one statement together, in which each row
names its own. That one is not for a cluster.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

import msgspec

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
    read_timestamp,
    read_uuids,
    timestamp,
)
from regulars.kit.clock import format_timestamp
from regulars.kit.connection import Connection, Prepared
from regulars.kit.errors import Headers
from regulars.kit.ids import PROFILE, new_uuids
from regulars.profiles.facts import ProfilesChanged
from regulars.profiles.tell import LIGHT_PROFILE
from regulars.sales.encode import Split
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale


class _Told(NamedTuple):
    """A column of what a caller told of a sale: named like the field of `Sale` it comes from."""

    name: LiteralString
    # How they travel.
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
_SALES_TOPIC: Final = SalesRecorded.topic.encode()
_PROFILES_TOPIC: Final = ProfilesChanged.topic.encode()
_PROFILE_PREFIX: Final = PROFILE.prefix.encode()
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
# profile that came along, which is then a candidate. Customers and keys go in in their order, so that two processes
# that share some seldom wait for each other crosswise; a deadlock is run again. A fact of sales has the id of the first
# of them; one of profiles has its own, since nothing may keep the id of a person who is erased.
_INSERT: Final[LiteralString] = (
    """
WITH inserted AS (
    INSERT INTO sales_events (organization_id, created_at, profile_id, """  # noqa: S608  # the names are ours
    + COLUMNS
    + """)
    SELECT i.organization_id, $2::timestamptz, COALESCE((
            SELECT id FROM profiles WHERE organization_id = i.organization_id AND external_id = i.customer
        ), i.candidate), """
    + COLUMNS
    + """
    FROM unnest($1::uuid[], $36::text[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::text[], $8::text[],
        $9::timestamptz[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::json[],
        $16::json[], $17::json[], $18::json[]) AS i (organization_id, idempotency_key, customer, candidate, """
    + COLUMNS
    + """)
    WHERE now() BETWEEN $2 - interval '1 second' AND $2 + interval '1 second'
"""
)
_IF_NEW: Final[LiteralString] = "ON CONFLICT (organization_id, external_id) DO NOTHING"
_AND_TELL: Final[LiteralString] = """
    RETURNING organization_id, id, profile_id
), new_profiles AS (
    INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
    SELECT n.organization_id, n.id, n.external_id, $2, $2
    FROM unnest($35::uuid[], $19::uuid[], $20::text[]) AS n (organization_id, id, external_id)
    WHERE n.id IN (SELECT profile_id FROM inserted)
    ORDER BY n.organization_id, n.external_id
    RETURNING organization_id, id, external_id
), answers AS (
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, headers, created_at)
    SELECT i.organization_id, k.key, k.fingerprint, $21::smallint,
        k.head || COALESCE(convert_to(canonical_id($31::text, i.profile_id), 'UTF8') || k.tail, ''), k.headers, $2
    FROM unnest($22::uuid[], $23::text[], $24::bytea[], $25::bytea[], $26::bytea[], $27::text[])
        AS k (sale_id, key, fingerprint, head, tail, headers)
    JOIN inserted i ON i.id = k.sale_id
    ORDER BY i.organization_id, k.key
), fact AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT i.organization_id, (array_agg(i.id))[1], $28::text,
        json_build_array(json_build_object('sales', json_agg(i.id))), $2, $2
    FROM inserted i
    GROUP BY organization_id
), fact_of_profiles AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT n.organization_id, f.id, $29::text,
        concat('[{"at":"', $30::text, '","changes":[', string_agg(concat(
            '{"id":"', n.id, '","change":"created","shown":{"id":"', canonical_id($31, n.id),
            '","external_id":', to_json(n.external_id), replace($32::text, '{at}', $30)
        ), ','), ']}]')::json, $2, $2
    FROM new_profiles n
    JOIN unnest($33::uuid[], $34::uuid[]) AS f (organization_id, id) ON f.organization_id = n.organization_id
    WHERE (SELECT true FROM interests WHERE organization_id = n.organization_id AND topic = $29 LIMIT 1)
    GROUP BY n.organization_id, f.id
)
SELECT now(), array_agg(id), array_agg(profile_id) FROM inserted
"""

# A key that is taken leaves its sale out, so that it fails nobody. Of one organization that would cost every batch a
# look for each key: there a retry is left out by its ticket's own id, and a key with another ticket fails them all.
# It is asked for a value, as interest is: what is asked whether it exists may be looked for in a hash of the whole
# table, by a plan that was made while the table was small.
_UNLESS_ANSWERED: Final[LiteralString] = """
    AND (i.idempotency_key IS NULL OR (
        SELECT true FROM idempotency_keys WHERE organization_id = i.organization_id AND key = i.idempotency_key
    ) IS NULL)
"""
_OF_ONE: Final = (
    ("unnest($1::uuid[], $36::text[], ", "unnest("),
    ("unnest($35::uuid[], ", "unnest("),
    ("i (organization_id, idempotency_key, ", "i ("),
    ("n (organization_id, ", "n ("),
    ("i.organization_id", "$1::uuid"),
    ("n.organization_id", "$1::uuid"),
)


def _of_one(text: LiteralString) -> LiteralString:
    """The same where all rows are one organization's, which is a parameter then."""
    for row_s_own, parameter in _OF_ONE:
        text = text.replace(row_s_own, parameter)
    return text


_NOW = Prepared(b"now", "SELECT now()")
_FIRST_STORES = Prepared(
    b"first_stores", "SELECT external_id, id FROM stores WHERE organization_id = $1::uuid ORDER BY id LIMIT 1000"
)
FIND_PROFILES = Prepared(b"find_profiles", _FIND_IDS + "profiles" + _BY_NAME)
FIND_STORES = Prepared(b"find_stores", _FIND_IDS + "stores" + _BY_NAME)
_FIND_KEYS = Prepared(b"find_property_keys", _FIND_PROPERTY_KEYS)
# Those whose external_id is taken are left out.
RECORD = Prepared(b"record", _of_one(_INSERT + _IF_NEW + _AND_TELL))
RECORD_TOGETHER = Prepared(b"record_together", _INSERT + _UNLESS_ANSWERED + _IF_NEW + _AND_TELL)
# One whose external_id is taken fails them all.
RECORD_ALL = Prepared(b"record_all", _of_one(_INSERT + _AND_TELL))


class NewSale(msgspec.Struct, frozen=True, gc=False):
    """A sale to insert.

    With a customer to find, `profile` is the candidate for one who is not found; without, it is the profile itself.
    """

    organization: bytes
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


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """The profile of a customer who may be new."""

    organization: bytes
    id: bytes
    name: str


class New(msgspec.Struct, frozen=True, gc=False):
    """Sales to insert, the profiles of customers who may be new, and the answers to keep."""

    sales: Sequence[NewSale]
    candidates: Sequence[Candidate]
    kept: Sequence[Kept]
    now: datetime


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


async def insert(connection: Connection, statement: Prepared, new: New, *, status: int) -> Inserted:
    result = await connection.run(statement, _values(new, status=status, together=statement is RECORD_TOGETHER))
    now, ids, profiles = [result.get_value(0, column) or b"" for column in range(3)]
    went_in = (identifier for identifier in read_uuids(ids) if identifier is not None)
    return Inserted(dict(zip(went_in, read_uuids(profiles), strict=True)), read_timestamp(now))


def _values(new: New, *, status: int, together: bool) -> list[bytes]:
    sales, kept, candidates = new.sales, new.kept, new.candidates
    # Each may have a fact of its new profiles.
    whose = list({candidate.organization: None for candidate in candidates})
    organizations = Uuids([sale.organization for sale in sales]).payload if together else sales[0].organization
    values = (
        Texts([sale.customer for sale in sales]),
        Uuids([sale.profile for sale in sales]),
        *arrays(
            [sale.told for sale in sales],
            ids=[sale.id for sale in sales],
            stores=[sale.store for sale in sales],
        ),
        Uuids([candidate.id for candidate in candidates]),
        Texts([candidate.name for candidate in candidates]),
    )
    asked = [
        organizations,
        timestamp(new.now),
        *[array.payload for array in values],
        status.to_bytes(2, "big"),
        Uuids([answer.sale for answer in kept]).payload,
        Texts([answer.key for answer in kept]).payload,
        Blobs([answer.fingerprint for answer in kept]).payload,
        Blobs([answer.body.head for answer in kept]).payload,
        Blobs([answer.body.tail for answer in kept]).payload,
        Texts([write_headers(answer.headers) for answer in kept]).payload,
        _SALES_TOPIC,
        _PROFILES_TOPIC,
        format_timestamp(new.now).encode(),
        _PROFILE_PREFIX,
        LIGHT_PROFILE,
        Uuids(whose).payload,
        Uuids(new_uuids(len(whose))).payload,
    ]
    if together:
        keys = {answer.sale: answer.key for answer in kept}
        asked.append(Uuids([candidate.organization for candidate in candidates]).payload)
        asked.append(Texts([keys.get(sale.id) for sale in sales]).payload)
    return asked
