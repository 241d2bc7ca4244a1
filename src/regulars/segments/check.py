"""What is wrong with a definition: every fault with its place, in words for people.

The same look decides about a segment that was saved long ago. A key may have been given another type since, and a
comparison that no longer exists must not quietly hold for nobody: under *none* it would hold for everybody. So a
segment with any fault matches nobody until it is mended.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from regulars.catalog.model import AttributeType, interpret
from regulars.kit.ids import JOURNEY
from regulars.segments.definition import (
    CONDITIONS_MAX,
    DEPTH_MAX,
    All,
    Any,
    Articles,
    Condition,
    Consent,
    Country,
    Created,
    FirstPurchase,
    Group,
    InSegment,
    LastPurchase,
    Nothing,
    OfAttribute,
    OfProperty,
    OfSales,
    OfTimes,
    Path,
    Spend,
    Texts,
    TicketValue,
    When,
    Window,
    depth_of,
    walk,
)
from regulars.segments.errors import Fault
from regulars.segments.values import NEGATIVE, OF_DAYS, OFFERED, ONE_VALUE, SEVERAL_VALUES

FAULTS_MAX: Final = 50
EMPTY_GROUP: Final = "The group is empty."
DECIMALS_MAX: Final = 6
BOTH_ENDS: Final = 2
# Texts and runs of journeys are deleted some weeks later than this, and nobody is told.
TEXTS_DAYS_MAX: Final = 730
TEXTS_OF_JOURNEY_DAYS_MAX: Final = 365
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Types = Mapping[str, tuple[AttributeType, Collection[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the organization has: its catalogs, its stores, and its other segments, each with what is wrong with it."""

    attributes: Types = field(default_factory=dict)
    properties: Types = field(default_factory=dict)
    stores: Collection[str] = ()
    segments: Mapping[str, str | None] = field(default_factory=dict)


def find_faults(match: Group, known: Known) -> list[Fault]:
    return list(_faults(match, known))[:FAULTS_MAX]


def place_of(path: Path, member: str = "") -> str:
    """Where a condition stands in the definition."""
    return "match" + "".join(f".of[{number}]" for number in path) + (f".{member}" if member else "")


def _faults(match: Group, known: Known) -> Iterator[Fault]:
    every = list(walk(match))
    leaves = sum(not isinstance(condition, Group) for _, condition in every)
    if leaves > CONDITIONS_MAX:
        yield Fault("match", f"A segment has at most {CONDITIONS_MAX} conditions, and this one has {leaves}.")
    if depth_of(match) > DEPTH_MAX:
        yield Fault("match", f"Groups are nested at most {DEPTH_MAX} deep.")
    for path, condition in every:
        yield from _faults_of(condition, path, known)


def _faults_of(condition: Condition, path: Path, known: Known) -> Iterator[Fault]:
    place = place_of(path)
    match condition:
        case All(of=()) | Any(of=()) | Nothing(of=()):
            yield Fault(place, EMPTY_GROUP)
        case OfAttribute():
            yield from _of_comparison(condition, place, known.attributes, noun="attribute")
        case Consent():
            yield from _of_consent(condition, place, known)
        case Texts():
            yield from _of_texts(condition, place)
        case Created(when=when):
            yield from _of_when(when, f"{place}.when", may_be_missing=False)
        case Country(any_of=()):
            yield Fault(f"{place}.any_of", "Name at least one country.")
        case InSegment(id=wanted):
            yield from _of_segment(wanted, f"{place}.id", known)
        case _ if isinstance(condition, OfSales):
            yield from _of_sales(condition, place, known)
        case _:
            pass


def _of_segment(wanted: str, place: str, known: Known) -> Iterator[Fault]:
    if wanted not in known.segments:
        yield Fault(place, f"There is no segment {wanted}.")
    elif (why := known.segments[wanted]) is not None:
        yield Fault(place, f"The segment {wanted} matches nobody: {why}", is_warning=True)


def _of_consent(condition: Consent, place: str, known: Known) -> Iterator[Fault]:
    if condition.state in {"never_asked", "do_not_contact"} and (
        condition.sources or condition.stores or condition.since is not None
    ):
        yield Fault(place, "Source, store and since go with may_be_texted and withdrawn.")
    yield from _of_stores(condition.stores, f"{place}.stores", known)
    if condition.since is not None:
        yield from _of_when(condition.since, f"{place}.since", may_be_missing=False)


def _of_texts(condition: Texts, place: str) -> Iterator[Fault]:
    if condition.journey is not None and JOURNEY.decode(condition.journey) is None:
        yield Fault(f"{place}.journey", f"'{condition.journey}' is no id of a journey.")
    elif condition.journey is not None and condition.days > TEXTS_OF_JOURNEY_DAYS_MAX:
        words = (
            f"Which journey a text came from is known for {TEXTS_OF_JOURNEY_DAYS_MAX} days; ask for at most as many."
        )
        yield Fault(f"{place}.days", words)
    elif condition.days > TEXTS_DAYS_MAX:
        yield Fault(f"{place}.days", f"Texts are known for {TEXTS_DAYS_MAX} days; ask for at most as many.")


def _of_sales(condition: OfSales, place: str, known: Known) -> Iterator[Fault]:
    yield from _of_stores(condition.stores, f"{place}.stores", known)
    if condition.property is not None:
        yield from _of_comparison(condition.property, f"{place}.property", known.properties, noun="product property")
    if isinstance(condition, FirstPurchase | LastPurchase):
        yield from _of_when(condition.when, f"{place}.when", may_be_missing=True)
        return
    if condition.window is not None:
        yield from _of_window(condition.window, f"{place}.window")
    low, high, none = _bounds(condition)
    if none and (low is not None or high is not None):
        yield Fault(place, "None and a limit exclude each other.")
    if low is not None and high is not None and low > high:
        yield Fault(place, "The lower limit is above the upper one.")
    if low is None and high is None and not none and isinstance(condition, Spend | Articles | TicketValue):
        yield Fault(place, "Say at least, at most, or both.")
    if isinstance(condition, Articles) and any(_decimals(it) > DECIMALS_MAX for it in (low, high) if it is not None):
        yield Fault(place, f"A quantity has at most {DECIMALS_MAX} decimals.")


def _bounds(condition: OfTimes | Articles | Spend | TicketValue) -> tuple[float | None, float | None, bool]:
    match condition:
        case Spend():
            return condition.at_least_cents, condition.at_most_cents, condition.none
        case TicketValue():
            return condition.at_least_cents, condition.at_most_cents, False
        case _:
            return condition.at_least, condition.at_most, condition.none


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _of_stores(stores: tuple[str, ...], place: str, known: Known) -> Iterator[Fault]:
    for store in stores:
        if store not in known.stores:
            yield Fault(place, f"There is no store {store}.")


def _of_window(window: Window, place: str) -> Iterator[Fault]:
    if (window.last_days is None) is (window.from_ is None and window.to is None):
        yield Fault(place, "Say last_days, or from and to.")
    elif window.last_days is None:
        if window.from_ is None or window.to is None:
            yield Fault(place, "Say both from and to.")
        elif window.from_ > window.to:
            yield Fault(place, "The first day is after the last one.")


def _of_when(when: When, place: str, *, may_be_missing: bool) -> Iterator[Fault]:
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
    if may_be_missing and when.comparison == "not_in_last_days" and when.without_value is None:
        yield Fault(f"{place}.without_value", "Say whether customers who never bought count: true or false.")


def _of_comparison(asked: OfAttribute | OfProperty, place: str, types: Types, *, noun: str) -> Iterator[Fault]:
    if asked.key not in types:
        yield Fault(f"{place}.key", f"No {noun} is called {asked.key}.", is_warning=True)
        return
    declared, allowed_values = types[asked.key]
    comparison = asked.comparison
    if comparison not in OFFERED[declared]:
        offered = ", ".join(sorted(OFFERED[declared]))
        refused = f"The {noun} {asked.key} is of type {declared.value} and does not offer {comparison}, only {offered}."
        yield Fault(f"{place}.comparison", refused)
        return
    if comparison in NEGATIVE and asked.without_value is None:
        holders = "customers" if noun == "attribute" else "products"
        yield Fault(f"{place}.without_value", f"Say whether {holders} without a value count: true or false.")
    if comparison in OF_DAYS and asked.days is None:
        yield Fault(f"{place}.days", "The comparison needs a number of days.")
    if comparison in ONE_VALUE:
        one = () if asked.value is None else (asked.value,)
        yield from _of_values(asked, one, f"{place}.value", declared, allowed_values)
    elif comparison in SEVERAL_VALUES:
        yield from _of_values(asked, asked.values, f"{place}.values", declared, allowed_values)


def _of_values(
    asked: OfAttribute | OfProperty,
    values: tuple[str, ...],
    place: str,
    declared: AttributeType,
    allowed_values: Collection[str],
) -> Iterator[Fault]:
    if asked.comparison == "between" and len(values) != BOTH_ENDS:
        yield Fault(place, "Between needs two values.")
        return
    if not values:
        yield Fault(place, "The comparison needs a value.")
        return
    for value in values:
        if asked.comparison in {"contains", "starts_with"} and not value:
            yield Fault(place, "The comparison needs a text that is not empty.")
        elif not _is_readable(value, declared, allowed_values):
            yield Fault(place, _unreadable(value, asked.key, declared, allowed_values))
            return
    if asked.comparison == "between" and not _is_in_order(values, declared):
        yield Fault(place, "The first value is above the second.")


def _is_readable(value: str, declared: AttributeType, allowed_values: Collection[str]) -> bool:
    """A day is asked for as a day: which moment of it would depend on the zone."""
    if declared is AttributeType.DATE and not _DATE.fullmatch(value):
        return False
    return interpret(declared, value, allowed_values=allowed_values) is not None


def _is_in_order(values: tuple[str, ...], declared: AttributeType) -> bool:
    low, high = values
    return low <= high if declared is AttributeType.DATE else Decimal(low) <= Decimal(high)


def _unreadable(value: str, key: str, declared: AttributeType, allowed: Collection[str]) -> str:
    if declared is AttributeType.ENUM:
        return f"'{value}' is none of the values of {key}: {', '.join(sorted(allowed)[:20])}."
    if declared is AttributeType.DATE:
        return f"'{value}' is not a date such as 2026-11-15."
    return f"'{value}' cannot be read as the type of {key}, which is {declared.value}."


def is_askable(asked: OfAttribute | OfProperty, types: Types) -> bool:
    """Whether the key is known, and its type offers the comparison with these values."""
    return next(_of_comparison(asked, "", types, noun=""), None) is None


def keys_of(match: Group) -> tuple[set[str], set[str]]:
    """The keys of attributes and of product properties that a definition names."""
    attributes = {part.key for _, part in walk(match) if isinstance(part, OfAttribute)}
    properties = {
        part.property.key for _, part in walk(match) if isinstance(part, OfSales) and part.property is not None
    }
    return attributes, properties


def stores_of(match: Group) -> set[str]:
    return {store for _, part in walk(match) if isinstance(part, OfSales | Consent) for store in part.stores}


def segments_of(match: Group) -> set[str]:
    return {part.id for _, part in walk(match) if isinstance(part, InSegment)}


def refusing(faults: Collection[Fault]) -> list[Fault]:
    """Those that keep a definition from being saved."""
    return [fault for fault in faults if not fault.is_warning]


def faults_of_name(name: str) -> list[Fault]:
    faults = [] if name.strip() else [Fault("name", "A segment needs a name.")]
    if any(unicodedata.category(character) == "Cc" for character in name):
        faults.append(Fault("name", "A name has no control characters."))
    return faults
