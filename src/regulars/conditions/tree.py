"""The types of the conditions with which users filter customers, in segments and journeys.

Groups nest conditions, so that a definition is a tree; `docs/conditions.md` describes it. The published JSON Schemas
are generated from these types. Conditions on the ticket that triggered a journey are here too, because a group may
contain them; a segment with such a condition is invalid.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from regulars.consent.model import ConsentSource
from regulars.profiles.model import AttributeKey as Key
from regulars.sales.model import Currency

PropertyKey = Annotated[str, Meta(min_length=1, max_length=2_000)]
Values = Annotated[tuple[str, ...], Meta(max_length=200)]
Reference = Annotated[str, Meta(min_length=1, max_length=255)]
References = Annotated[tuple[Reference, ...], Meta(max_length=200)]
Days = Annotated[int, Meta(ge=1, le=3_650, description="Calendar days, today included.")]
Cents = Annotated[int, Meta(ge=-(1 << 53) + 1, le=(1 << 53) - 1)]
AmountCents = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Times = Annotated[int, Meta(ge=0, le=1_000_000)]
Quantity = Annotated[int, Meta(ge=-(10**9), le=10**9)] | Annotated[float, Meta(ge=-1e9, le=1e9)]
CountryCode = Annotated[str, Meta(pattern="^[A-Z]{2}$")]
ConsentState = Literal["may_be_texted", "withdrawn", "never_asked", "do_not_contact"]
Comparison = Literal[
    "is", "is_not", "contains", "starts_with", "any_of", "none_of", "is_set", "is_not_set",
    "less", "at_most", "more", "at_least", "between",
    "before", "after", "in_last_days", "not_in_last_days", "in_next_days", "anniversary_in_next_days",
]  # fmt: skip
DateComparison = Literal["before", "after", "between", "in_last_days", "not_in_last_days"]
DEPTH_MAX: Final = 5
CONDITIONS_MAX: Final = 50


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    pass


class _Condition(_Strict, frozen=True, tag_field="type", kw_only=True):
    pass


class All(_Condition, frozen=True, kw_only=True, tag="all"):
    """All inner conditions hold."""

    of: tuple["Condition", ...] = ()


class Any(_Condition, frozen=True, kw_only=True, tag="any"):
    """At least one inner condition holds."""

    of: tuple["Condition", ...] = ()


class Nothing(_Condition, frozen=True, kw_only=True, tag="none"):
    """No inner condition holds."""

    of: tuple["Condition", ...] = ()


class OfAttribute(_Condition, frozen=True, kw_only=True, tag="attribute"):
    """The customer's attribute, read by its declared type.

    `value` is for comparisons with one value, `values` for any_of, none_of and between, `days` for comparisons with a
    number of days. A negative comparison (is_not, none_of, not_in_last_days) needs `without_value`: whether customers
    without a value match.
    """

    key: Key
    comparison: Comparison
    value: str | None = None
    values: Values = ()
    days: Days | None = None
    without_value: bool | None = None


class OfProperty(_Strict, frozen=True, kw_only=True):
    """A property of the product on a line, read by its declared type; the fields are those of an attribute."""

    key: PropertyKey
    comparison: Comparison
    value: str | None = None
    values: Values = ()
    days: Days | None = None
    without_value: bool | None = None


class When(_Strict, frozen=True, kw_only=True):
    """A calendar day in the organization's time zone. `date` is for before and after, `from` and `to` for between."""

    comparison: DateComparison
    date: dt.date | None = None
    from_: dt.date | None = msgspec.field(name="from", default=None)
    to: dt.date | None = None
    days: Days | None = None
    without_value: bool | None = None


class Window(_Strict, frozen=True, kw_only=True):
    """The last days, today included, or the days `from` … `to`, both included."""

    last_days: Days | None = None
    from_: dt.date | None = msgspec.field(name="from", default=None)
    to: dt.date | None = None


class Consent(_Condition, frozen=True, kw_only=True, tag="consent"):
    """The consent state of the customer, as `/v1/subscriptions/check` decides it (`"is": false`: any other state).

    `sources`, `stores` and `since` are those of the consent or withdrawal that decides the state.
    """

    state: ConsentState
    is_: bool = msgspec.field(name="is", default=True)
    sources: Annotated[tuple[ConsentSource, ...], Meta(max_length=13)] = ()
    stores: References = ()
    since: When | None = None


class _SalesFilter(_Condition, frozen=True, kw_only=True):
    """A filter of sales and their lines, by store, product and property."""

    stores: References = ()
    products: References = ()
    property: OfProperty | None = None


class _WindowedSalesFilter(_SalesFilter, frozen=True, kw_only=True):
    # None means sales of any time.
    window: Window | None = None


class Bought(_WindowedSalesFilter, frozen=True, kw_only=True, tag="bought"):
    """The number of purchases; at least one, if no limit is given. Or the number of calendar days with a purchase, or
    of articles bought less returned."""

    count: Literal["tickets", "days", "articles"] = "tickets"
    at_least: Quantity | None = None
    at_most: Quantity | None = None
    none: bool = False


class Returned(_WindowedSalesFilter, frozen=True, kw_only=True, tag="returned"):
    """The number of returns; at least one, if no limit is given."""

    at_least: Times | None = None
    at_most: Times | None = None
    none: bool = False


class Spend(_WindowedSalesFilter, frozen=True, kw_only=True, tag="spend"):
    """Purchases less returns, in one currency; with a product filter, the totals of the matching lines. `none` means at
    most 0."""

    currency: Currency
    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None
    none: bool = False


class TicketValue(_WindowedSalesFilter, frozen=True, kw_only=True, tag="ticket_value"):
    """The amount of at least one purchase."""

    currency: Currency
    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None


class FirstPurchase(_SalesFilter, frozen=True, kw_only=True, tag="first_purchase"):
    when: When


class LastPurchase(_SalesFilter, frozen=True, kw_only=True, tag="last_purchase"):
    when: When


class Texts(_Condition, frozen=True, kw_only=True, tag="texts"):
    """Whether the customer got a text in the last days; from one journey, if it is named."""

    days: Days
    got: bool = True
    journey: Reference | None = None


class ReceivedCampaign(_Condition, frozen=True, kw_only=True, tag="received_campaign"):
    """The customer received this campaign: its text was sent or delivered, or its outcome is unknown (`"is": false`:
    did not)."""

    id: Reference
    is_: bool = msgspec.field(name="is", default=True)


class Created(_Condition, frozen=True, kw_only=True, tag="created"):
    """The day on which the customer was created."""

    when: When


class Named(_Condition, frozen=True, kw_only=True, tag="named"):
    """Whether a first or last name is known."""

    is_: bool = msgspec.field(name="is", default=True)


class Country(_Condition, frozen=True, kw_only=True, tag="country"):
    """The country of the customer's own number."""

    any_of: Annotated[tuple[CountryCode, ...], Meta(max_length=200)]


class InSegment(_Condition, frozen=True, kw_only=True, tag="segment"):
    """The customer is in a segment, by its current version (`"is": false`: is not)."""

    id: Reference
    is_: bool = msgspec.field(name="is", default=True)


class OfStore(_Condition, frozen=True, kw_only=True, tag="store"):
    """The ticket is from one of these stores, by external_id or canonical id."""

    any_of: Annotated[tuple[str, ...], Meta(min_length=1, max_length=200)]


class OfAmount(_Condition, frozen=True, kw_only=True, tag="amount"):
    """The amount of the ticket, paid or refunded."""

    at_least_cents: AmountCents | None = None
    at_most_cents: AmountCents | None = None


class OfCurrency(_Condition, frozen=True, kw_only=True, tag="currency"):
    """The ticket was paid in one of these currencies."""

    any_of: Annotated[tuple[Currency, ...], Meta(min_length=1)]


class OfProduct(_Condition, frozen=True, kw_only=True, tag="product"):
    """A line of the ticket has one of these products, or a product with this property, or both."""

    any_of: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    property: OfProperty | None = None


Group = All | Any | Nothing
CountCondition = Bought | Returned
WindowedCondition = CountCondition | Spend | TicketValue
SalesCondition = WindowedCondition | FirstPurchase | LastPurchase
TicketCondition = OfStore | OfAmount | OfCurrency | OfProduct
_OtherCondition = Texts | ReceivedCampaign | Created | Named | Country | InSegment
Leaf = OfAttribute | Consent | SalesCondition | _OtherCondition | TicketCondition
Condition = Group | Leaf
ValueComparison = OfAttribute | OfProperty
# The indexes of a condition in its groups, from the root.
Path = tuple[int, ...]


def walk(condition: Condition, path: Path = ()) -> Iterator[tuple[Path, Condition]]:
    """The condition and all conditions inside it, each with its path: () is the root, (1, 0) the first child of its
    second child."""
    yield path, condition
    if isinstance(condition, Group):
        for number, inner in enumerate(condition.of):
            yield from walk(inner, (*path, number))


def depth_of(condition: Condition) -> int:
    """The depth of nested groups, computed without recursion: a malicious document may be very deep."""
    depth, level = 0, [condition]
    while level := [inner for inner in level if isinstance(inner, Group)]:
        depth += 1
        level = [inner for group in level for inner in group.of]
    return depth


def kind_of(condition: Condition) -> str:
    """The `type` in the JSON, such as `bought`."""
    return str(condition.__struct_config__.tag)


def counts_articles(condition: Condition) -> bool:
    return isinstance(condition, Bought) and condition.count == "articles"


def counts_days(condition: Condition) -> bool:
    return isinstance(condition, Bought) and condition.count == "days"


def attributes_of(condition: Condition) -> set[str]:
    return {part.key for _, part in walk(condition) if isinstance(part, OfAttribute)}


def properties_of(condition: Condition) -> set[str]:
    parts = (part for _, part in walk(condition) if isinstance(part, SalesCondition | OfProduct))
    return {part.property.key for part in parts if part.property is not None}


def stores_of(condition: Condition) -> set[str]:
    parts = [part for _, part in walk(condition)]
    filters = [part.stores for part in parts if isinstance(part, SalesCondition | Consent)]
    filters += [part.any_of for part in parts if isinstance(part, OfStore)]
    return {store for stores in filters for store in stores}


def segments_of(condition: Condition) -> set[str]:
    return {part.id for _, part in walk(condition) if isinstance(part, InSegment)}


def campaigns_of(condition: Condition) -> set[str]:
    return {part.id for _, part in walk(condition) if isinstance(part, ReceivedCampaign)}


def order_referenced_segments(match: Condition, segments: Mapping[str, Condition | None]) -> list[str]:
    """List the segments that a condition refers to, directly or through other segments. Each segment comes after the
    segments to which its own condition refers.

    `segments` has the condition of each segment; references of a segment with None are not followed. The search is
    iterative, because a chain of segments may be longer than the recursion limit. Saved segments never form a cycle; in
    a cycle one segment would come too early.
    """
    order: dict[str, None] = {}
    visited: set[str] = set()
    stack = sorted(segments_of(match))
    while stack:
        segment_id = stack[-1]
        inner = segments.get(segment_id)
        unvisited = set() if inner is None or segment_id in visited else segments_of(inner) - visited
        visited.add(segment_id)
        if unvisited:
            stack += sorted(unvisited)
        else:
            order.setdefault(stack.pop())
    return [segment_id for segment_id in order if segment_id in segments]
