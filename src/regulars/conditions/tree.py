"""The condition tree of segments and journeys. `docs/conditions.md` describes it; JSON Schemas are made from the types.

Groups and leaves about a customer belong to both. Leaves about the ticket that triggered a journey stand here too, for
a group can hold them; a segment that names one has a fault.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from regulars.profiles.model import AttributeKey as Key
from regulars.sales.model import Currency

PropertyKey = Annotated[str, Meta(min_length=1, max_length=2_000)]
Values = Annotated[tuple[str, ...], Meta(max_length=200)]
Reference = Annotated[str, Meta(min_length=1, max_length=255)]
Several = Annotated[tuple[Reference, ...], Meta(max_length=200)]
Days = Annotated[int, Meta(ge=1, le=3_650, description="Calendar days, today included.")]
Cents = Annotated[int, Meta(ge=-(1 << 53) + 1, le=(1 << 53) - 1)]
AmountCents = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Times = Annotated[int, Meta(ge=0, le=1_000_000)]
Quantity = Annotated[int, Meta(ge=-(10**9), le=10**9)] | Annotated[float, Meta(ge=-1e9, le=1e9)]
CountryCode = Annotated[str, Meta(pattern="^[A-Z]{2}$")]
ConsentState = Literal["may_be_texted", "withdrawn", "never_asked", "do_not_contact"]
ConsentSource = Literal[
    "LOYALTY_PROGRAM", "POINT_OF_SALE", "WEBSITE", "CHECKOUT", "MOBILE_APP", "SMS_KEYWORD", "QR_CODE", "CALL_CENTER",
    "PAPER_FORM", "EVENT", "SOCIAL", "IMPORT", "OTHER",
]  # fmt: skip
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
    """Every one of them holds."""

    of: tuple["Condition", ...] = ()


class Any(_Condition, frozen=True, kw_only=True, tag="any"):
    """At least one of them holds."""

    of: tuple["Condition", ...] = ()


class Nothing(_Condition, frozen=True, kw_only=True, tag="none"):
    """None of them holds."""

    of: tuple["Condition", ...] = ()


class OfAttribute(_Condition, frozen=True, kw_only=True, tag="attribute"):
    """The customer's attribute, read by its declared type.

    `value` goes with comparisons of one value, `values` with any_of, none_of and between, `days` with those of days.
    A negative comparison (is_not, none_of, not_in_last_days) says whether customers without a value count.
    """

    key: Key
    comparison: Comparison
    value: str | None = None
    values: Values = ()
    days: Days | None = None
    without_value: bool | None = None


class OfProperty(_Strict, frozen=True, kw_only=True):
    """A property of the product on a line, read by its declared type; the members are those of an attribute."""

    key: PropertyKey
    comparison: Comparison
    value: str | None = None
    values: Values = ()
    days: Days | None = None
    without_value: bool | None = None


class When(_Strict, frozen=True, kw_only=True):
    """A calendar day in the organization's zone. `date` goes with before and after, `from` and `to` with between."""

    comparison: DateComparison
    date: dt.date | None = None
    from_: dt.date | None = msgspec.field(name="from", default=None)
    to: dt.date | None = None
    days: Days | None = None
    without_value: bool | None = None


class Window(_Strict, frozen=True, kw_only=True):
    """Today and the days before it, or the days from one to another; both ends belong to it."""

    last_days: Days | None = None
    from_: dt.date | None = msgspec.field(name="from", default=None)
    to: dt.date | None = None


class Consent(_Condition, frozen=True, kw_only=True, tag="consent"):
    """Whether the customer may be texted, judged as `/v1/subscriptions/check` does (`"is": false`: any other state).

    Source, store and since belong to the consent that decides, or to the withdrawal.
    """

    state: ConsentState
    is_: bool = msgspec.field(name="is", default=True)
    sources: Annotated[tuple[ConsentSource, ...], Meta(max_length=13)] = ()
    stores: Several = ()
    since: When | None = None


class _OfSales(_Condition, frozen=True, kw_only=True):
    """Which sales, and which of their lines: in these stores, of one of these products, with such a property."""

    stores: Several = ()
    products: Several = ()
    property: OfProperty | None = None


class _InWindow(_OfSales, frozen=True, kw_only=True):
    # None: ever.
    window: Window | None = None


class Bought(_InWindow, frozen=True, kw_only=True, tag="bought"):
    """So many purchases; once is enough unless it says otherwise. Or purchases on so many calendar days, or so many
    articles, those returned subtracted."""

    count: Literal["tickets", "days", "articles"] = "tickets"
    at_least: Quantity | None = None
    at_most: Quantity | None = None
    none: bool = False


class Returned(_InWindow, frozen=True, kw_only=True, tag="returned"):
    """So many returns; once is enough unless it says otherwise."""

    at_least: Times | None = None
    at_most: Times | None = None
    none: bool = False


class Spend(_InWindow, frozen=True, kw_only=True, tag="spend"):
    """Purchases less returns, in one currency; by product, the totals of its lines. None: no more than 0."""

    currency: Currency
    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None
    none: bool = False


class TicketValue(_InWindow, frozen=True, kw_only=True, tag="ticket_value"):
    """What was paid for any one purchase."""

    currency: Currency
    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None


class FirstPurchase(_OfSales, frozen=True, kw_only=True, tag="first_purchase"):
    when: When


class LastPurchase(_OfSales, frozen=True, kw_only=True, tag="last_purchase"):
    when: When


class Texts(_Condition, frozen=True, kw_only=True, tag="texts"):
    """Got a text, or got none, in the last days; of one journey where it is named."""

    days: Days
    got: bool = True
    journey: Reference | None = None


class ReceivedCampaign(_Condition, frozen=True, kw_only=True, tag="received_campaign"):
    """Received this campaign: its text was sent or delivered, or its outcome is unknown (`"is": false`: did not)."""

    id: Reference
    is_: bool = msgspec.field(name="is", default=True)


class Created(_Condition, frozen=True, kw_only=True, tag="created"):
    """When the customer became known."""

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
    """The ticket was made in one of these stores, by external_id or canonical id."""

    any_of: Annotated[tuple[str, ...], Meta(min_length=1, max_length=200)]


class OfAmount(_Condition, frozen=True, kw_only=True, tag="amount"):
    """What was paid for the ticket, or paid back."""

    at_least_cents: AmountCents | None = None
    at_most_cents: AmountCents | None = None


class OfCurrency(_Condition, frozen=True, kw_only=True, tag="currency"):
    """The ticket was paid in one of these."""

    any_of: Annotated[tuple[Currency, ...], Meta(min_length=1)]


class OfProduct(_Condition, frozen=True, kw_only=True, tag="product"):
    """A line of the ticket has one of these products, with such a property where there is one."""

    any_of: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    property: OfProperty | None = None


Group = All | Any | Nothing
OfTimes = Bought | Returned
OfSales = Bought | Returned | Spend | TicketValue | FirstPurchase | LastPurchase
OfTicket = OfStore | OfAmount | OfCurrency | OfProduct
Leaf = OfAttribute | Consent | OfSales | Texts | ReceivedCampaign | Created | Named | Country | InSegment | OfTicket
Condition = Group | Leaf
ValueComparison = OfAttribute | OfProperty
Path = tuple[int, ...]


def walk(condition: Condition, path: Path = ()) -> Iterator[tuple[Path, Condition]]:
    """The condition and everything inside it, each with its place: () is the whole, (1, 0) the first of its second."""
    yield path, condition
    if isinstance(condition, Group):
        for number, inner in enumerate(condition.of):
            yield from walk(inner, (*path, number))


def depth_of(condition: Condition) -> int:
    """How deep groups are nested, found without going down with them: a document may be made to be very deep."""
    depth, level = 0, [condition]
    while level := [inner for inner in level if isinstance(inner, Group)]:
        depth += 1
        level = [inner for group in level for inner in group.of]
    return depth


def kind_of(condition: Condition) -> str:
    return str(condition.__struct_config__.tag)


def is_net_articles(condition: Condition) -> bool:
    return isinstance(condition, Bought) and condition.count == "articles"


def is_of_days(condition: Condition) -> bool:
    return isinstance(condition, Bought) and condition.count == "days"


def attributes_of(condition: Condition) -> set[str]:
    return {part.key for _, part in walk(condition) if isinstance(part, OfAttribute)}


def properties_of(condition: Condition) -> set[str]:
    parts = (part for _, part in walk(condition) if isinstance(part, OfSales | OfProduct))
    return {part.property.key for part in parts if part.property is not None}


def stores_of(condition: Condition) -> set[str]:
    parts = [part for _, part in walk(condition)]
    named = [part.stores for part in parts if isinstance(part, OfSales | Consent)]
    return {store for stores in [*named, *(it.any_of for it in parts if isinstance(it, OfStore))] for store in stores}


def segments_of(condition: Condition) -> set[str]:
    return {part.id for _, part in walk(condition) if isinstance(part, InSegment)}


def campaigns_of(condition: Condition) -> set[str]:
    return {part.id for _, part in walk(condition) if isinstance(part, ReceivedCampaign)}


def innermost_first(match: Condition, segments: Mapping[str, Condition | None]) -> list[str]:
    """The segments that a match refers to, directly or through other segments, each after those it refers to itself.

    A segment whose condition is None is not followed. The search is iterative, because a chain of segments may be
    longer than the recursion limit. In a cycle, which saved segments never form, one segment comes before those it
    refers to.
    """
    order: dict[str, None] = {}
    begun: set[str] = set()
    way = sorted(segments_of(match))
    while way:
        segment_id = way[-1]
        inner = segments.get(segment_id)
        ahead = set() if inner is None or segment_id in begun else segments_of(inner) - begun
        begun.add(segment_id)
        if ahead:
            way += sorted(ahead)
        else:
            order.setdefault(way.pop())
    return [segment_id for segment_id in order if segment_id in segments]
