"""The SQL statements of the hot path, which records a batch of sales. Values are passed as encoded bytes; an id is its
sixteen bytes.

One statement inserts the sales of a batch, the profiles of new customers, the stored responses, and events for
listeners (facts) in the outbox. It has several forms (`StatementForm`), composed from the same parts.
"""

import re
from collections.abc import Container, Sequence
from datetime import datetime
from functools import cache
from typing import Final, LiteralString, NamedTuple
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
    encode_timestamp,
    read_timestamp,
    read_uuids,
)
from regulars.kit.clock import format_timestamp
from regulars.kit.columns import Columns
from regulars.kit.connection import Connection, Prepared
from regulars.kit.errors import Headers
from regulars.kit.ids import PROFILE, new_uuids
from regulars.profiles.facts import LIGHT_PROFILE_JSON_END, ProfilesChanged
from regulars.sales.encode import SplitResponse
from regulars.sales.facts import SalesRecorded
from regulars.sales.model import Sale

# The columns that have the same name as a field of `Sale`. `unit_millionths` is the quantity of all lines together.
SALE_COLUMNS: Final = Columns(
    external_id=Texts, type=Labels, occurred_at=Timestamps, currency=Labels, total_amount_cents=Bigints,
    total_discount_cents=Bigints, total_tax_cents=Bigints, source=Labels, payments=Jsons, loyalty=Jsons,
    metadata=Jsons, line_items=Jsons, unit_millionths=Bigints, line_count=Bigints,
)  # fmt: skip
_SALES_TOPIC: Final = SalesRecorded.topic.encode()
_PROFILES_TOPIC: Final = ProfilesChanged.topic.encode()
_PROFILE_PREFIX: Final = PROFILE.prefix.encode()
# The columns of `sales_events`, except organization, profile and time of creation, which each statement writes itself.
COLUMNS: Final[LiteralString] = "id, store_id, " + SALE_COLUMNS.names
_READ: Final = SALE_COLUMNS.read
_MAKERS: Final = SALE_COLUMNS.makers


def make_arrays(sales: Sequence[Sale], *, ids: Sequence[bytes], stores: Sequence[bytes]) -> tuple[BinaryArray, ...]:
    """Return the sales as one array for each of `COLUMNS`."""
    # The same as `Columns.of`, but without its two function calls, because this runs for every sale.
    columns = [make(values) for make, values in zip(_MAKERS, zip(*map(_READ, sales)))]  # noqa: B905
    return (Uuids(ids), Uuids(stores), *columns)


# External ids are looked up one at a time, for the reason that `sales/queries.py` gives. The result has an id, or null,
# for each external id in order.
_FIND_IDS: Final[LiteralString] = "SELECT ARRAY(SELECT (SELECT id FROM "
_WITH_EXTERNAL_ID: Final[LiteralString] = """
    WHERE organization_id = $1::uuid AND external_id = wanted.external_id)
    FROM unnest($2::text[]) WITH ORDINALITY AS wanted (external_id, ordinal) ORDER BY ordinal
)
"""

_FIND_PROPERTY_KEYS: Final[LiteralString] = """
SELECT found.key FROM unnest($2::text[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT key FROM product_properties WHERE organization_id = $1::uuid AND key = wanted.key LIMIT 1
) AS found
"""

# A row has either the external id of a customer to look up, or no customer and the id of the profile. If the customer
# is not found, the id in the row is a candidate, with which a profile is inserted. Customers and keys are inserted in a
# fixed order, so that two processes with the same customers or keys rarely deadlock; a deadlock is retried. The outbox
# row about new sales has the id of the first sale. The outbox row about new profiles has an id of its own, because no
# row may contain the id of a person who is erased.
#
# `now` is the caller's estimate of the database's time. If it is wrong by more than a second, no sale is inserted; the
# caller corrects its clock with the time in the result and takes the fallback path.
#
# `ORG` and `ROWS` are placeholders for the organization of a row and for the sales: `compose` replaces both.
_INSERT: Final[LiteralString] = (
    """
WITH inserted AS (
    INSERT INTO sales_events (organization_id, created_at, profile_id, """  # noqa: S608  # the names are ours
    + COLUMNS
    + """)
    SELECT ORG, %(now)s::timestamptz, COALESCE(p.found, i.candidate), """
    + COLUMNS
    + """
    FROM ROWS
    CROSS JOIN LATERAL (
        SELECT (SELECT id FROM profiles WHERE organization_id = ORG AND external_id = i.customer) AS found OFFSET 0
    ) AS p
    WHERE now() BETWEEN %(now)s - interval '1 second' AND %(now)s + interval '1 second'
"""
)
# Without the part that creates profiles, the sale of a customer who is not found is skipped.
_UNLESS_NEW_CUSTOMER: Final[LiteralString] = "    AND (i.customer IS NULL OR p.found IS NOT NULL)\n"
# In a batch of several organizations a used idempotency key drops only its own sale. A batch of one organization saves
# this look-up: a retry is dropped by the external_id of its ticket, and a key that was used for another ticket fails
# the batch. The look-up returns a value, because for EXISTS a plan that was made while the table was small may hash the
# whole table.
_UNLESS_KEY_USED: Final[LiteralString] = """
    AND (i.idempotency_key IS NULL OR (
        SELECT true FROM idempotency_keys WHERE organization_id = ORG AND key = i.idempotency_key
    ) IS NULL)
"""
_UNLESS_STORED: Final[LiteralString] = "ON CONFLICT (organization_id, external_id) DO NOTHING"
_CREATE_PROFILES: Final[LiteralString] = """, new_profiles AS (
    INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
    SELECT n.organization_id, n.id, n.external_id, %(now)s, %(now)s
    FROM unnest(%(candidate_organizations)s::uuid[], %(candidate_ids)s::uuid[], %(candidate_external_ids)s::text[])
        AS n (organization_id, id, external_id)
    WHERE n.id IN (SELECT profile_id FROM inserted)
    ORDER BY n.organization_id, n.external_id
    RETURNING organization_id, id, external_id
), fact_of_profiles AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT n.organization_id, f.id, %(profiles_topic)s::text,
        concat('[{"at":"', %(at)s::text, '","changes":[', string_agg(concat(
            '{"id":"', n.id, '","change":"created","shown":{"id":"', canonical_id(%(profile_prefix)s::text, n.id),
            '","external_id":', to_json(n.external_id), replace(%(profile_json_end)s::text, '{at}', %(at)s)
        ), ','), ']}]')::json, %(now)s, %(now)s
    FROM new_profiles n
    JOIN unnest(%(fact_organizations)s::uuid[], %(fact_ids)s::uuid[]) AS f (organization_id, id)
        ON f.organization_id = n.organization_id
    WHERE (
        SELECT true FROM interests WHERE organization_id = n.organization_id AND topic = %(profiles_topic)s LIMIT 1
    )
    GROUP BY n.organization_id, f.id
)"""
_STORE_RESPONSES: Final[LiteralString] = """, responses AS (
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, headers, created_at)
    SELECT ORG, k.key, k.fingerprint, %(status)s::smallint,
        k.head || COALESCE(convert_to(canonical_id(%(profile_prefix)s::text, i.profile_id), 'UTF8') || k.tail, ''),
        k.headers, %(now)s
    FROM unnest(%(keyed_sales)s::uuid[], %(keys)s::text[], %(fingerprints)s::bytea[], %(heads)s::bytea[],
        %(tails)s::bytea[], %(headers)s::text[]) AS k (sale_id, key, fingerprint, head, tail, headers)
    JOIN inserted i ON i.id = k.sale_id
    ORDER BY ORG, k.key
)"""
_PUBLISH_SALES: Final[LiteralString] = """, fact AS (
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT ORG, (array_agg(i.id))[1], %(sales_topic)s::text,
        json_build_array(json_build_object('sales', json_agg(i.id))), %(now)s, %(now)s
    FROM inserted i
    GROUP BY organization_id
)
SELECT now(), array_agg(id), array_agg(profile_id) FROM inserted
"""


# Replacements in the text for a batch of one organization, where the organization is a parameter and not a column.
_ORGANIZATION_AS_PARAMETER: Final = (
    ("%(candidate_organizations)s::uuid[], ", ""),
    ("n (organization_id, ", "n ("),
    ("n.organization_id", "%(organization)s::uuid"),
)


class StatementForm(NamedTuple):
    """Which parts the statement has. Each part costs PostgreSQL time before the first row, so a form has only the parts
    that its batch needs."""

    # Whether each row has its own organization; otherwise all rows have the same one, which is a parameter, because a
    # cluster (Citus) needs that.
    is_shared: bool = False
    # Whether there is only one sale, whose values are then parameters and not arrays.
    is_single: bool = False
    # Whether sales have idempotency keys.
    has_keys: bool = False
    # If false, the sale of a customer who does not exist yet is skipped.
    creates_profiles: bool = True
    # If false, a sale whose external_id is stored already fails the batch.
    skips_duplicates: bool = True


class _RecordStatement(NamedTuple):
    prepared: Prepared
    # The names of the parameters, in order.
    names: tuple[str, ...]


def _row_columns(form: StatementForm) -> list[tuple[str, str]]:
    """Return the columns of `ROWS`, with their types."""
    columns = [("customer", "text"), ("candidate", "uuid"), ("id", "uuid"), ("store_id", "uuid")]
    columns += [(name, array.type) for name, array in SALE_COLUMNS.kinds.items()]
    if form.is_shared:
        columns += [("organization_id", "uuid"), ("idempotency_key", "text")]
    return columns


@cache
def compose(form: StatementForm) -> _RecordStatement:
    """Compose the text of a form, with numbered parameters."""
    parts = [
        _INSERT,
        "" if form.creates_profiles else _UNLESS_NEW_CUSTOMER,
        _UNLESS_KEY_USED if form.is_shared and form.has_keys else "",
        _UNLESS_STORED if form.skips_duplicates else "",
        "\n    RETURNING organization_id, id, profile_id\n)",
        _CREATE_PROFILES if form.creates_profiles else "",
        _STORE_RESPONSES if form.has_keys else "",
        _PUBLISH_SALES,
    ]
    columns = _row_columns(form)
    values = ", ".join([f"%(row_{name})s::{kind}{'' if form.is_single else '[]'}" for name, kind in columns])
    source = f"(VALUES ({values}))" if form.is_single else f"unnest({values})"
    rows = f"{source} AS i ({', '.join([name for name, _ in columns])})"
    organization = "i.organization_id" if form.is_shared else "%(organization)s::uuid"
    text = "".join(parts).replace("ROWS", rows).replace("ORG", organization)
    if not form.is_shared:
        for in_row, as_parameter in _ORGANIZATION_AS_PARAMETER:
            text = text.replace(in_row, as_parameter)
    names: list[str] = []

    def number(parameter: "re.Match[str]") -> str:
        if parameter[1] not in names:
            names.append(parameter[1])
        return f"${names.index(parameter[1]) + 1}"

    numbered = _PARAMETER.sub(number, text)
    return _RecordStatement(Prepared(repr(form).encode(), numbered), tuple(names))


_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_NOW = Prepared(b"now", "SELECT now()")
_FIRST_STORES = Prepared(
    b"first_stores", "SELECT external_id, id FROM stores WHERE organization_id = $1::uuid ORDER BY id LIMIT 1000"
)
FIND_PROFILES = Prepared(b"find_profiles", _FIND_IDS + "profiles" + _WITH_EXTERNAL_ID)
FIND_STORES = Prepared(b"find_stores", _FIND_IDS + "stores" + _WITH_EXTERNAL_ID)
_FIND_KEYS = Prepared(b"find_property_keys", _FIND_PROPERTY_KEYS)


class NewSale(msgspec.Struct, frozen=True, gc=False):
    """A sale to insert.

    If `customer` (an external id) is set, the statement looks it up, and `profile` is the id of the profile to create
    if it is not found. Otherwise `profile` is the id of the customer's profile, or None for an anonymous sale.
    """

    organization: bytes
    id: bytes
    ticket: Sale
    store: bytes
    customer: str | None
    profile: bytes | None


class KeyedResponse(msgspec.Struct, frozen=True, gc=False):
    """The response to store for an idempotency key if the sale with this id is inserted."""

    sale: bytes
    key: str
    fingerprint: bytes
    body: SplitResponse
    headers: Headers = ()


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """The profile to create if the customer with this external id does not exist."""

    organization: bytes
    id: bytes
    external_id: str


class NewRows(msgspec.Struct, frozen=True, gc=False):
    """Sales to insert, the profiles of customers who may be new, and the responses to store."""

    sales: Sequence[NewSale]
    candidates: Sequence[Candidate]
    responses: Sequence[KeyedResponse]
    now: datetime

    def without(self, inserted: Container[bytes]) -> "NewRows":
        """Return the rows that remain when these sales are inserted."""
        return NewRows(
            [sale for sale in self.sales if sale.id not in inserted],
            self.candidates,
            [response for response in self.responses if response.sale not in inserted],
            self.now,
        )


class InsertResult(NamedTuple):
    """The ids of the inserted sales, each with the id of its profile, and the database's time."""

    profile_by_sale: dict[bytes, bytes | None]
    now: datetime


async def read_clock(connection: Connection) -> datetime:
    [moment] = await connection.fetch_row(_NOW, ())
    return read_timestamp(moment)


async def find_ids(
    connection: Connection, statement: Prepared, organization_id: UUID, external_ids: Sequence[str]
) -> list[bytes | None]:
    [ids] = await connection.fetch_row(statement, [organization_id.bytes, Texts(external_ids).payload])
    return read_uuids(ids)


async def find_first_stores(connection: Connection, organization_id: UUID) -> list[tuple[str, bytes]]:
    """Return the external ids and ids of all stores, or of the first thousand."""
    result = await connection.run(_FIRST_STORES, [organization_id.bytes])
    return [
        ((result.get_value(row, 0) or b"").decode(), result.get_value(row, 1) or b"") for row in range(result.ntuples)
    ]


async def find_property_keys(connection: Connection, organization_id: UUID, keys: Sequence[str]) -> set[str]:
    result = await connection.run(_FIND_KEYS, [organization_id.bytes, Texts(keys).payload])
    return {(result.get_value(row, 0) or b"").decode() for row in range(result.ntuples)}


async def insert(connection: Connection, form: StatementForm, new: NewRows, *, status: int) -> InsertResult:
    statement = compose(form)
    values = _make_parameters(form, new, status=status)
    result = await connection.run(statement.prepared, [values[name] for name in statement.names])
    now, ids, profiles = [result.get_value(0, column) or b"" for column in range(3)]
    inserted = (identifier for identifier in read_uuids(ids) if identifier is not None)
    return InsertResult(dict(zip(inserted, read_uuids(profiles), strict=True)), read_timestamp(now))


def _make_parameters(form: StatementForm, new: NewRows, *, status: int) -> dict[str, bytes | None]:
    """Return the encoded parameters of a form, by name."""
    sales, stored, candidates = new.sales, new.responses, new.candidates
    rows = (
        Texts([sale.customer for sale in sales]),
        Uuids([sale.profile for sale in sales]),
        *make_arrays(
            [sale.ticket for sale in sales], ids=[sale.id for sale in sales], stores=[sale.store for sale in sales]
        ),
    )
    values: dict[str, bytes | None] = {
        "organization": sales[0].organization,
        "now": encode_timestamp(new.now),
        "sales_topic": _SALES_TOPIC,
        "profile_prefix": _PROFILE_PREFIX,
        **{
            name: array.only_element() if form.is_single else array.payload
            for name, array in zip(_ROW_PARAMETERS, rows, strict=True)
        },
    }
    if form.creates_profiles:
        # Each organization gets at most one outbox row about new profiles.
        organizations = list({candidate.organization: None for candidate in candidates})
        values |= {
            "candidate_ids": Uuids([candidate.id for candidate in candidates]).payload,
            "candidate_external_ids": Texts([candidate.external_id for candidate in candidates]).payload,
            "profiles_topic": _PROFILES_TOPIC,
            "at": format_timestamp(new.now).encode(),
            "profile_json_end": LIGHT_PROFILE_JSON_END,
            "fact_organizations": Uuids(organizations).payload,
            "fact_ids": Uuids(new_uuids(len(organizations))).payload,
        }
    if form.is_shared:
        keys = {response.sale: response.key for response in stored}
        values["row_organization_id"] = Uuids([sale.organization for sale in sales]).payload
        values["row_idempotency_key"] = Texts([keys.get(sale.id) for sale in sales]).payload
        values["candidate_organizations"] = Uuids([candidate.organization for candidate in candidates]).payload
    if form.has_keys:
        values |= {
            "status": status.to_bytes(2, "big"),
            "keyed_sales": Uuids([response.sale for response in stored]).payload,
            "keys": Texts([response.key for response in stored]).payload,
            "fingerprints": Blobs([response.fingerprint for response in stored]).payload,
            "heads": Blobs([response.body.head for response in stored]).payload,
            "tails": Blobs([response.body.tail for response in stored]).payload,
            "headers": Texts([write_headers(response.headers) for response in stored]).payload,
        }
    return values


_ROW_PARAMETERS: Final = [f"row_{name}" for name, _ in _row_columns(StatementForm())]
