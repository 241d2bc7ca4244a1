"""The operations over the columns of all customers in which each kind of condition writes its answer. The analysis
process implements them; the kinds know neither arrays nor how a column is stored."""

from collections.abc import Collection
from datetime import date
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, Self, TypeVar
from uuid import UUID

from regulars.conditions.field_types import ConsentState, OfProperty, ValueComparison, When, Window
from regulars.sales.model import Currency


class Flag(StrEnum):
    """The columns of yes and no, by their stored names."""

    NAMED = "named"


class Code(StrEnum):
    """The columns of values, of which there are few distinct ones."""

    COUNTRY = "country"
    CONSENT_SOURCE = "source"
    CONSENT_STORE = "store"


class Moment(StrEnum):
    """The columns of times."""

    CREATED = "created"
    # Of the consent or withdrawal that decides the consent state.
    CONSENT_DECIDED = "since"


class SalesScope(NamedTuple):
    """The sales that a condition reads. With a product or property, only sales with a matching line count, and of
    amounts and articles only those lines."""

    types: Literal["purchases", "returns", "all"]
    currency: Currency | None = None
    window: Window | None = None
    stores: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    property: OfProperty | None = None


# What is counted or added up for each customer: tickets, the days with one, articles in millionths, or cents.
Measure = Literal["tickets", "days", "articles", "cents"]


class Mask(Protocol):
    """The customers for whom something holds. For a customer it may also be unknown."""

    def __and__(self, other: Self, /) -> Self: ...
    def __invert__(self) -> Self: ...


M = TypeVar("M", bound=Mask)
M_co = TypeVar("M_co", bound=Mask, covariant=True)


class Columns(Protocol[M_co]):
    """What a kind may do with the columns. An operation with a limit that is None has no limit on that side."""

    @property
    def today(self) -> date: ...
    def unknown(self) -> M_co:
        """No customer; for all it is unknown."""
        ...

    def flag(self, column: Flag, /) -> M_co: ...
    def code_in(self, column: Code, values: Collection[str], /) -> M_co: ...
    def on_day(self, column: Moment, when: When, /) -> M_co: ...
    def consent_is(self, state: ConsentState, /) -> M_co: ...
    def compare(self, attribute: ValueComparison, /) -> M_co: ...
    def has_anniversary(self, key: str, /, *, first: date, last: date) -> M_co:
        """Whether a date of an attribute has its anniversary between two days, both included."""
        ...

    def got_text(self, *, senders: Collection[UUID] | None = None, days: int | None = None) -> M_co:
        """Whether a text of one of the journeys or campaigns left, or of any sender, in the last days or ever."""
        ...

    def in_segment(self, segment_id: str, /) -> M_co: ...
    def within(self, scope: SalesScope, measure: Measure, /, *, low: int | None, high: int | None) -> M_co: ...
    def has_ticket(self, scope: SalesScope, /, *, low: int | None, high: int | None) -> M_co:
        """Whether the amount of at least one ticket is within the limits."""
        ...

    def purchased(self, scope: SalesScope, which: Literal["first", "last"], when: When, /) -> M_co: ...
