"""Finds the faults of a definition, each with its place and a message for the user."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from regulars.conditions import check as conditions
from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.tree import Condition
from regulars.journeys.definition import (
    Branch,
    Definition,
    Exit,
    SendText,
    SetAttribute,
    Split,
    Step,
    Wait,
    WaitForPurchase,
)
from regulars.journeys.program import FILTER, Fork, has_text, references_of, walk
from regulars.messaging.template import TextVariants, fields_of, find_text_faults

STEPS_MAX: Final = 100
FAULTS_MAX: Final = 50
SALE_FIELDS: Final = frozenset({"ticket.total", "store.name", "store.city"})


def find_faults(definition: Definition, context: ConditionContext) -> list[Fault]:
    """The faults of a definition; without faults it can go live."""
    return list(_faults(definition, context))[:FAULTS_MAX]


def find_excess(definition: Definition) -> Fault | None:
    """The first size limit that the definition exceeds: such a draft is neither stored nor shown."""
    return next(_excess(definition), None)


def _excess_of_steps(definition: Definition) -> Iterator[Fault]:
    count = sum(1 for _ in walk(definition.steps))
    if count > STEPS_MAX:
        yield Fault("steps", f"A journey has at most {STEPS_MAX} steps, and this one has {count}.")


def _excess(definition: Definition) -> Iterator[Fault]:
    yield from _excess_of_steps(definition)
    for place, condition in references_of(definition).conditions:
        yield from conditions.find_size_faults(condition, place)


def _faults(definition: Definition, context: ConditionContext) -> Iterator[Fault]:
    yield from _excess_of_steps(definition)
    yield from _faults_of_reentry(definition)
    if definition.filter is not None:
        yield from _faults_of_condition(FILTER, definition.filter, definition, context)
    steps = list(walk(definition.steps))
    if not steps:
        yield Fault("steps", "A journey needs at least one step.")
    seen: set[str] = set()
    for place, step in steps:
        if place in seen:
            yield Fault(place, "Two steps have this id.")
        seen.add(place)
        yield from _faults_of_step(place, step, definition, context)
    yield from _unreachable(definition.steps, "")


def _faults_of_reentry(definition: Definition) -> Iterator[Fault]:
    reentry = definition.reentry
    if (reentry.policy == "after_days") is (reentry.days is None):
        yield Fault("reentry", "The policy after_days needs days, and no other policy has them.")


def _faults_of_step(place: str, step: Step, definition: Definition, context: ConditionContext) -> Iterator[Fault]:
    match step:
        case Wait() if not (step.minutes or step.hours or step.days):
            yield Fault(place, "The wait has no length; set minutes, hours or days.")
        case WaitForPurchase() if not (step.hours or step.days):
            yield Fault(place, "Waiting for a purchase needs a limit; set hours or days.")
        case Branch(condition=condition):
            yield from _faults_of_condition(place, condition, definition, context)
        case SendText(text=text):
            yield from _faults_of_text(place, text, definition, context)
        case Split(holdout=True):
            yield from _faults_of_holdout(place, step)
        case SetAttribute(key=key) if "\0" in key or "\0" in step.value:
            yield Fault(place, "An attribute cannot contain U+0000.")
        case _:
            pass
    if isinstance(step, Fork) and not step.then and not step.otherwise:
        yield Fault(place, "Both paths are empty, so the step has no effect.")


def _faults_of_holdout(place: str, step: Split) -> Iterator[Fault]:
    if not has_text(step.then):
        yield Fault(place, "A holdout measures the texts of its first path, and that path has none.")
    if has_text(step.otherwise):
        yield Fault(place, "The customers of the second path are held out, so it must not send a text.")


def _faults_of_text(
    place: str, text: str | TextVariants, definition: Definition, context: ConditionContext
) -> Iterator[Fault]:
    yield from (Fault(place, fault) for fault in find_text_faults(text, attribute_keys=context.attributes.keys()))
    for name in sorted(fields_of(text) & SALE_FIELDS):
        if not _has_sale(definition):
            yield Fault(place, f"The text uses {name}, but a journey triggered by an opt-in has no ticket.")


def _unreachable(steps: tuple[Step, ...], prefix: str) -> Iterator[Fault]:
    ended = False
    for number, step in enumerate(steps, start=1):
        if ended:
            yield Fault(step.id or f"{prefix}{number}", "No run reaches this step, because the step before it exits.")
            return
        ended = isinstance(step, Exit)
        if isinstance(step, Fork):
            yield from _unreachable(step.then, f"{prefix}{number}.then.")
            yield from _unreachable(step.otherwise, f"{prefix}{number}.else.")


def find_unjudgeable(definition: Definition, context: ConditionContext) -> dict[str, str]:
    """Why the filter or a branch cannot be evaluated now, by place."""
    faults = (
        next(_faults_of_condition(place, condition, definition, context), None)
        for place, condition in references_of(definition).conditions
    )
    return {fault.place: fault.message for fault in faults if fault is not None}


def _faults_of_condition(
    place: str, condition: Condition, definition: Definition, context: ConditionContext
) -> Iterator[Fault]:
    """Faults of a condition, with the place of its step."""
    no_ticket = None if _has_sale(definition) else "a journey triggered by an opt-in has none"
    for fault in conditions.find_faults(condition, context, root=place, no_ticket=no_ticket):
        yield Fault(place, fault.message)


def _has_sale(definition: Definition) -> bool:
    return definition.trigger != "opt_in"


def as_data(faults: Collection[Fault]) -> list[Mapping[str, str]]:
    return [{"place": fault.place, "message": fault.message} for fault in faults]
