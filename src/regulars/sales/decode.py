"""Decode a sale (a ticket) from the JSON of a request, or of a line of an imported file.

There are two readers, and one function that turns the result of either into a `Sale`. The *plain* reader is fast: it
accepts only ordinary tickets, and msgspec alone does nearly all its checks. A ticket that it refuses is read again by
the *full* reader, which accepts everything that is allowed and reports all errors. A test checks that both readers give
the same result for a ticket that both accept.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from regulars.kit import json
from regulars.kit.body_reader import Reader
from regulars.kit.errors import ApiError, invalid
from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX, PROFILE, STORE
from regulars.kit.json import INTEGER_MAX
from regulars.kit.text import check_external_id, read_sent_reference, read_timestamp
from regulars.kit.wire import FREE_JSON_SCHEMA, HIDDEN, ExternalIdIn, ReferenceIn, Text, TimestampIn
from regulars.sales.model import (
    FREE_OBJECT_BYTES_MAX,
    LINE_ITEMS_MAX,
    MILLION,
    PROPERTIES_BYTES_MAX,
    PROPERTY_KEYS_MAX,
    QUANTITY_LIMIT,
    Cents,
    Currency,
    LineItem,
    Product,
    Sale,
    SaleType,
    check_properties,
    millionths,
    read_quantity,
    read_whole_number,
)

_ABSENT = msgspec.Raw()


def _read_free_object(raw: msgspec.Raw, *, field: str) -> bytes | None:
    """Return the raw JSON of an object or an array; None for null."""
    text = bytes(raw)
    if text == b"null":
        return None
    if text[:1] not in (b"{", b"["):
        raise invalid(field, "WRONG_TYPE", "It must be an object or a list.")
    if len(text) > FREE_OBJECT_BYTES_MAX:
        raise invalid(field, "TOO_LARGE", f"It has more than {FREE_OBJECT_BYTES_MAX:,} bytes.")
    return text


_HINT = {"hint": "A return has type RETURN and the absolute amount, in whole cents."}
Total = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
# Amounts are whole numbers, which may also be written like `1.0` or `1e2`.
_WHOLE_NUMBER = {"check": read_whole_number, "wanted": "a whole number"}
_DOCUMENTED_AS_INTEGER = {HIDDEN: True}
TotalIn = Annotated[
    Total | Annotated[float, Meta(ge=0, le=INTEGER_MAX, extra_json_schema=_DOCUMENTED_AS_INTEGER)],
    Meta(extra=_WHOLE_NUMBER | _HINT),
]
CentsIn = Annotated[
    Cents | Annotated[float, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX, extra_json_schema=_DOCUMENTED_AS_INTEGER)],
    Meta(extra=_WHOLE_NUMBER),
]
FreeObject = Annotated[
    msgspec.Raw,
    Meta(
        description="Any object or array up to 16 KB, stored and returned byte for byte.",
        extra={"check": _read_free_object},
        extra_json_schema=FREE_JSON_SCHEMA,
    ),
]


class LineItemIn(LineItem, frozen=True, kw_only=True):
    """A line of a ticket in a request."""

    unit_price_cents: CentsIn | None = None  # type: ignore[assignment]  # wider than the type it replaces, and frozen
    total_price_cents: CentsIn  # type: ignore[assignment]  # as above
    discount_cents: CentsIn | None = None  # type: ignore[assignment]  # as above
    tax_cents: CentsIn | None = None  # type: ignore[assignment]  # as above


class SaleIn(msgspec.Struct, frozen=True, kw_only=True):
    """A sale in a request."""

    external_id: Annotated[
        ExternalIdIn,
        Meta(description="Permanent key: store code, a colon, ticket number.", examples=["PARIS-01:000123"]),
    ]
    type: SaleType
    occurred_at: Annotated[
        TimestampIn,
        Meta(
            description="Business date: ISO 8601 with an offset; never in the future.",
            examples=["2024-05-01T14:30:00+02:00"],
        ),
    ]
    store_id: Annotated[ReferenceIn, Meta(description="The store's external_id or canonical id; it must exist.")]
    currency: Currency
    total_amount_cents: Annotated[TotalIn, Meta(description="Amount actually paid, as an absolute amount.")]
    total_discount_cents: TotalIn
    total_tax_cents: CentsIn | None = None
    profile_id: Annotated[
        ReferenceIn | None,
        Meta(description="The customer's external_id (created when unknown) or canonical id; omit when anonymous."),
    ] = None
    source: Annotated[Text | None, Meta(description="The originating system.")] = None
    payments: FreeObject = msgspec.field(default_factory=lambda: _ABSENT)
    loyalty: FreeObject = msgspec.field(default_factory=lambda: _ABSENT)
    metadata: FreeObject = msgspec.field(default_factory=lambda: _ABSENT)
    line_items: Annotated[list[LineItemIn], Meta(min_length=1, max_length=LINE_ITEMS_MAX)]


_Name = Annotated[str, Meta(min_length=1, max_length=EXTERNAL_ID_CHARACTERS_MAX)]


class _PlainProduct(Product, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    properties: Annotated[dict[str, bool | Cents | str], Meta(max_length=PROPERTY_KEYS_MAX)] = msgspec.field(
        default_factory=dict
    )  # type: ignore[assignment]  # narrower than the type it replaces, and frozen


class _PlainLine(LineItem, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    product: _PlainProduct | None = None
    quantity: Annotated[int, Meta(gt=-QUANTITY_LIMIT, lt=QUANTITY_LIMIT)]


class _PlainSale(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An ordinary ticket: whole quantities, properties without fractions, and no unknown field."""

    external_id: _Name
    type: SaleType
    occurred_at: str
    store_id: _Name
    currency: Currency
    total_amount_cents: Total
    total_discount_cents: Total
    total_tax_cents: Cents | None = None
    profile_id: _Name | None = None
    source: Text | None = None
    payments: msgspec.Raw = _ABSENT
    loyalty: msgspec.Raw = _ABSENT
    metadata: msgspec.Raw = _ABSENT
    line_items: Annotated[list[_PlainLine], Meta(min_length=1, max_length=LINE_ITEMS_MAX)]


class _PlainBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ordinary tickets, and no other field."""

    items: list[_PlainSale]


_plain_decoder = msgspec.json.Decoder(_PlainSale)
_plain_batch_decoder = msgspec.json.Decoder(_PlainBatch)
_ITEMS = b'"items"'
_NOT_PLAIN = (msgspec.MsgspecError, ApiError, ValueError, RecursionError)
_reader: Reader[SaleIn] = Reader(SaleIn)
# Decodes each number with a fraction or exponent as a `SpelledNumber`, which also has the text that the caller sent.
_spelling_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=json.SpelledNumber)
# A number with this many digits may lose some of them as a double, so its text is read.
_HAS_MANY_DIGITS = re.compile(rb"[0-9][0-9.]{15}")


class _HasBody(Protocol):
    @property
    def body(self) -> bytes: ...


def decode_request(request: _HasBody) -> Sale:
    return decode_sale(request.body)


def decode_sale(body: bytes) -> Sale:
    """Decode and validate one sale, or raise an `ApiError`."""
    return decode_plainly(body) or decode_fully(body)


def decode_plainly(body: bytes) -> Sale | None:
    """Return the sale if the plain (fast) reader accepts it; None if the full reader must read it."""
    # An escape may encode a character that is not allowed, which the full reader checks.
    if b"\\" in body:
        return None
    try:
        wire = _plain_decoder.decode(body)
        if _has_free_objects(wire):
            json.check_bytes(body)
        return _make_plainly(wire)
    except _NOT_PLAIN:
        return None


def decode_plain_batch(body: bytes) -> list[Sale] | None:
    """Return a batch request's sales if the plain (fast) reader accepts all; None if the full reader must read them."""
    # If `items` occurs twice, the decoder returns only the last one, and the first one would not be checked.
    if b"\\" in body or body.find(_ITEMS) != body.rfind(_ITEMS):
        return None
    sales: list[Sale] = []
    try:
        plain_sales = _plain_batch_decoder.decode(body).items
        if any(map(_has_free_objects, plain_sales)):
            json.check_bytes(body)
        for wire in plain_sales:
            sale = _make_plainly(wire)
            if sale is None:
                return None
            sales.append(sale)
    except _NOT_PLAIN:
        return None
    return sales


def _has_free_objects(wire: _PlainSale) -> bool:
    """Whether the ticket has a field with free JSON, whose content the decoder has not checked. A field that occurs
    twice counts even if its last value is null."""
    return not (wire.payments is wire.loyalty is wire.metadata is _ABSENT)


def _make_plainly(wire: _PlainSale) -> Sale | None:
    line_items = json.encode(wire.line_items)
    # Only a long list of lines can contain properties that are too long; the full reader measures them.
    if len(line_items) > PROPERTIES_BYTES_MAX or 0 in [line.quantity for line in wire.line_items]:
        return None
    return _make(wire, wire.line_items, line_items)


def decode_fully(body: bytes) -> Sale:
    return _reader.read(body, partial(_make_fully, body))


def _make_fully(body: bytes, wire: SaleIn, ignored: tuple[str, ...]) -> Sale:
    lines: Sequence[LineItem] = wire.line_items
    if _HAS_MANY_DIGITS.search(body) or float in map(type, _exact_numbers(wire)):
        document = _spelling_decoder.decode(body)
        wire = msgspec.structs.replace(wire, **_read_whole_numbers(document, _TOTALS, field=""))
        lines = [
            _with_exact_numbers(line, line_as_sent, field=f"line_items[{index}]")
            for index, (line, line_as_sent) in enumerate(zip(lines, document["line_items"], strict=True))
        ]
    lines = [_check_line(line, field=f"line_items[{index}]") for index, line in enumerate(lines)]
    return _make(wire, lines, json.encode(lines), ignored)


_TOTALS = ("total_amount_cents", "total_discount_cents", "total_tax_cents")
_AMOUNTS = ("unit_price_cents", "total_price_cents", "discount_cents", "tax_cents")


def _exact_numbers(wire: SaleIn) -> Iterator[object]:
    """Yield the numbers that are stored with all their digits: amounts and properties."""
    for name in _TOTALS:
        yield getattr(wire, name)
    for line in wire.line_items:
        for name in _AMOUNTS:
            yield getattr(line, name)
        if line.product is not None and isinstance(line.product.properties, dict):
            yield from line.product.properties.values()


def _read_whole_numbers(document: Mapping[str, Any], names: Iterable[str], *, field: str) -> dict[str, int]:
    sent = {name: document[name] for name in names if document.get(name) is not None}
    return {name: read_whole_number(value, field=field + name) for name, value in sent.items()}


def _with_exact_numbers(line: LineItem, line_as_sent: Mapping[str, Any], *, field: str) -> LineItem:
    """Replace the numbers of the line by the exact values that the caller wrote."""
    product = line.product
    if product is not None and isinstance(product.properties, dict):
        product = msgspec.structs.replace(product, properties=line_as_sent["product"].get("properties", {}))
    whole_numbers = _read_whole_numbers(line_as_sent, _AMOUNTS, field=f"{field}.")
    return msgspec.structs.replace(line, product=product, quantity=line_as_sent["quantity"], **whole_numbers)


def _check_line(line: LineItem, *, field: str) -> LineItem:
    product = line.product
    if product is not None:
        # Null is the same as a missing field; both are stored as an empty object.
        product = Product(external_id=product.external_id, name=product.name, properties=product.properties or {})
        check_properties(product.properties or {}, field=f"{field}.product.properties")
    return LineItem(
        external_id=line.external_id,
        product=product,
        quantity=read_quantity(line.quantity, field=f"{field}.quantity"),
        unit=line.unit,
        unit_price_cents=line.unit_price_cents,
        total_price_cents=line.total_price_cents,
        discount_cents=line.discount_cents,
        tax_cents=line.tax_cents,
    )


def _make(
    wire: SaleIn | _PlainSale, lines: Sequence[LineItem], line_items: bytes, ignored: tuple[str, ...] = ()
) -> Sale:
    """Make the sale from the result of the plain or the full reader, with the checks that a decoder cannot do."""
    customer = wire.profile_id
    return Sale(
        check_external_id(wire.external_id),
        wire.type,
        read_timestamp(wire.occurred_at, field="occurred_at"),
        read_sent_reference(STORE, wire.store_id, field="store_id"),
        None if customer is None else read_sent_reference(PROFILE, customer, field="profile_id"),
        wire.currency,
        wire.total_amount_cents,  # type: ignore[arg-type]  # a whole number by now
        wire.total_discount_cents,  # type: ignore[arg-type]  # a whole number by now
        wire.total_tax_cents,  # type: ignore[arg-type]  # a whole number by now
        wire.source,
        None if wire.payments is _ABSENT else _read_free_object(wire.payments, field="payments"),
        None if wire.loyalty is _ABSENT else _read_free_object(wire.loyalty, field="loyalty"),
        None if wire.metadata is _ABSENT else _read_free_object(wire.metadata, field="metadata"),
        line_items,
        _NO_KEYS.union(*[line.product.properties or () for line in lines if line.product is not None]),
        _count_units(lines),
        len(lines),
        ignored,
    )


_NO_KEYS: frozenset[str] = frozenset()


def _count_units(lines: Sequence[LineItem]) -> int:
    """Sum the quantities of all lines, in millionths; a line with a unit of measure (kg, m) counts as one."""
    units = 0
    for line in lines:
        quantity = line.quantity
        if line.unit is not None:
            units += MILLION if quantity > 0 else -MILLION
        else:
            units += quantity * MILLION if isinstance(quantity, int) else millionths(quantity)
    return units
