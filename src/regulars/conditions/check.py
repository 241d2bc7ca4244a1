"""Finds the faults of conditions, each with its path in the definition (its place) and a message for the user.

The same check runs when a definition is saved and each time it is evaluated, because in the meantime the type of a key
may have changed, or a segment or store may have been deleted. A tree with a fault is not evaluated at all. If only the
faulty condition were false, a *none* group around it would be true for every customer.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.catalog.model import AttributeType, interpret
from regulars.conditions import tree
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE, SEVERAL_VALUES
from regulars.kit.ids import CAMPAIGN, JOURNEY

FAULTS_MAX: Final = 50
EMPTY_GROUP: Final = "The group is empty."
EMPTY_TEXT: Final = "A value is empty; remove it. For customers without a value, use “is set” or “is not set”."
DECIMALS_MAX: Final = 6
BETWEEN_VALUES: Final = 2
DATE_CHARACTERS: Final = len("2026-11-15")
# Texts and journey runs are deleted some weeks after this age, without an event that would update segments.
TEXTS_DAYS_MAX: Final = 730
TEXTS_OF_JOURNEY_DAYS_MAX: Final = 365
# The declared type of each attribute or product property, by its key, and the values that an enum allows.
Types = Mapping[str, tuple[AttributeType, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One error in a definition; `place` is its path, such as `match.of[1].values`.

    A definition with warnings can be saved. With any fault, even a warning, the tree is not evaluated until it
    is fixed.
    """

    place: str
    message: str
    is_warning: bool = False


class ReferencedSegment(NamedTuple):
    """A segment that a condition refers to, in its current version; a segment with a fault has no members."""

    name: str
    version: int
    match: tree.Group
    faults: tuple[Fault, ...] = ()
    # Those of the faults that stand for stored parts which are not valid; `match` is without these parts.
    damage: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionContext:
    """The data that conditions refer to: key types, stores, segments, and the time zone of calendar days."""

    attributes: Types = field(default_factory=dict)
    properties: Types = field(default_factory=dict)
    stores: Mapping[str, UUID] = field(default_factory=dict)
    # By id; including the segments to which a referenced segment refers itself.
    segments: Mapping[str, ReferencedSegment] = field(default_factory=dict)
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))


def find_faults(
    condition: tree.Condition, context: ConditionContext, *, root: str = "match", no_ticket: str | None = None
) -> list[Fault]:
    """Find the first FAULTS_MAX faults. `no_ticket` says why conditions on the ticket that triggered a journey are not
    allowed; None allows them."""
    return list(_check(condition, context, root, no_ticket))[:FAULTS_MAX]


def place_of(root: str, path: tree.Path) -> str:
    """The path of a condition in the definition, such as `match.of[1]`."""
    return root + "".join(f".of[{number}]" for number in path)


def find_size_faults(condition: tree.Condition, root: str) -> Iterator[Fault]:
    """The size limits that the condition exceeds."""
    leaves = sum(not isinstance(part, tree.Group) for _, part in tree.walk(condition))
    if leaves > tree.CONDITIONS_MAX:
        yield Fault(root, f"A definition has at most {tree.CONDITIONS_MAX} conditions; this one has {leaves}.")
    if tree.depth_of(condition) > tree.DEPTH_MAX:
        yield Fault(root, f"Groups are nested at most {tree.DEPTH_MAX} deep.")


def find_empty_texts(condition: tree.Condition, root: str = "match") -> Iterator[Fault]:
    """Empty texts that conditions compare with. They cannot be saved; one that is stored is evaluated as it is."""
    for path, part in tree.walk(condition):
        for place, texts in _texts_of(part):
            if not all(text.strip() for text in texts):
                yield Fault(f"{place_of(root, path)}.{place}", EMPTY_TEXT)


def _texts_of(condition: tree.Condition) -> Iterator[tuple[str, Collection[str]]]:
    """The texts that a condition compares with, by their place in it."""
    if isinstance(condition, tree.OfAttribute):
        yield from _texts_of_comparison(condition, "")
    elif isinstance(condition, tree.SalesCondition | tree.OfProduct) and condition.property is not None:
        yield from _texts_of_comparison(condition.property, "property.")
    if isinstance(condition, tree.SalesCondition):
        yield "stores", condition.stores
        yield "products", condition.products
    if isinstance(condition, tree.OfStore | tree.OfProduct):
        yield "any_of", condition.any_of


def _texts_of_comparison(compared: tree.ValueComparison, place: str) -> Iterator[tuple[str, Collection[str]]]:
    if compared.comparison in SEVERAL_VALUES:
        yield f"{place}values", compared.values
    elif compared.comparison in ONE_VALUE and compared.value is not None:
        yield f"{place}value", (compared.value,)


def _check(condition: tree.Condition, context: ConditionContext, root: str, no_ticket: str | None) -> Iterator[Fault]:
    yield from find_size_faults(condition, root)
    for path, part in tree.walk(condition):
        place = place_of(root, path)
        if no_ticket is not None and isinstance(part, tree.TicketCondition):
            yield Fault(place, f"A condition is about the ticket, and {no_ticket}.")
        yield from _check_condition(part, place, context)


def _check_condition(condition: tree.Condition, place: str, context: ConditionContext) -> Iterator[Fault]:
    match condition:
        case tree.All(of=()) | tree.Any(of=()) | tree.Nothing(of=()):
            yield Fault(place, EMPTY_GROUP)
        case tree.OfAttribute():
            yield from _check_key(condition, place, context.attributes, noun="attribute")
        case tree.Consent():
            yield from _check_consent(condition, place, context)
        case tree.Texts() | tree.ReceivedCampaign():
            yield from _check_texts(condition, place)
        case tree.Created(when=when):
            yield from _check_when(when, f"{place}.when", day_may_be_missing=False)
        case tree.Country(any_of=()):
            yield Fault(f"{place}.any_of", "Name at least one country.")
        case tree.InSegment(id=segment_id):
            yield from _check_segment(segment_id, f"{place}.id", context)
        case _ if isinstance(condition, tree.SalesCondition):
            yield from _check_sales(condition, place, context)
        case _ if isinstance(condition, tree.TicketCondition):
            yield from _check_ticket(condition, place, context)
        case _:
            pass


def _check_ticket(condition: tree.TicketCondition, place: str, context: ConditionContext) -> Iterator[Fault]:
    match condition:
        case tree.OfStore(any_of=stores):
            yield from _check_stores(stores, f"{place}.any_of", context)
        case tree.OfAmount(at_least_cents=low, at_most_cents=high):
            yield from _check_limits(low, high, place)
        case tree.OfProduct(any_of=(), property=None):
            yield Fault(place, "The product has no condition; name products or a property.")
        case tree.OfProduct(property=compared) if compared is not None:
            yield from _check_key(compared, f"{place}.property", context.properties, noun="product property")
        case _:
            pass


def _check_segment(segment_id: str, place: str, context: ConditionContext) -> Iterator[Fault]:
    if segment_id not in context.segments:
        yield Fault(place, f"There is no segment {segment_id}.")
    elif faults := context.segments[segment_id].faults:
        yield Fault(place, f"The segment {segment_id} has no members: {faults[0].message}", is_warning=True)


def _check_consent(condition: tree.Consent, place: str, context: ConditionContext) -> Iterator[Fault]:
    if condition.state in {"never_asked", "do_not_contact"} and (
        condition.sources or condition.stores or condition.since is not None
    ):
        yield Fault(place, "Source, store and since go with may_be_texted and withdrawn.")
    yield from _check_stores(condition.stores, f"{place}.stores", context)
    if condition.since is not None:
        yield from _check_when(condition.since, f"{place}.since", day_may_be_missing=False)


def _check_texts(condition: tree.Texts | tree.ReceivedCampaign, place: str) -> Iterator[Fault]:
    if isinstance(condition, tree.ReceivedCampaign):
        if CAMPAIGN.decode(condition.id) is None:
            yield Fault(f"{place}.id", f"'{condition.id}' is not the id of a campaign.")
    elif condition.journey is not None and JOURNEY.decode(condition.journey) is None:
        yield Fault(f"{place}.journey", f"'{condition.journey}' is not the id of a journey.")
    elif condition.journey is not None and condition.days > TEXTS_OF_JOURNEY_DAYS_MAX:
        message = f"The journey of a text is stored for {TEXTS_OF_JOURNEY_DAYS_MAX} days; enter at most that many."
        yield Fault(f"{place}.days", message)
    elif condition.days > TEXTS_DAYS_MAX:
        yield Fault(f"{place}.days", f"Texts are stored for {TEXTS_DAYS_MAX} days; enter at most that many.")


def _check_sales(condition: tree.SalesCondition, place: str, context: ConditionContext) -> Iterator[Fault]:
    yield from _check_stores(condition.stores, f"{place}.stores", context)
    if condition.property is not None:
        yield from _check_key(condition.property, f"{place}.property", context.properties, noun="product property")
    if isinstance(condition, tree.FirstPurchase | tree.LastPurchase):
        yield from _check_when(condition.when, f"{place}.when", day_may_be_missing=True)
        return
    if condition.window is not None:
        yield from _check_window(condition.window, f"{place}.window")
    low, high, none = _limits_of(condition)
    if none and (low is not None or high is not None):
        yield Fault(place, "Use none or a limit, not both.")
    may_have_no_limit = none or (isinstance(condition, tree.CountCondition) and not tree.counts_articles(condition))
    yield from _check_limits(low, high, place, may_be_none=may_have_no_limit)
    limits = [limit for limit in (low, high) if limit is not None]
    is_count = isinstance(condition, tree.Bought) and condition.count != "articles"
    if tree.counts_articles(condition) and any(_count_decimals(limit) > DECIMALS_MAX for limit in limits):
        yield Fault(place, f"A quantity has at most {DECIMALS_MAX} decimals.")
    elif is_count and any(limit < 0 or limit % 1 for limit in limits):
        unit = "days" if tree.counts_days(condition) else "purchases"
        yield Fault(place, f"A number of {unit} is a whole number, 0 or more.")


def _check_limits(low: float | None, high: float | None, place: str, *, may_be_none: bool = False) -> Iterator[Fault]:
    if low is not None and high is not None and low > high:
        yield Fault(place, "The lower limit is above the upper one.")
    if low is None and high is None and not may_be_none:
        yield Fault(place, "Enter at least, at most, or both.")


def _limits_of(condition: tree.WindowedCondition) -> tuple[float | None, float | None, bool]:
    """The lower limit, the upper limit, and whether there must be none."""
    match condition:
        case tree.Spend():
            return condition.at_least_cents, condition.at_most_cents, condition.none
        case tree.TicketValue():
            return condition.at_least_cents, condition.at_most_cents, False
        case _:
            return condition.at_least, condition.at_most, condition.none


def _count_decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _check_stores(stores: tuple[str, ...], place: str, context: ConditionContext) -> Iterator[Fault]:
    for store in stores:
        if store not in context.stores:
            yield Fault(place, f"There is no store {store}.")


def _check_window(window: tree.Window, place: str) -> Iterator[Fault]:
    if (window.last_days is None) is (window.from_ is None and window.to is None):
        yield Fault(place, "Use last_days, or from and to.")
    elif window.last_days is None:
        if window.from_ is None or window.to is None:
            yield Fault(place, "Enter both from and to.")
        elif window.from_ > window.to:
            yield Fault(place, "The first day is after the last one.")


def _check_when(when: tree.When, place: str, *, day_may_be_missing: bool) -> Iterator[Fault]:
    match when.comparison:
        case "before" | "after":
            if when.date is None:
                yield Fault(f"{place}.date", "The comparison needs a date.")
        case "between":
            if when.from_ is None or when.to is None:
                yield Fault(place, "Between needs from and to.")
            elif when.from_ > when.to:
                yield Fault(place, "The first day is after the last one.")
        case _:
            if when.days is None:
                yield Fault(f"{place}.days", "The comparison needs a number of days.")
    if day_may_be_missing and when.comparison == "not_in_last_days" and when.without_value is None:
        yield Fault(f"{place}.without_value", "Set whether customers who never bought match: true or false.")


def _check_key(compared: tree.ValueComparison, place: str, types: Types, *, noun: str) -> Iterator[Fault]:
    if compared.key not in types:
        yield Fault(f"{place}.key", f"No {noun} is called {compared.key}.", is_warning=True)
        return
    declared, allowed_values = types[compared.key]
    comparison = compared.comparison
    if comparison not in COMPARISONS_BY_TYPE[declared]:
        offered = ", ".join(sorted(COMPARISONS_BY_TYPE[declared]))
        message = (
            f"The {noun} {compared.key} is of type {declared.value} and does not offer {comparison}, only {offered}."
        )
        yield Fault(f"{place}.comparison", message)
        return
    if comparison in NEGATIVE and compared.without_value is None:
        owners = "customers" if noun == "attribute" else "products"
        yield Fault(f"{place}.without_value", f"Set whether {owners} without a value match: true or false.")
    if comparison in OF_DAYS and compared.days is None:
        yield Fault(f"{place}.days", "The comparison needs a number of days.")
    if comparison in ONE_VALUE:
        values = () if compared.value is None else (compared.value,)
        yield from _check_values(compared, values, f"{place}.value", declared, allowed_values)
    elif comparison in SEVERAL_VALUES:
        yield from _check_values(compared, compared.values, f"{place}.values", declared, allowed_values)


def _check_values(
    compared: tree.ValueComparison,
    values: tuple[str, ...],
    place: str,
    declared: AttributeType,
    allowed_values: tuple[str, ...],
) -> Iterator[Fault]:
    if compared.comparison == "between" and len(values) != BETWEEN_VALUES:
        yield Fault(place, "Between needs two values.")
        return
    if not values:
        yield Fault(place, "The comparison needs a value.")
        return
    for value in values:
        if compared.comparison in {"contains", "starts_with"} and not value.strip():
            yield Fault(place, "The comparison needs a text that is not empty.")
        elif interpret(declared, value, allowed_values=allowed_values) is None:
            yield Fault(place, _describe_unparsable(value, compared.key, declared, allowed_values))
            return
    if compared.comparison == "between" and not _is_in_order(values, declared):
        yield Fault(place, "The first value is above the second.")


def _is_in_order(values: tuple[str, ...], declared: AttributeType) -> bool:
    low, high = (interpret(declared, value) for value in values)
    if isinstance(low, Decimal) and isinstance(high, Decimal):
        return low <= high
    # Dates are compared as text. Only a time near midnight may fall on another day in the organization's zone.
    return values[0].strip()[:DATE_CHARACTERS] <= values[1].strip()[:DATE_CHARACTERS]


def _describe_unparsable(value: str, key: str, declared: AttributeType, allowed: Collection[str]) -> str:
    if declared is AttributeType.ENUM:
        return f"'{value}' is none of the values of {key}: {', '.join(sorted(allowed)[:20])}."
    if declared is AttributeType.DATE:
        return f"'{value}' is not a date such as 2026-11-15."
    return f"'{value}' cannot be read as the type of {key}, which is {declared.value}."


def is_valid_comparison(compared: tree.ValueComparison, types: Types) -> bool:
    """Whether the key is known, and its type offers the comparison with these values."""
    return next(_check_key(compared, "", types, noun=""), None) is None


def blocking_faults(faults: Collection[Fault]) -> list[Fault]:
    """The faults that prevent saving."""
    return [fault for fault in faults if not fault.is_warning]
