"""A customer's rows as conditions see them, the ticket that triggered a journey, and what a condition saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from regulars.catalog.model import Scalar
from regulars.conditions.tree import Condition, ConsentState, Path


class Line(NamedTuple):
    """A line of a sale; `properties` is None where it has no product."""

    product_id: str | None
    properties: Mapping[str, Scalar] | None
    cents: int
    millionths: int


class Sale(NamedTuple):
    id: UUID
    external_id: str
    type: str
    day: date
    occurred_at: datetime
    recorded_at: datetime
    store_id: UUID
    currency: str
    amount_cents: int
    lines: tuple[Line, ...]


class Ticket(NamedTuple):
    """The sale that triggered a journey. Conditions on the customer's sales leave it out."""

    id: UUID
    store_id: UUID
    amount_cents: int
    currency: str
    lines: tuple[Line, ...] = ()


class Text(NamedTuple):
    day: date
    journey_id: UUID | None


class Standing(NamedTuple):
    """How a customer stands: the state, and source, store and day of the consent or the withdrawal that decides."""

    state: ConsentState
    source: str | None = None
    store_id: UUID | None = None
    since: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """What of a customer the conditions at hand ask about; the rest is left empty."""

    id: UUID
    attributes: Mapping[str, str]
    created: date
    is_named: bool
    country: str | None
    standing: Standing
    sales: tuple[Sale, ...] = ()
    texts: tuple[Text, ...] = ()


class SawValue(NamedTuple):
    value: str | None
    is_readable: bool = True


class SawTimes(NamedTuple):
    times: int
    last: Sale | None


class SawMoney(NamedTuple):
    """The net spend, or the largest value of a ticket that was looked at."""

    cents: int | None
    currency: str


class SawArticles(NamedTuple):
    quantity: Decimal


class SawDay(NamedTuple):
    day: date | None
    sale: Sale | None = None


class SawTicket(NamedTuple):
    ticket: Ticket | None


class SawConsent(NamedTuple):
    standing: Standing


class SawTexts(NamedTuple):
    times: int
    last: date | None


class SawName(NamedTuple):
    is_known: bool


class SawCountry(NamedTuple):
    country: str | None


class SawSegment(NamedTuple):
    name: str
    version: int
    is_faulty: bool


SawOfSales = SawTimes | SawMoney | SawArticles | SawDay
Saw = SawValue | SawOfSales | SawTicket | SawConsent | SawTexts | SawName | SawCountry | SawSegment


@dataclass(frozen=True, slots=True)
class Explained:
    """A condition, whether it holds (None: that is not known), and what it saw; a group has those inside it instead."""

    path: Path
    condition: Condition
    holds: bool | None
    saw: Saw | None = None
    inner: tuple["Explained", ...] = ()
