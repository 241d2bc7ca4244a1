"""The SQL statements of the hot path, which records a batch of sales. Values are passed as encoded bytes; an id is its
sixteen bytes.

One statement inserts the sales of a batch, the profiles of new customers, the stored responses, and events for
listeners (facts) in the outbox. `compose` writes its text from a source of rows and the parts that the batch needs.
Each part costs PostgreSQL time before the first row, so a batch takes no other parts.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final, LiteralString, NamedTuple

import msgspec

from regulars.idempotency.model import write_headers
from regulars.kit.arrays import (
    SINGLE_ENCODERS,
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
from regulars.kit.columns import Columns, fill
from regulars.kit.connection import Connection, Prepared
from regulars.kit.errors import Headers
from regulars.kit.ids import PROFILE, new_uuids
from regulars.profiles.facts import LIGHT_PROFILE_JSON_END, ProfilesChanged
from regulars.sales.encode import ReferenceOut, SplitResponse
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


class Store(NamedTuple):
    """A store that sales refer to, and how responses name it."""

    id: bytes
    reference: ReferenceOut


class NewSale(msgspec.Struct, frozen=True, gc=False):
    """A sale to insert, and its position in the list that the caller passed.

    If `customer` (an external id) is set, the statement looks it up, and `profile` is the id of the profile to create
    if it is not found. Otherwise `profile` is the id of the customer's profile, or None for an anonymous sale.
    """

    position: int
    organization: bytes
    id: bytes
    ticket: Sale
    store: Store
    customer: str | None
    profile: bytes | None


class KeyedResponse(msgspec.Struct, frozen=True, gc=False):
    """The response to store for an idempotency key if this sale is inserted."""

    sale: NewSale
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
    """Sales to insert, the profiles of customers who may be new, and the responses to store with their status."""

    sales: Sequence[NewSale]
    candidates: Sequence[Candidate]
    responses: Sequence[KeyedResponse]
    now: datetime
    status: int

    def without(self, inserted: Container[bytes]) -> "NewRows":
        """Return the rows that remain when these sales are inserted."""
        return NewRows(
            [sale for sale in self.sales if sale.id not in inserted],
            self.candidates,
            [response for response in self.responses if response.sale.id not in inserted],
            self.now,
            self.status,
        )


class InsertResult(NamedTuple):
    """The ids of the inserted sales, each with the id of its profile, and the database's time."""

    profile_by_sale: dict[bytes, bytes | None]
    now: datetime


Values = Mapping[str, bytes | None]


@dataclass(frozen=True, eq=False, slots=True)
class Source:
    """Where the statement takes its sales from: the table `it` in its text, the organization of a row of `it`, and the
    encoded values of the table."""

    rows: LiteralString
    organization: LiteralString
    values: Callable[[NewRows], Values]


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A part of the statement, with the encoded values of its own placeholders: with a name, an INSERT that reads the
    inserted sales or an earlier part; without one, the end of the INSERT of the sales.

    `{organization}` is the organization of a row of the table that the part calls `it`.
    """

    name: LiteralString
    text: LiteralString
    values: Callable[[NewRows], Values] = lambda _: {}


_OF_TICKET: Final = {name: (kind, "ticket." + name) for name, kind in SALE_COLUMNS.kinds.items()}
_ROWS: Final = Columns(
    customer=Texts, candidate=(Uuids, "profile"), id=Uuids, store_id=(Uuids, "store.id"), **_OF_TICKET
)
_ROWS_OF_SEVERAL: Final = _ROWS | Columns(organization_id=Uuids)
_ONE_ROW: Final[LiteralString] = ", ".join(["%(" + name + ")s::" + kind.type for name, kind in _ROWS.kinds.items()])
_ENCODERS_OF_ONE: Final = [(name, SINGLE_ENCODERS[kind]) for name, kind in _ROWS.kinds.items()]


def _values_of_one(new: NewRows) -> Values:
    [sale] = new.sales
    row = zip(_ENCODERS_OF_ONE, _ROWS.read(sale), strict=True)
    values = {name: None if value is None else encode(value) for (name, encode), value in row}
    return {**values, "organization": sale.organization}


def _values_of_rows(new: NewRows) -> Values:
    values = {name: array.payload for name, array in _ROWS.of(new.sales).items()}
    return {**values, "organization": new.sales[0].organization}


def _values_of_several(new: NewRows) -> Values:
    organizations = Uuids([sale.organization for sale in new.sales])
    return {**_values_of_rows(new), "organization_id": organizations.payload}


def _fact_values(new: NewRows) -> Values:
    """Return the values of the outbox rows about new profiles, of which each organization gets at most one."""
    organizations = list({candidate.organization: None for candidate in new.candidates})
    return {
        "profiles_topic": _PROFILES_TOPIC,
        "profile_prefix": _PROFILE_PREFIX,
        "at": format_timestamp(new.now).encode(),
        "profile_json_end": LIGHT_PROFILE_JSON_END,
        "fact_organizations": Uuids(organizations).payload,
        "fact_ids": Uuids(new_uuids(len(organizations))).payload,
    }


# The organization is a parameter where all sales have the same one, because a cluster (Citus) needs that.
_ONE_ORGANIZATION: Final[LiteralString] = "%(organization)s::uuid"
ONE_SALE: Final = Source("(VALUES (" + _ONE_ROW + ")) AS it (" + _ROWS.names + ")", _ONE_ORGANIZATION, _values_of_one)
SALES: Final = Source(_ROWS.rows, _ONE_ORGANIZATION, _values_of_rows)
SALES_OF_SEVERAL: Final = Source(_ROWS_OF_SEVERAL.rows, "it.organization_id", _values_of_several)

# A row has either the external id of a customer to look up, or no customer and the id of the profile. If the customer
# is not found, the id in the row is a candidate, with which a profile is inserted. Customers and keys are inserted in a
# fixed order, so that two processes with the same customers or keys rarely deadlock; a deadlock is retried. The outbox
# row about new sales has the id of the first sale. The outbox row about new profiles has an id of its own, because no
# row may contain the id of a person who is erased.
#
# `now` is the caller's estimate of the database's time. If it is wrong by more than a second, no sale is inserted; the
# caller corrects its clock with the time in the result and takes the fallback path.
_INSERT_SALES: Final = Part(
    "inserted",
    """
    INSERT INTO sales_events (organization_id, created_at, profile_id, {columns})
    SELECT {organization}, %(now)s::timestamptz, COALESCE(p.found, it.candidate), {columns}
    FROM {rows}
    CROSS JOIN LATERAL (
        SELECT (SELECT id FROM profiles WHERE organization_id = {organization} AND external_id = it.customer) AS found
        OFFSET 0
    ) AS p
    WHERE now() BETWEEN %(now)s - interval '1 second' AND %(now)s + interval '1 second'
{end}
    RETURNING organization_id, id, profile_id
""",
    lambda new: {"now": encode_timestamp(new.now)},
)
# For a batch without `NEW_PROFILES`: the sale of a customer who is not found is skipped.
KNOWN_CUSTOMERS: Final = Part("", "    AND (it.customer IS NULL OR p.found IS NOT NULL)\n")
# With `STORE_RESPONSES`: a used idempotency key drops only its own sale; otherwise it fails the batch. Used keys are
# found once for the statement. The look-up returns a value, because for EXISTS a plan that was made while the table was
# small may hash the whole table.
UNUSED_KEYS: Final = Part(
    "",
    """    AND it.id <> ALL (ARRAY(
        SELECT it.sale_id
        FROM unnest(%(keyed_organizations)s::uuid[], %(keyed_sales)s::uuid[], %(keys)s::text[])
            AS it (organization_id, sale_id, key)
        WHERE (SELECT true FROM idempotency_keys WHERE organization_id = {organization} AND key = it.key)
    ))
""",
    lambda new: {"keyed_organizations": Uuids([response.sale.organization for response in new.responses]).payload},
)
# Otherwise a sale whose external_id is stored already fails the batch.
SKIP_STORED: Final = Part("", "    ON CONFLICT (organization_id, external_id) DO NOTHING")
_CREATE_PROFILES: Final = Part(
    "new_profiles",
    """
    INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
    SELECT {organization}, it.id, it.external_id, %(now)s, %(now)s
    FROM unnest(%(candidate_organizations)s::uuid[], %(candidate_ids)s::uuid[], %(candidate_external_ids)s::text[])
        AS it (organization_id, id, external_id)
    WHERE it.id IN (SELECT profile_id FROM inserted)
    ORDER BY {organization}, it.external_id
    RETURNING organization_id, id, external_id
""",
    lambda new: {
        "candidate_organizations": Uuids([candidate.organization for candidate in new.candidates]).payload,
        "candidate_ids": Uuids([candidate.id for candidate in new.candidates]).payload,
        "candidate_external_ids": Texts([candidate.external_id for candidate in new.candidates]).payload,
    },
)
_PUBLISH_PROFILES: Final = Part(
    "fact_of_profiles",
    """
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT {organization}, f.id, %(profiles_topic)s::text,
        concat('[{"at":"', %(at)s::text, '","changes":[', string_agg(concat(
            '{"id":"', it.id, '","change":"created","shown":{"id":"', canonical_id(%(profile_prefix)s::text, it.id),
            '","external_id":', to_json(it.external_id), replace(%(profile_json_end)s::text, '{at}', %(at)s)
        ), ','), ']}]')::json, %(now)s, %(now)s
    FROM new_profiles AS it
    JOIN unnest(%(fact_organizations)s::uuid[], %(fact_ids)s::uuid[]) AS f (organization_id, id)
        ON f.organization_id = {organization}
    WHERE (
        SELECT true FROM interests WHERE organization_id = {organization} AND topic = %(profiles_topic)s LIMIT 1
    )
    GROUP BY {organization}, f.id
""",
    _fact_values,
)
NEW_PROFILES: Final = (_CREATE_PROFILES, _PUBLISH_PROFILES)
STORE_RESPONSES: Final = Part(
    "responses",
    """
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, headers, created_at)
    SELECT {organization}, k.key, k.fingerprint, %(status)s::smallint,
        k.head || COALESCE(convert_to(canonical_id(%(profile_prefix)s::text, it.profile_id), 'UTF8') || k.tail, ''),
        k.headers, %(now)s
    FROM unnest(%(keyed_sales)s::uuid[], %(keys)s::text[], %(fingerprints)s::bytea[], %(heads)s::bytea[],
        %(tails)s::bytea[], %(headers)s::text[]) AS k (sale_id, key, fingerprint, head, tail, headers)
    JOIN inserted AS it ON it.id = k.sale_id
    ORDER BY {organization}, k.key
""",
    lambda new: {
        "status": new.status.to_bytes(2, "big"),
        "profile_prefix": _PROFILE_PREFIX,
        "fingerprints": Blobs([response.fingerprint for response in new.responses]).payload,
        "heads": Blobs([response.body.head for response in new.responses]).payload,
        "tails": Blobs([response.body.tail for response in new.responses]).payload,
        "headers": Texts([write_headers(response.headers) for response in new.responses]).payload,
        "keyed_sales": Uuids([response.sale.id for response in new.responses]).payload,
        "keys": Texts([response.key for response in new.responses]).payload,
    },
)
_PUBLISH_SALES: Final = Part(
    "fact",
    """
    INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)
    SELECT {organization}, (array_agg(it.id))[1], %(sales_topic)s::text,
        json_build_array(json_build_object('sales', json_agg(it.id))), %(now)s, %(now)s
    FROM inserted AS it
    GROUP BY organization_id
""",
    lambda _: {"sales_topic": _SALES_TOPIC},
)
_RESULT: Final[LiteralString] = "\nSELECT now(), array_agg(id), array_agg(profile_id) FROM inserted"


class _RecordStatement(NamedTuple):
    prepared: Prepared
    # The names of the parameters, in order.
    names: tuple[str, ...]


@cache
def compose(source: Source, parts: tuple[Part, ...]) -> _RecordStatement:
    """Compose the text of the statement from the source of its rows and the parts for a batch, with numbered
    parameters."""
    end: LiteralString = "".join([part.text for part in parts if not part.name])
    inserts = [_INSERT_SALES, *[part for part in parts if part.name], _PUBLISH_SALES]
    text: LiteralString = "WITH " + ", ".join([part.name + " AS (" + part.text + ")" for part in inserts]) + _RESULT
    text = fill(text, rows=source.rows, columns=COLUMNS, end=end, organization=source.organization)
    names: list[str] = []

    def number(parameter: "re.Match[str]") -> str:
        if parameter[1] not in names:
            names.append(parameter[1])
        return f"${names.index(parameter[1]) + 1}"

    numbered = _PARAMETER.sub(number, text)
    return _RecordStatement(Prepared(numbered.encode(), numbered), tuple(names))


_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_NOW: Final = Prepared(b"now", "SELECT now()")


async def read_clock(connection: Connection) -> datetime:
    [moment] = await connection.fetch_row(_NOW, ())
    return read_timestamp(moment)


async def insert(connection: Connection, source: Source, parts: tuple[Part, ...], new: NewRows) -> InsertResult:
    statement = compose(source, parts)
    values = {**_INSERT_SALES.values(new), **_PUBLISH_SALES.values(new), **source.values(new)}
    for part in parts:
        values |= part.values(new)
    result = await connection.run(statement.prepared, [values[name] for name in statement.names])
    now = read_timestamp(result.get_value(0, 0) or b"")
    inserted = zip(read_uuids(result.get_value(0, 1) or b""), read_uuids(result.get_value(0, 2) or b""), strict=True)
    return InsertResult({sale: profile for sale, profile in inserted if sale is not None}, now)
