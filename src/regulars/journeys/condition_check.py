"""Why a condition cannot be judged: every fault with its place, in words for people.

It is asked when a definition is saved or made live, and whenever a filter or a branch is evaluated: a catalog, a
segment or a store may have changed since. It knows conditions and what they stand on, and nothing else of journeys.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from regulars.catalog.model import AttributeType, interpret
from regulars.journeys.compare import NO_VALUE, OFFERED, SEVERAL
from regulars.journeys.conditions import Types, parts
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
)

CONDITIONS_MAX: Final = 50
DEPTH_MAX: Final = 5
_ABOUT_A_SALE: Final = (OfStore, OfAmount, OfCurrency, OfProduct)
_DAYS: Final = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Fault:
    """`place` is `filter`, `steps`, or the id of a step."""

    place: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What conditions stand on: the organization's catalogs, stores and segments."""

    attributes: Types
    properties: Types
    # The segments that exist, by id, each with what is wrong with it.
    segments: Mapping[str, str | None] = field(default_factory=dict)
    # The stores that exist, as the conditions name them.
    stores: Collection[str] = ()


def find_condition_excess(place: str, condition: Condition) -> Iterator[Fault]:
    """The limits of size that it breaks."""
    count = sum(1 for _ in parts(condition))
    if count > CONDITIONS_MAX:
        yield Fault(place, f"At most {CONDITIONS_MAX} conditions stand together, and here are {count}.")
    if _depth(condition) > DEPTH_MAX:
        yield Fault(place, f"Groups are nested at most {DEPTH_MAX} deep.")


def find_condition_faults(place: str, condition: Condition | None, known: Known, *, has_sale: bool) -> Iterator[Fault]:
    """`has_sale` says whether there is a ticket to ask about."""
    for part in parts(condition):
        if isinstance(part, _ABOUT_A_SALE) and not has_sale:
            yield Fault(place, "A condition asks about the ticket, and a journey that begins with a consent has none.")
        yield from _faults_of_part(place, part, known)


def _faults_of_part(place: str, part: Condition, known: Known) -> Iterator[Fault]:
    match part:
        case All(of=()) | Any(of=()) | Nothing(of=()):
            yield Fault(place, "A group of conditions is empty.")
        case OfAmount(at_least_cents=None, at_most_cents=None):
            yield Fault(place, "The amount has no limit; say at_least_cents or at_most_cents.")
        case Purchases(none=True, at_least=least) if least not in {0, 1}:
            yield Fault(place, "None and at least so many purchases exclude each other.")
        case OfStore(any_of=stores):
            yield from (Fault(place, f"There is no store {store}.") for store in stores if store not in known.stores)
        case OfSegment(id=segment_id):
            yield from _faults_of_segment(place, segment_id, known)
        case OfAttribute(key=key):
            yield from _faults_of_comparison(place, part, key, known.attributes, noun="attribute")
        case OfProduct(any_of=(), property=None):
            yield Fault(place, "The product has no condition; name products or a property.")
        case OfProduct(property=str() as key):
            yield from _faults_of_comparison(place, part, key, known.properties, noun="product property")
        case _:
            pass


def _faults_of_segment(place: str, segment_id: str, known: Known) -> Iterator[Fault]:
    if segment_id not in known.segments:
        yield Fault(place, f"There is no segment {segment_id}.")
    elif (fault := known.segments[segment_id]) is not None:
        yield Fault(place, f"The segment {segment_id} matches nobody: {fault}")


def _faults_of_comparison(
    place: str, part: OfAttribute | OfProduct, key: str, types: Types, *, noun: str
) -> Iterator[Fault]:
    if key not in types:
        yield Fault(place, f"No {noun} is called {key}.")
        return
    declared, allowed_values = types[key]
    comparison = part.comparison
    if comparison is None or comparison not in OFFERED[declared]:
        offered = ", ".join(sorted(OFFERED[declared]))
        yield Fault(place, f"The {noun} {key} is of type {declared.value}, which offers {offered}.")
        return
    if comparison in NO_VALUE:
        return
    wanted = part.values if comparison in SEVERAL else (() if part.value is None else (part.value,))
    if not wanted or (comparison == "between" and len(wanted) != 2):  # noqa: PLR2004  # from and to
        yield Fault(place, _what_is_missing(comparison))
        return
    if comparison == "in_last_days":
        if not _DAYS.fullmatch(wanted[0]) or not 1 <= int(wanted[0]) <= 3_650:  # noqa: PLR2004  # ten years
            yield Fault(place, "The number of days is from 1 to 3650.")
        return
    for value in wanted:
        if interpret(declared, value, allowed_values=allowed_values) is None:
            yield Fault(place, _unreadable(value, declared, allowed_values, noun=noun, key=key))


def _what_is_missing(comparison: str) -> str:
    if comparison == "between":
        return "Between needs two values."
    return "The comparison needs values." if comparison in SEVERAL else "The comparison needs a value."


def _unreadable(value: str, declared: AttributeType, allowed: Collection[str], *, noun: str, key: str) -> str:
    if declared is AttributeType.ENUM:
        return f"'{value}' is none of the values of the {noun} {key}: {', '.join(sorted(allowed)[:20])}."
    return f"'{value}' cannot be read as the type of the {noun} {key}, which is {declared.value}."


def _depth(condition: Condition) -> int:
    if isinstance(condition, All | Any | Nothing):
        return 1 + max((_depth(inner) for inner in condition.of), default=0)
    return 0
