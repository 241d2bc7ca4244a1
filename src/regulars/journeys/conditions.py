"""Whether a condition holds for what a run sees. No I/O: the caller has looked everything up.

There are three answers. A condition holds, or it does not, or it cannot be judged. It cannot be judged for anybody
while something it stands on is wrong: a retyped attribute, a segment or a store that is gone (`condition_check.py`).
The whole filter or branch then has no answer, whatever groups stand around the fault: under *none* a plain False would
hold for all customers. A value of one customer that its type cannot read is unknown for that customer only: it makes
no condition hold, and no *none* either.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any as Json
from zoneinfo import ZoneInfo

from regulars.catalog.model import AttributeType, spell
from regulars.journeys.compare import compare
from regulars.journeys.definition import (
    All,
    Any,
    Condition,
    Nothing,
    OfAmount,
    OfAttribute,
    OfCurrency,
    OfProduct,
    OfSegment,
    OfStore,
    Purchases,
    Subscribed,
)

Types = Mapping[str, tuple[AttributeType, Collection[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSale:
    """The sale that brought the customer in."""

    store_id: str
    store_external_id: str
    amount_cents: int
    currency: str
    lines: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSegment:
    """Whether a customer is in a segment, by its version of that moment."""

    version: int
    is_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything a condition may ask about."""

    now: datetime
    zone: str = "UTC"
    sale: SeenSale | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    attribute_types: Types = field(default_factory=dict)
    property_types: Types = field(default_factory=dict)
    is_subscribed: bool = False
    # Earlier purchases in the last so many days, for every number of days that the definition names.
    purchases: Mapping[int, int] = field(default_factory=dict)
    # The segments that the definition names: whether the customer is in, and by which version.
    segments: Mapping[str, "SeenSegment"] = field(default_factory=dict)
    # What cannot be judged now, and why, by place: `filter`, or the id of a branch.
    unjudgeable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CannotJudge:
    """Neither yes nor no, and why."""

    fault: str


def judge(place: str, condition: Condition | None, seen: Seen) -> bool | CannotJudge:
    """A missing condition holds."""
    fault = seen.unjudgeable.get(place)
    return evaluate(condition, seen) is True if fault is None else CannotJudge(fault)


def evaluate(condition: Condition | None, seen: Seen) -> bool | None:
    """None: it is not known, because a value cannot be read or is gone."""
    match condition:
        case None:
            return True
        case All(of=several):
            return _all([evaluate(it, seen) for it in several])
        case Any(of=several):
            return _any([evaluate(it, seen) for it in several])
        case Nothing(of=several):
            found = _any([evaluate(it, seen) for it in several])
            return None if found is None else not found
        case Subscribed(is_=wanted):
            return seen.is_subscribed is wanted
        case Purchases():
            times = seen.purchases.get(condition.in_days, 0)
            return times == 0 if condition.none else times >= condition.at_least
        case OfAttribute():
            return _compare(condition, seen.attributes.get(condition.key), condition.key, seen.attribute_types, seen)
        case OfSegment(id=segment_id, is_=wanted):
            segment = seen.segments.get(segment_id)
            return None if segment is None else segment.is_in is wanted
        case _:
            return None if seen.sale is None else _evaluate_for_sale(condition, seen.sale, seen)


def _all(answers: list[bool | None]) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


def _any(answers: list[bool | None]) -> bool | None:
    if True in answers:
        return True
    return None if None in answers else False


def parts(condition: Condition | None) -> Iterator[Condition]:
    """The condition and everything inside it."""
    if condition is None:
        return
    yield condition
    if isinstance(condition, All | Any | Nothing):
        for inner in condition.of:
            yield from parts(inner)


def _evaluate_for_sale(
    condition: OfStore | OfAmount | OfCurrency | OfProduct, sale: SeenSale, seen: Seen
) -> bool | None:
    match condition:
        case OfStore(any_of=stores):
            return sale.store_id in stores or sale.store_external_id in stores
        case OfCurrency(any_of=currencies):
            return sale.currency in currencies
        case OfAmount(at_least_cents=least, at_most_cents=most):
            return (least is None or sale.amount_cents >= least) and (most is None or sale.amount_cents <= most)
        case OfProduct():
            products = [product for line in sale.lines if (product := line.get("product"))]
            return _any([_is_wanted(condition, product, seen) for product in products])


def _is_wanted(condition: OfProduct, product: Mapping[str, Json], seen: Seen) -> bool | None:
    if condition.any_of and product.get("external_id") not in condition.any_of:
        return False
    if condition.property is None:
        return True
    value = (product.get("properties") or {}).get(condition.property)
    spelled = None if value is None else spell(value)
    return _compare(condition, spelled, condition.property, seen.property_types, seen)


def _compare(condition: OfAttribute | OfProduct, value: str | None, key: str, types: Types, seen: Seen) -> bool | None:
    if condition.comparison is None or key not in types:
        return None
    declared, allowed_values = types[key]
    return compare(
        condition.comparison,
        value,
        declared=declared,
        allowed_values=allowed_values,
        wanted=condition.value,
        several=condition.values,
        now=seen.now,
        zone=ZoneInfo(seen.zone),
    )
