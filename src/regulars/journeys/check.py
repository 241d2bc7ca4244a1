"""Why a definition cannot run: every fault with its place, in words for people."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from regulars.journeys.condition_check import Fault, Known, find_condition_excess, find_condition_faults
from regulars.journeys.definition import (
    Branch,
    Definition,
    Exit,
    SendText,
    SetAttribute,
    Step,
    Wait,
    WaitForPurchase,
)
from regulars.journeys.needs import FILTER, needs_of
from regulars.journeys.program import Forking, walk
from regulars.messaging.template import ATTRIBUTE_PREFIX, TemplateError, check_fields, parse_template

STEPS_MAX: Final = 100
FAULTS_MAX: Final = 50
_SALE_FIELDS: Final = frozenset({"ticket.total", "store.name"})


def find_faults(definition: Definition, known: Known) -> list[Fault]:
    """Nothing wrong means it can go live."""
    return list(_faults(definition, known))[:FAULTS_MAX]


def find_excess(definition: Definition) -> Fault | None:
    """The first limit of size that the definition breaks: a draft beyond it is neither stored nor drawn."""
    return next(_excess(definition), None)


def _excess(definition: Definition) -> Iterator[Fault]:
    count = sum(1 for _ in walk(definition.steps))
    if count > STEPS_MAX:
        yield Fault("steps", f"A journey has at most {STEPS_MAX} steps, and this one has {count}.")
    for place, condition in needs_of(definition).conditions:
        yield from find_condition_excess(place, condition)


def _faults(definition: Definition, known: Known) -> Iterator[Fault]:
    yield from _excess(definition)
    yield from _faults_of_reentry(definition)
    yield from find_condition_faults(FILTER, definition.filter, known, has_sale=_has_sale(definition))
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
            yield from find_condition_faults(place, condition, known, has_sale=_has_sale(definition))
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
        if not _has_sale(definition):
            yield Fault(place, f"The text names {name}, and a journey that begins with a consent has no ticket.")


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


def find_unjudgeable(definition: Definition, known: Known) -> dict[str, str]:
    """Why the filter or a branch cannot be judged now, by place; nothing where all can."""
    faults = (
        next(find_condition_faults(place, condition, known, has_sale=_has_sale(definition)), None)
        for place, condition in needs_of(definition).conditions
    )
    return {fault.place: fault.message for fault in faults if fault is not None}


def _has_sale(definition: Definition) -> bool:
    return definition.trigger != "opt_in"


def keys_of(definition: Definition) -> tuple[set[str], set[str]]:
    """The keys of attributes and of product properties that a definition names, in its texts too."""
    needs = needs_of(definition)
    in_texts = (_keys_of_text(step.text) for _, step in walk(definition.steps) if isinstance(step, SendText))
    return set(needs.attributes).union(*in_texts), set(needs.properties)


def segments_of(definition: Definition) -> frozenset[str]:
    """The ids of the segments that a definition asks for."""
    return needs_of(definition).segments


def _keys_of_text(text: str) -> set[str]:
    try:
        fields = parse_template(text).fields
    except TemplateError:
        return set()
    return {field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX)}


def as_data(faults: Collection[Fault]) -> list[Mapping[str, str]]:
    return [{"place": fault.place, "message": fault.message} for fault in faults]
