"""The data of a sale and its rules: valid quantities and amounts, when a sale may trigger automations, and when two
tickets with the same id are equal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from operator import attrgetter
from typing import Annotated, Any, Literal, Protocol
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.kit.errors import ApiError, Headers, invalid
from regulars.kit.ids import Reference
from regulars.kit.json import INTEGER_MAX, SpelledNumber, encode
from regulars.kit.wire import EmptyMap, Text
from regulars.profiles.model import ProfileRef
from regulars.stores.model import StoreRef
from regulars.work.facts import AutomationState, eligibility_of

LINE_ITEMS_MAX = 1_000
UNIT_CHARACTERS_MAX = 32
QUANTITY_LIMIT = 10**9
QUANTITY_DIGITS_MAX = 15
# Quantities are added up as integers, in millionths.
MILLION = 1_000_000
PROPERTY_KEYS_MAX = 50
PROPERTIES_BYTES_MAX = 4_096
FREE_OBJECT_BYTES_MAX = 16 << 10
ATTEMPTS_PER_SALE_MAX = 10

SaleType = Literal["PURCHASE", "RETURN"]
Currency = Literal["EUR", "GBP", "USD", "CHF"]
Cents = Annotated[int, Meta(ge=-INTEGER_MAX, le=INTEGER_MAX)]


def read_quantity(quantity: float, *, field: str) -> int | float:
    """Return a quantity with at most 15 digits unchanged. A quantity with more digits is rounded if its text is the
    shortest text of a double, and refused otherwise.

    A cash register that adds 0.1 and 0.2 sends 0.30000000000000004 and means 0.3. More digits that are not the text of
    a double do not come from such arithmetic, and rounding them would change the data.
    """
    text = quantity.text if isinstance(quantity, SpelledNumber) else repr(quantity)
    digits = text.lower().partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")
    if len(digits) > QUANTITY_DIGITS_MAX and isinstance(quantity, float):
        if text != repr(float(text)):
            raise invalid(field, "TOO_PRECISE", f"It has more than {QUANTITY_DIGITS_MAX} significant digits.")
        quantity = float(f"{quantity:.{QUANTITY_DIGITS_MAX}g}")
    if quantity == 0 or not -QUANTITY_LIMIT < quantity < QUANTITY_LIMIT:
        raise invalid(field, "OUT_OF_RANGE", "It must not be 0 and must be below 1,000,000,000 in size.")
    return float(quantity) if isinstance(quantity, float) else quantity


def read_whole_number(value: float, *, field: str) -> int:
    """Read a JSON number whose value is an integer, also if it is written like `1.0` or `1e2`."""
    if isinstance(value, int):
        return value
    try:
        exact = Decimal(value.text if isinstance(value, SpelledNumber) else repr(value))
        is_whole = exact == exact.to_integral_value()
    except InvalidOperation:
        # The exponent is too small to compute with: as a double the number is 0, and it is not a whole number.
        is_whole = False
    if not is_whole:
        raise invalid(field, "WRONG_TYPE", "It must be a whole number.")
    return int(exact)


def check_properties(properties: Mapping[str, Any] | Sequence[Any], *, field: str) -> None:
    if not isinstance(properties, Mapping):
        return
    if len(properties) > PROPERTY_KEYS_MAX:
        raise invalid(field, "TOO_MANY_KEYS", f"It has more than {PROPERTY_KEYS_MAX} keys.")
    if len(encode(properties)) > PROPERTIES_BYTES_MAX:
        raise invalid(field, "TOO_LARGE", f"It has more than {PROPERTIES_BYTES_MAX:,} bytes as compact JSON.")


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """The product that was sold; a line for a service, shipping or a fee has none."""

    external_id: Annotated[Text | None, Meta(description="SKU or product code.")] = None
    name: Annotated[Text | None, Meta(description="Human-readable label.")] = None
    properties: Annotated[
        dict[str, bool | int | float | str] | EmptyMap | None,
        Meta(
            description="Free-form scalars: at most 50 keys and 4 KB.",
            extra={"check": check_properties},
            extra_json_schema={"maxProperties": PROPERTY_KEYS_MAX, "format": "product-properties"},
        ),
    ] = {}


class LineItem(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a ticket: requests, stored rows and responses have the same fields."""

    external_id: Annotated[Text | None, Meta(description="Line code.")] = None
    product: Product | None = None
    quantity: Annotated[
        int | float,
        Meta(
            description="Not 0; below 10^9 in size; at most 15 significant digits.",
            examples=[2],
            extra={"check": read_quantity},
            extra_json_schema={
                "not": {"const": 0},
                "exclusiveMinimum": -QUANTITY_LIMIT,
                "exclusiveMaximum": QUANTITY_LIMIT,
            },
        ),
    ]
    unit: Annotated[str, Meta(max_length=UNIT_CHARACTERS_MAX)] | None = None
    unit_price_cents: Cents | None = None
    total_price_cents: Cents
    discount_cents: Cents | None = None
    tax_cents: Cents | None = None


def millionths(quantity: float) -> int:
    """Convert a quantity to an integer number of millionths, rounded half to even."""
    return int((Decimal(repr(quantity)) * MILLION).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


class Sale(msgspec.Struct, frozen=True, gc=False):
    """A ticket as the caller sent it, with valid fields; its store and its customer are not looked up yet."""

    external_id: str
    type: str
    occurred_at: datetime
    store: Reference
    profile: Reference | None
    currency: str
    total_amount_cents: int
    total_discount_cents: int
    total_tax_cents: int | None
    source: str | None
    # JSON texts, stored exactly as they were sent.
    payments: bytes | None
    loyalty: bytes | None
    metadata: bytes | None
    line_items: bytes
    # The keys of all product properties on the lines.
    property_keys: frozenset[str] = frozenset()
    # The quantity of all lines in millionths, and the number of lines, for the totals of stores and days; None if the
    # database computes both.
    unit_millionths: int | None = None
    line_count: int | None = None
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


# Encodes the body of a response; called after the next batch has been sent to the database.
EncodeBody = Callable[[], bytes]
# Joins the bodies for the sales of a batch request into the body of its response.
JoinBodies = Callable[[Iterable[bytes]], bytes]


class KeyedSale(Protocol):
    """A sale to record (`command`), with its idempotency key if it has one, and a hash of the request."""

    @property
    def command(self) -> Sale: ...
    @property
    def key(self) -> str | None: ...
    @property
    def fingerprint(self) -> bytes: ...
    @property
    def extra_headers(self) -> Headers: ...


class SalesRequest(msgspec.Struct, frozen=True):
    """The sales of a batch request, all inserted or none, with its idempotency key and a hash of the request."""

    sales: Sequence[Sale]
    key: str | None
    fingerprint: bytes
    join: JoinBodies
    extra_headers: Headers = ()


class StoredSale(msgspec.Struct, frozen=True, gc=False):
    """A sale as it was recorded: the ticket that the caller sent, and the store and customer that it refers to."""

    id: UUID
    ticket: Sale
    store: StoreRef
    profile: ProfileRef | None
    created_at: datetime
    # The customer was erased, and with the customer the personal data of the ticket.
    is_anonymised: bool = False

    @property
    def external_id(self) -> str:
        return self.ticket.external_id


class SaleOutcome(msgspec.Struct, frozen=True):
    """The outcome of a valid sale: the stored sale, whether it is new, and whether the sent ticket differs from it."""

    sale: StoredSale
    is_new: bool
    differs: bool = False


def automation_state(sale: StoredSale, *, is_new: bool, now: datetime) -> AutomationState:
    """Return whether the sale may trigger automations; a duplicate or anonymous sale triggers none."""
    return "not_applicable" if not is_new or sale.profile is None else eligibility_of(sale.ticket.occurred_at, now=now)


# The fields that two equal tickets have in common, beside the store and the customer.
_PLAIN_FIELDS = attrgetter(
    "type", "occurred_at", "currency", "total_amount_cents", "total_discount_cents", "total_tax_cents", "source"
)
_JSON_FIELDS = attrgetter("payments", "loyalty", "metadata", "line_items")


def is_same_ticket(stored: StoredSale, sale: Sale, *, store: StoreRef | None, profile: ProfileRef | None) -> bool:
    """Whether a ticket that is sent again has the same decoded content. For the ticket of an erased person, only the
    fields that are still stored are compared."""
    ticket = stored.ticket
    if stored.is_anonymised:
        sale, profile = without_person(sale), None
    return (
        _PLAIN_FIELDS(ticket) == _PLAIN_FIELDS(sale)
        and store is not None
        and stored.store.id == store.id
        and _same_person(stored.profile, sale, profile)
        and all(map(_same_json, _JSON_FIELDS(ticket), _JSON_FIELDS(sale)))
    )


def without_person(sale: Sale) -> Sale:
    """Return the sale without personal data; `source` stays, because it is the name of a system."""
    return msgspec.structs.replace(sale, profile=None, payments=None, loyalty=None, metadata=None)


def _same_person(stored: ProfileRef | None, sale: Sale, profile: ProfileRef | None) -> bool:
    if stored is None or profile is None:
        return stored is None and sale.profile is None
    return stored.id == profile.id


def _same_json(left: bytes | None, right: bytes | None) -> bool:
    if left == right:
        return True
    if left is None or right is None:
        return False
    return _same_value(msgspec.json.decode(left), msgspec.json.decode(right))


def _same_value(left: Any, right: Any) -> bool:
    """Compare JSON values: `1` and `1.0` are the same number, but unlike in Python `1` is not equal to `true`."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same_value(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same_value, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


class OccurredAtInFuture(ApiError):
    status, code, title = 400, "OCCURRED_AT_IN_FUTURE", "The sale lies in the future"
    cause = "`occurred_at` is later than the service's clock allows (30 seconds, unless set otherwise)."
    fix = "Check the register's clock and its time zone; a local time sent with `Z` is the usual reason."
    retry = "Yes, once the moment has passed, with a new Idempotency-Key."


class SalesEventNotFound(ApiError):
    status, code, title = 404, "SALES_EVENT_NOT_FOUND", "No such sales event"
    cause = "No sales event of your organization has this `external_id` or `evt_` id."
    fix = "Check the reference; percent-encode it as one path segment."
