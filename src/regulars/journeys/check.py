"""Why a definition cannot run: every fault with its place, in words for people."""

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
    Branch,
    Condition,
    Definition,
    Exit,
    Nothing,
    OfAmount,
    OfAttribute,
    OfCurrency,
    OfProduct,
    OfSegment,
    OfStore,
    Purchases,
    SendText,
    SetAttribute,
    Step,
    Wait,
    WaitForPurchase,
)
from regulars.journeys.program import Forking, walk
from regulars.messaging.template import ATTRIBUTE_PREFIX, TemplateError, check_fields, parse_template

STEPS_MAX: Final = 100
CONDITIONS_MAX: Final = 50
DEPTH_MAX: Final = 5
FAULTS_MAX: Final = 50
_ABOUT_A_SALE: Final = (OfStore, OfAmount, OfCurrency, OfProduct)
_DAYS: Final = re.compile(r"[0-9]{1,4}")
_SALE_FIELDS: Final = frozenset({"ticket.total", "store.name"})


@dataclass(frozen=True, slots=True)
class Fault:
    """`place` is `filter`, `steps`, or the id of a step."""

    place: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the organization's catalogs know."""

    attributes: Types
    properties: Types
    # The segments that exist, by id, each with what is wrong with it.
    segments: Mapping[str, str | None] = field(default_factory=dict)


def find_faults(definition: Definition, known: Known) -> list[Fault]:
    """Nothing wrong means it can go live."""
    return list(_faults(definition, known))[:FAULTS_MAX]


def find_excess(definition: Definition) -> Fault | None:
    """The first limit of size that the definition breaks: a draft beyond it is neither stored nor drawn."""
    return next(_excess(definition), None)


def _excess(definition: Definition) -> Iterator[Fault]:
    steps = list(walk(definition.steps))
    if len(steps) > STEPS_MAX:
        yield Fault("steps", f"A journey has at most {STEPS_MAX} steps, and this one has {len(steps)}.")
    yield from _excess_of_condition("filter", definition.filter)
    for place, step in steps:
        if isinstance(step, Branch):
            yield from _excess_of_condition(place, step.condition)


def _excess_of_condition(place: str, condition: Condition | None) -> Iterator[Fault]:
    count = sum(1 for _ in parts(condition))
    if count > CONDITIONS_MAX:
        yield Fault(place, f"At most {CONDITIONS_MAX} conditions stand together, and here are {count}.")
    if condition is not None and _depth(condition) > DEPTH_MAX:
        yield Fault(place, f"Groups are nested at most {DEPTH_MAX} deep.")


def _faults(definition: Definition, known: Known) -> Iterator[Fault]:
    yield from _excess(definition)
    yield from _faults_of_reentry(definition)
    yield from _faults_of_condition("filter", definition.filter, definition, known)
    steps = list(walk(definition.steps))
    if not steps:
        yield Fault("steps", "A journey needs at least one step.")
    seen: set[str] = set()
    for place, step in steps:
        if place in seen:
            yield Fault(place, "Two steps have this id.")
        seen.add(place)
        yield from _faults_of_step(place, step, definition, known)
    yield from _unreachable(definition.steps, "")


def _faults_of_reentry(definition: Definition) -> Iterator[Fault]:
    reentry = definition.reentry
    if (reentry.policy == "after_days") is (reentry.days is None):
        yield Fault("reentry", "Days go with the policy after_days, and it needs them.")


def _faults_of_step(place: str, step: Step, definition: Definition, known: Known) -> Iterator[Fault]:
    match step:
        case Wait() if not (step.minutes or step.hours or step.days):
            yield Fault(place, "The wait has no length; say minutes, hours or days.")
        case WaitForPurchase() if not (step.hours or step.days):
            yield Fault(place, "Waiting for a purchase needs an end; say hours or days.")
        case Branch(condition=condition):
            yield from _faults_of_condition(place, condition, definition, known)
        case SendText(text=text):
            yield from _faults_of_text(place, text, definition, known)
        case SetAttribute(key=key) if "\0" in key or "\0" in step.value:
            yield Fault(place, "An attribute cannot hold U+0000.")
        case _:
            pass
    if isinstance(step, Forking) and not step.then and not step.otherwise:
        yield Fault(place, "Both ways are empty, so the step decides nothing.")


def _faults_of_text(place: str, text: str, definition: Definition, known: Known) -> Iterator[Fault]:
    try:
        template = parse_template(text)
        check_fields(template, attribute_keys=known.attributes.keys())
    except TemplateError as error:
        yield Fault(place, f"{error} (character {error.position + 1})")
        return
    for name in sorted(template.fields & _SALE_FIELDS):
        if definition.trigger == "opt_in":
            yield Fault(place, f"The text names {name}, and a journey that begins with a consent has no ticket.")


def _faults_of_condition(
    place: str, condition: Condition | None, definition: Definition, known: Known
) -> Iterator[Fault]:
    for part in parts(condition):
        if isinstance(part, _ABOUT_A_SALE) and definition.trigger == "opt_in":
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
        case OfSegment(id=segment_id) if segment_id not in known.segments:
            yield Fault(place, f"There is no segment {segment_id}.")
        case OfSegment(id=segment_id) if known.segments[segment_id] is not None:
            yield Fault(place, f"The segment {segment_id} matches nobody: {known.segments[segment_id]}")
        case OfAttribute(key=key):
            yield from _faults_of_comparison(place, part, key, known.attributes, noun="attribute")
        case OfProduct(any_of=(), property=None):
            yield Fault(place, "The product has no condition; name products or a property.")
        case OfProduct(property=str() as key):
            yield from _faults_of_comparison(place, part, key, known.properties, noun="product property")
        case _:
            pass


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


def _unreachable(steps: tuple[Step, ...], prefix: str) -> Iterator[Fault]:
    ended = False
    for number, step in enumerate(steps, start=1):
        if ended:
            yield Fault(step.id or f"{prefix}{number}", "No run reaches this step, because the one before it exits.")
            return
        ended = isinstance(step, Exit)
        if isinstance(step, Forking):
            yield from _unreachable(step.then, f"{prefix}{number}.then.")
            yield from _unreachable(step.otherwise, f"{prefix}{number}.else.")


def _depth(condition: Condition) -> int:
    if isinstance(condition, All | Any | Nothing):
        return 1 + max((_depth(inner) for inner in condition.of), default=0)
    return 0


def keys_of(definition: Definition) -> tuple[set[str], set[str]]:
    """The keys of attributes and of product properties that a definition names."""
    attributes: set[str] = set()
    properties: set[str] = set()
    conditions = list(parts(definition.filter))
    for _, step in walk(definition.steps):
        if isinstance(step, Branch):
            conditions += parts(step.condition)
        elif isinstance(step, SendText):
            attributes |= _keys_of_text(step.text)
    for part in conditions:
        if isinstance(part, OfAttribute):
            attributes.add(part.key)
        elif isinstance(part, OfProduct) and part.property is not None:
            properties.add(part.property)
    return attributes, properties


def segments_of(definition: Definition) -> set[str]:
    """The ids of the segments that a definition asks for."""
    conditions = list(parts(definition.filter))
    for _, step in walk(definition.steps):
        if isinstance(step, Branch):
            conditions += parts(step.condition)
    return {part.id for part in conditions if isinstance(part, OfSegment)}


def _keys_of_text(text: str) -> set[str]:
    try:
        fields = parse_template(text).fields
    except TemplateError:
        return set()
    return {field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX)}


def as_data(faults: Collection[Fault]) -> list[Mapping[str, str]]:
    return [{"place": fault.place, "message": fault.message} for fault in faults]
