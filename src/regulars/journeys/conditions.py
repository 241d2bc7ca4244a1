"""Whether a condition holds for what a run sees. No I/O: whoever asks has looked everything up."""

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
    """Whether a customer is in a segment; in one with a fault nobody is."""

    version: int
    is_in: bool
    is_sound: bool = True


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


def holds(condition: Condition | None, seen: Seen) -> bool:
    """A missing condition holds. One that asks for a segment that is gone or has a fault does not, as a whole: under
    *none* it would otherwise hold for everybody."""
    return all(_is_sound(part, seen) for part in parts(condition)) and _holds(condition, seen)


def _is_sound(part: Condition, seen: Seen) -> bool:
    return not isinstance(part, OfSegment) or (part.id in seen.segments and seen.segments[part.id].is_sound)


def _holds(condition: Condition | None, seen: Seen) -> bool:
    match condition:
        case None:
            return True
        case All(of=several):
            return all(_holds(it, seen) for it in several)
        case Any(of=several):
            return any(_holds(it, seen) for it in several)
        case Nothing(of=several):
            return not any(_holds(it, seen) for it in several)
        case Subscribed(is_=wanted):
            return seen.is_subscribed is wanted
        case Purchases():
            found = seen.purchases.get(condition.in_days, 0)
            return found == 0 if condition.none else found >= condition.at_least
        case OfAttribute():
            return _compare(condition, seen.attributes.get(condition.key), condition.key, seen.attribute_types, seen)
        case OfSegment(id=segment_id, is_=wanted):
            return seen.segments[segment_id].is_in is wanted
        case _:
            return seen.sale is not None and _holds_for_sale(condition, seen.sale, seen)


def parts(condition: Condition | None) -> Iterator[Condition]:
    """The condition and everything inside it."""
    if condition is None:
        return
    yield condition
    if isinstance(condition, All | Any | Nothing):
        for inner in condition.of:
            yield from parts(inner)


def _holds_for_sale(condition: OfStore | OfAmount | OfCurrency | OfProduct, sale: SeenSale, seen: Seen) -> bool:
    match condition:
        case OfStore(any_of=stores):
            return sale.store_id in stores or sale.store_external_id in stores
        case OfCurrency(any_of=currencies):
            return sale.currency in currencies
        case OfAmount(at_least_cents=least, at_most_cents=most):
            return (least is None or sale.amount_cents >= least) and (most is None or sale.amount_cents <= most)
        case OfProduct():
            products = [product for line in sale.lines if (product := line.get("product"))]
            return any(_is_wanted(condition, product, seen) for product in products)


def _is_wanted(condition: OfProduct, product: Mapping[str, Json], seen: Seen) -> bool:
    if condition.any_of and product.get("external_id") not in condition.any_of:
        return False
    if condition.property is None:
        return True
    value = (product.get("properties") or {}).get(condition.property)
    spelled = None if value is None else spell(value)
    return _compare(condition, spelled, condition.property, seen.property_types, seen)


def _compare(condition: OfAttribute | OfProduct, value: str | None, key: str, types: Types, seen: Seen) -> bool:
    declared, allowed_values = types.get(key, (AttributeType.TEXT, ()))
    return condition.comparison is not None and compare(
        condition.comparison,
        value,
        declared=declared,
        allowed_values=allowed_values,
        wanted=condition.value,
        several=condition.values,
        now=seen.now,
        zone=ZoneInfo(seen.zone),
    )
