"""The customer data that conditions read, sums over a customer's sales, and the explanation of each condition's result.

An explanation contains an observation: the value of the customer that made the condition true or false. An article is a
unit of a product; quantities are in millionths, since they may have decimals.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from regulars.catalog.model import Scalar
from regulars.conditions.field_types import ConsentState

if TYPE_CHECKING:
    # The tree knows the kinds, and each kind knows these types.
    from regulars.conditions.tree import Condition, Path


class SaleLine(NamedTuple):
    """A line of a sale; `properties` is None if the line has no product. `millionths` is the quantity in millionths."""

    product_id: str | None
    properties: Mapping[str, Scalar] | None
    cents: int
    millionths: int


class CustomerSale(NamedTuple):
    id: UUID
    external_id: str
    type: str
    day: date
    occurred_at: datetime
    recorded_at: datetime
    store_id: UUID
    currency: str
    amount_cents: int
    lines: tuple[SaleLine, ...]


class Ticket(NamedTuple):
    """The sale that triggered a journey. Conditions on the customer's sales exclude it."""

    id: UUID
    store_id: UUID
    amount_cents: int
    currency: str
    lines: tuple[SaleLine, ...] = ()


class Text(NamedTuple):
    day: date
    journey_id: UUID | None


class CustomerConsent(NamedTuple):
    """The consent state of a customer, with source, store and day of the consent or withdrawal that decides it."""

    state: ConsentState
    source: str | None = None
    store_id: UUID | None = None
    since: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """The customer data that the conditions need; fields that they do not need are empty."""

    id: UUID
    attributes: Mapping[str, str]
    created: date
    is_named: bool
    country: str | None
    consent: CustomerConsent
    sales: tuple[CustomerSale, ...] = ()
    texts: tuple[Text, ...] = ()
    # The campaigns that the customer received, each with the day of its text.
    campaigns: Mapping[UUID, date] = field(default_factory=dict)


class Subject(NamedTuple):
    """The customer and the day for which conditions are evaluated. `segments` says of each segment whether the customer
    is a member; None if that is unknown. `ticket` is the sale that triggered a journey."""

    customer: Customer
    today: date
    segments: Mapping[str, bool | None] = {}
    ticket: Ticket | None = None


class ObservedValue(NamedTuple):
    """The value of an attribute; `is_parsable` says whether it fits the attribute's type."""

    value: str | None
    is_parsable: bool = True


class ObservedTimes(NamedTuple):
    """The number of matching sales, or of days with a matching sale, and the last of these sales."""

    times: int
    last: CustomerSale | None


class ObservedMoney(NamedTuple):
    """The net spend, or the amount of the largest matching ticket."""

    cents: int | None
    currency: str


class ObservedArticles(NamedTuple):
    quantity: Decimal


class ObservedDay(NamedTuple):
    day: date | None
    sale: CustomerSale | None = None


class ObservedTicket(NamedTuple):
    ticket: Ticket | None


class ObservedConsent(NamedTuple):
    consent: CustomerConsent


class ObservedTexts(NamedTuple):
    times: int
    last: date | None


class ObservedCampaign(NamedTuple):
    is_received: bool


class ObservedName(NamedTuple):
    is_known: bool


class ObservedCountry(NamedTuple):
    country: str | None


class ObservedSegment(NamedTuple):
    name: str
    version: int
    is_faulty: bool


ObservedSales = ObservedTimes | ObservedMoney | ObservedArticles | ObservedDay
Observation = (
    ObservedValue
    | ObservedSales
    | ObservedTicket
    | ObservedConsent
    | ObservedTexts
    | ObservedCampaign
    | ObservedName
    | ObservedCountry
    | ObservedSegment
)


@dataclass(frozen=True, slots=True)
class ConditionExplanation:
    """A condition, whether it holds (None: unknown), and the value it observed; a group has `inner` instead of a
    value."""

    path: "Path"
    condition: "Condition"
    holds: bool | None
    observation: Observation | None = None
    inner: tuple["ConditionExplanation", ...] = ()


# The names of stores that an explanation shows.
StoreNames = Mapping[UUID, str]
# Whether a line has a product that the condition names; None if the condition has no product filter.
LineFilter = Callable[[SaleLine], bool] | None


def has_matching_line(sale: CustomerSale, line_filter: LineFilter) -> bool:
    return line_filter is None or any(line_filter(line) for line in sale.lines)


def spend_of(sales: Iterable[CustomerSale], currency: str, line_filter: LineFilter) -> int:
    """The spend in cents: purchases minus returns; with a product filter, the totals of the matching lines."""
    return sum(net_cents(sale, line_filter) for sale in sales if sale.currency == currency)


def net_cents(sale: CustomerSale, line_filter: LineFilter) -> int:
    """The net of a sale in cents, negative for a return. The stored total of a return is positive. Some retailers store
    its lines as negative, others as positive; the sign of their sum tells which."""
    is_return = sale.type == "RETURN"
    if line_filter is None:
        return -sale.amount_cents if is_return else sale.amount_cents
    cents = sum(line.cents for line in sale.lines if line_filter(line))
    is_stored_positive = is_return and sum(line.cents for line in sale.lines) >= 0
    return -cents if is_stored_positive else cents


def articles_of(sales: Iterable[CustomerSale], line_filter: LineFilter) -> int:
    """The number of articles bought minus returned, in millionths. Lines without a product are not counted."""
    return sum(_net_millionths(sale, line_filter) for sale in sales)


def _net_millionths(sale: CustomerSale, line_filter: LineFilter) -> int:
    lines = [line for line in sale.lines if line.properties is not None]
    millionths = sum(line.millionths for line in lines if line_filter is None or line_filter(line))
    # The sign of quantities is decided apart from that of prices: some tills send a return with negative prices and
    # positive quantities.
    is_stored_positive = sale.type == "RETURN" and sum(line.millionths for line in lines) >= 0
    return -millionths if is_stored_positive else millionths
