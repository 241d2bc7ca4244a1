"""From the bytes of a request, or of a line of a file, to a valid sale.

There are two ways. The *plain* one is a decoder so strict that msgspec has checked everything when it succeeds: the
common ticket is read by it alone. Whatever it refuses is read again by the *careful* one, which takes all that is
allowed and says what is wrong with the rest. A test holds that they never disagree about a ticket that both take.
"""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from regulars.kit import json
from regulars.kit.clock import parse_timestamp
from regulars.kit.errors import ApiError, ValidationError, invalid
from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX, PROFILE, RESERVED_PREFIXES, STORE, ByExternalId, read_reference
from regulars.kit.json import INTEGER_MAX
from regulars.kit.text import check_external_id, check_reference
from regulars.sales.model import (
    FREE_OBJECT_BYTES_MAX,
    LINE_ITEMS_MAX,
    PROPERTIES_BYTES_MAX,
    PROPERTY_KEYS_MAX,
    QUANTITY_DIGITS_MAX,
    QUANTITY_LIMIT,
    Cents,
    Currency,
    LineItem,
    Product,
    Sale,
    SaleType,
    Text,
)

_FREE = Meta(
    description="Any object or array up to 16 KB, kept to the letter.",
    extra_json_schema={"type": ["object", "array", "null"], "format": "free-object"},
)
_ABSENT = msgspec.Raw()
_ID_SCHEMA = {"minLength": 1, "maxLength": EXTERNAL_ID_CHARACTERS_MAX}
Total = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]


class SaleIn(msgspec.Struct, frozen=True, kw_only=True):
    """A sale on the wire."""

    external_id: Annotated[
        str,
        Meta(
            description="Permanent key: store code, a colon, ticket number.",
            examples=["PARIS-01:000123"],
            extra_json_schema={**_ID_SCHEMA, "format": "external-id"},
        ),
    ]
    type: SaleType
    occurred_at: Annotated[
        str,
        Meta(
            description="Business date: RFC 3339 with an offset; never in the future.",
            examples=["2024-05-01T14:30:00+02:00"],
            extra_json_schema={"format": "date-time"},
        ),
    ]
    store_id: Annotated[
        str,
        Meta(
            description="The store's external_id or canonical id; it must exist.",
            extra_json_schema={**_ID_SCHEMA, "format": "reference"},
        ),
    ]
    currency: Currency
    total_amount_cents: Annotated[Total, Meta(description="Amount actually paid, as an absolute amount.")]
    total_discount_cents: Total
    total_tax_cents: Cents | None = None
    profile_id: Annotated[
        str | None,
        Meta(
            description="The customer's external_id (created when unknown) or canonical id; omit when anonymous.",
            extra_json_schema={**_ID_SCHEMA, "format": "reference"},
        ),
    ] = None
    source: Annotated[Text | None, Meta(description="The originating system.")] = None
    payments: Annotated[msgspec.Raw, _FREE] = msgspec.field(default_factory=lambda: _ABSENT)
    loyalty: Annotated[msgspec.Raw, _FREE] = msgspec.field(default_factory=lambda: _ABSENT)
    metadata: Annotated[msgspec.Raw, _FREE] = msgspec.field(default_factory=lambda: _ABSENT)
    line_items: Annotated[list[LineItem], Meta(min_length=1, max_length=LINE_ITEMS_MAX)]


_Name = Annotated[str, Meta(min_length=1, max_length=EXTERNAL_ID_CHARACTERS_MAX)]
_Integer = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]


class _PlainProduct(Product, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    properties: Annotated[dict[str, bool | _Integer | str], Meta(max_length=PROPERTY_KEYS_MAX)] = msgspec.field(
        default_factory=dict
    )  # type: ignore[assignment]  # narrower than what it replaces, and frozen


class _PlainLine(LineItem, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    product: _PlainProduct | None = None
    quantity: Annotated[int, Meta(gt=-QUANTITY_LIMIT, lt=QUANTITY_LIMIT)]


class _PlainSale(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An ordinary ticket: whole quantities, properties without fractions, and no field that we do not know."""

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
    """Ordinary tickets, and nothing beside them."""

    items: list[_PlainSale]


_FreeObjects = tuple[bytes | None, bytes | None, bytes | None]
_NOTHING_FREE: _FreeObjects = (None, None, None)
_NO_KEYS: frozenset[str] = frozenset()
_plain_decoder = msgspec.json.Decoder(_PlainSale)
_plain_batch_decoder = msgspec.json.Decoder(_PlainBatch)
_ITEMS = b'"items"'
_NOT_PLAIN = (msgspec.MsgspecError, ApiError, ValueError, RecursionError)
_decoder = msgspec.json.Decoder(SaleIn)
# Floats as they were spelled.
_spelling_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=str)
# With fewer digits behind the point, and less than 10^9 before it, a double keeps them all or shows too many.
_HAS_LONG_FRACTION = re.compile(rb"\.[0-9]{6}")


def decode_sale(body: bytes, *, is_checked: bool = False) -> Sale:
    """Decode and validate one sale, or raise the refusal it deserves.

    `is_checked` is for a part of a body that the caller checks as a whole.
    """
    return decode_plainly(body, is_checked=is_checked) or decode_carefully(body, is_checked=is_checked)


def decode_plainly(body: bytes, *, is_checked: bool = False) -> Sale | None:
    """The sale, if it is an ordinary one; None leaves it to the careful way."""
    # An escape may spell a character that is not allowed.
    if b"\\" in body:
        return None
    try:
        wire = _plain_decoder.decode(body)
        if not is_checked and _has_free_objects(wire):
            json.check_bytes(body)
        return _read_plain(wire)
    except _NOT_PLAIN:
        return None


def decode_plain_batch(body: bytes) -> list[Sale] | None:
    """The sales of a batch request, if all are ordinary ones; None leaves it to the careful way, item by item."""
    # Of two lists the decoder gives the last, and nobody would look at the other.
    if b"\\" in body or body.find(_ITEMS) != body.rfind(_ITEMS):
        return None
    sales: list[Sale] = []
    try:
        wires = _plain_batch_decoder.decode(body).items
        if any(map(_has_free_objects, wires)):
            json.check_bytes(body)
        for wire in wires:
            sale = _read_plain(wire)
            if sale is None:
                return None
            sales.append(sale)
    except _NOT_PLAIN:
        return None
    return sales


def _has_free_objects(wire: _PlainSale) -> bool:
    """Whether the decoder passed over something, be it a first one whose name came again with null."""
    return not (wire.payments is wire.loyalty is wire.metadata is _ABSENT)


def _read_plain(wire: _PlainSale) -> Sale | None:
    """The sale that an ordinary ticket tells of. What the decoder cannot check is checked here."""
    lines, customer = wire.line_items, wire.profile_id
    line_items = json.encode(lines)
    if (
        not _is_plain_name(wire.external_id)
        or not _is_plain_name(wire.store_id)
        or not (customer is None or _is_plain_name(customer))
        or 0 in [line.quantity for line in lines]
        # Some of its properties may be too long.
        or len(line_items) > PROPERTIES_BYTES_MAX
    ):
        return None
    free = _read_free_objects(wire) if _has_free_objects(wire) else _NOTHING_FREE
    return Sale(
        wire.external_id,
        wire.type,
        parse_timestamp(wire.occurred_at),
        ByExternalId(wire.store_id),
        None if customer is None else ByExternalId(customer),
        wire.currency,
        wire.total_amount_cents,
        wire.total_discount_cents,
        wire.total_tax_cents,
        wire.source,
        *free,
        line_items,
        _NO_KEYS.union(*[line.product.properties for line in lines if line.product is not None]),
    )


def _is_plain_name(name: str) -> bool:
    """Whether it is printable ASCII without outer spaces, and starts with none of our own prefixes."""
    return name.isascii() and name.isprintable() and name == name.strip() and not name.startswith(RESERVED_PREFIXES)


def decode_carefully(body: bytes, *, is_checked: bool = False) -> Sale:
    try:
        wire = json.decode(_decoder, body, is_checked=is_checked)
    except ValidationError as error:
        raise _with_hint(error) from None
    check_external_id(wire.external_id)
    check_reference(wire.store_id, field="store_id")
    if wire.profile_id is not None:
        check_reference(wire.profile_id, field="profile_id")
    try:
        occurred_at = parse_timestamp(wire.occurred_at)
    except ValueError as error:
        raise invalid("occurred_at", "FORMAT", f"It cannot be read: {error}.") from None
    property_keys: set[str] = set()
    # What is in a short body cannot be long: nothing but a float grows when it is written compactly.
    is_short = len(body) <= PROPERTIES_BYTES_MAX
    for index, line in enumerate(wire.line_items):
        _check_line(index, line, is_short=is_short)
        if line.product is not None:
            if line.product.properties is None:
                # Null is the same as leaving it out, and nothing is shown as an empty object.
                wire.line_items[index] = replace(line, product=replace(line.product, properties={}))
            else:
                property_keys.update(line.product.properties)
    if _HAS_LONG_FRACTION.search(body):
        _check_spelled_quantities(body)
    payments, loyalty, metadata = _read_free_objects(wire)
    return Sale(
        external_id=wire.external_id,
        type=wire.type,
        occurred_at=occurred_at,
        store=read_reference(STORE, wire.store_id),
        profile=None if wire.profile_id is None else read_reference(PROFILE, wire.profile_id),
        currency=wire.currency,
        total_amount_cents=wire.total_amount_cents,
        total_discount_cents=wire.total_discount_cents,
        total_tax_cents=wire.total_tax_cents,
        source=wire.source,
        payments=payments,
        loyalty=loyalty,
        metadata=metadata,
        line_items=json.encode(wire.line_items),
        property_keys=frozenset(property_keys),
    )


def _with_hint(error: ValidationError) -> ValidationError:
    """A negative total is usually a return that was told as a purchase."""
    for problem in error.errors:
        if problem.field in {"total_amount_cents", "total_discount_cents"} and ">= 0" in problem.message:
            return invalid(problem.field, problem.code, f"{problem.message} Use type RETURN with the absolute amount.")
    return error


def _check_line(index: int, line: LineItem, *, is_short: bool) -> None:
    quantity = line.quantity
    if quantity == 0 or not -QUANTITY_LIMIT < quantity < QUANTITY_LIMIT:
        raise invalid(
            f"line_items[{index}].quantity", "OUT_OF_RANGE", "It must not be 0 and must be below 10^9 in size."
        )
    if isinstance(quantity, float):
        _check_digits(index, repr(quantity))
    if line.product is not None and line.product.properties:
        _check_properties(index, line.product.properties, is_short=is_short)


def _check_spelled_quantities(body: bytes) -> None:
    """A double may have lost digits that were sent; only their spelling tells, and it is read when there are many."""
    for index, line in enumerate(_spelling_decoder.decode(body)["line_items"]):
        if isinstance(line["quantity"], str):
            _check_digits(index, line["quantity"])


def _check_digits(index: int, number: str) -> None:
    mantissa = number.lower().partition("e")[0]
    if len(mantissa.replace(".", "").lstrip("-0").rstrip("0")) > QUANTITY_DIGITS_MAX:
        raise invalid(
            f"line_items[{index}].quantity",
            "TOO_PRECISE",
            f"It has more than {QUANTITY_DIGITS_MAX} significant digits.",
        )


def _check_properties(index: int, properties: Mapping[str, bool | float | str], *, is_short: bool) -> None:
    field = f"line_items[{index}].product.properties"
    if len(properties) > PROPERTY_KEYS_MAX:
        raise invalid(field, "TOO_MANY_KEYS", f"It has more than {PROPERTY_KEYS_MAX} keys.")
    for key, value in properties.items():
        if isinstance(value, float):
            # Written out, a float may be longer than it was sent.
            is_short = False
            if not math.isfinite(value):
                raise invalid(f"{field}.{key}", "OUT_OF_RANGE", "A number must be finite.")
        elif isinstance(value, int) and abs(value) > INTEGER_MAX:
            raise invalid(f"{field}.{key}", "OUT_OF_RANGE", "An integer may be 2^53-1 in size.")
    if not is_short and len(json.encode(properties)) > PROPERTIES_BYTES_MAX:
        raise invalid(field, "TOO_LARGE", f"It has more than {PROPERTIES_BYTES_MAX} bytes as compact JSON.")


def _read_free_objects(wire: SaleIn | _PlainSale) -> _FreeObjects:
    return (
        _read_free_object("payments", wire.payments),
        _read_free_object("loyalty", wire.loyalty),
        _read_free_object("metadata", wire.metadata),
    )


def _read_free_object(field: str, raw: msgspec.Raw) -> bytes | None:
    if raw is _ABSENT:
        return None
    text = bytes(raw)
    if text == b"null":
        return None
    if text[:1] not in (b"{", b"["):
        raise invalid(field, "WRONG_TYPE", "It must be an object or an array.")
    if len(text) > FREE_OBJECT_BYTES_MAX:
        raise invalid(field, "TOO_LARGE", f"It has more than {FREE_OBJECT_BYTES_MAX} bytes.")
    return text
