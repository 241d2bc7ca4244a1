"""Finds faults of a journey's definition, each with its location (a field or step id) and a message for the user."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Final

from regulars.conditions import faults as conditions
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
from regulars.journeys.program import FILTER, Fork, has_text, holdouts_of, paths_of, references_of, walk_steps
from regulars.texts.template import TextVariants, fields_of, find_text_faults

STEPS_MAX: Final = 100
FAULTS_MAX: Final = 50
# The longest time between a holdout split and the last text of its path. Who passed the split is stored for 13 months
# (`retention.RETENTION`) and needed until the result is final: 31 days of a month, this time, 30 days in which sales
# count and 30 days in which returns do.
TEXTS_WITHIN_MAX: Final = timedelta(days=270)
# Text variables of a ticket.
SALE_FIELDS: Final = frozenset({"ticket.total", "store.name", "store.city"})


def find_faults(definition: Definition, context: ConditionContext) -> list[Fault]:
    """The faults of a definition; a journey without faults can go live."""
    return list(_iterate_faults(definition, context))[:FAULTS_MAX]


def find_size_fault(definition: Definition) -> Fault | None:
    """A fault for the first size limit that the definition exceeds. A draft that exceeds a limit is not stored."""
    return next(_iterate_size_faults(definition), None)


def find_empty_texts(definition: Definition) -> list[Fault]:
    """Empty texts in conditions, each with the location of its step. A version with one is not saved."""
    return [
        Fault(location, fault.message)
        for location, condition in references_of(definition).conditions
        for fault in conditions.find_empty_texts(condition, location)
    ]


def _find_excess_steps(definition: Definition) -> Iterator[Fault]:
    count = sum(1 for _ in walk_steps(definition.steps))
    if count > STEPS_MAX:
        yield Fault("steps", f"A journey has at most {STEPS_MAX} steps, and this one has {count}.")


def _iterate_size_faults(definition: Definition) -> Iterator[Fault]:
    yield from _find_excess_steps(definition)
    for location, condition in references_of(definition).conditions:
        yield from conditions.find_size_faults(condition, location)


def _iterate_faults(definition: Definition, context: ConditionContext) -> Iterator[Fault]:
    yield from _find_excess_steps(definition)
    yield from _faults_of_reentry(definition)
    if definition.filter is not None:
        yield from _faults_of_condition(FILTER, definition.filter, definition, context)
    steps = list(walk_steps(definition.steps))
    if not steps:
        yield Fault("steps", "A journey needs at least one step.")
    for holdout in holdouts_of(definition):
        if holdout.texts_within > TEXTS_WITHIN_MAX:
            days = TEXTS_WITHIN_MAX.days
            yield Fault(holdout.id, f"The last text of a holdout must leave within {days} days; shorten the waits.")
    seen: set[str] = set()
    for location, step in steps:
        if location in seen:
            yield Fault(location, "Two steps have this id.")
        seen.add(location)
        yield from _faults_of_step(location, step, definition, context)
    yield from _find_unreachable_steps(definition.steps, "")


def _faults_of_reentry(definition: Definition) -> Iterator[Fault]:
    reentry = definition.reentry
    if (reentry.policy == "after_days") is (reentry.days is None):
        yield Fault("reentry", "The policy after_days needs days, and no other policy has them.")


def _faults_of_step(location: str, step: Step, definition: Definition, context: ConditionContext) -> Iterator[Fault]:
    match step:
        case Wait() if not step.duration:
            yield Fault(location, "The wait has no length; set minutes, hours or days.")
        case WaitForPurchase() if not step.duration:
            yield Fault(location, "Waiting for a purchase needs a limit; set hours or days.")
        case Branch(condition=condition):
            yield from _faults_of_condition(location, condition, definition, context)
        case SendText(text=text):
            yield from _faults_of_text(location, text, definition, context)
        case Split(holdout=True):
            yield from _faults_of_holdout(location, step)
        case SetAttribute(key=key) if "\0" in key or "\0" in step.value:
            yield Fault(location, "An attribute cannot contain U+0000.")
        case _:
            pass
    if isinstance(step, Fork) and not step.then and not step.otherwise:
        yield Fault(location, "Both paths are empty, so the step has no effect.")


def _faults_of_holdout(location: str, step: Split) -> Iterator[Fault]:
    if not has_text(step.then):
        yield Fault(location, "A holdout measures the texts of its first path, and that path has none.")
    if any(isinstance(inner, Split) and inner.holdout for _, inner in walk_steps(step.then)):
        yield Fault(
            location, "A holdout measures all texts of its first path, so remove the other holdout from that path."
        )
    if has_text(step.otherwise):
        yield Fault(location, "The customers of the second path are held out, so it must not send a text.")


def _faults_of_text(
    location: str, text: str | TextVariants, definition: Definition, context: ConditionContext
) -> Iterator[Fault]:
    yield from (Fault(location, fault) for fault in find_text_faults(text, attribute_keys=context.attributes.keys()))
    for name in sorted(fields_of(text) & SALE_FIELDS):
        if not _has_sale(definition):
            yield Fault(location, f"The text uses {name}, but a journey triggered by an opt-in has no ticket.")


def _find_unreachable_steps(steps: tuple[Step, ...], prefix: str) -> Iterator[Fault]:
    ended = False
    for number, step in enumerate(steps, start=1):
        if ended:
            yield Fault(step.id or f"{prefix}{number}", "No run reaches this step, because the step before it exits.")
            return
        ended = isinstance(step, Exit)
        for key, path in paths_of(step):
            yield from _find_unreachable_steps(path, f"{prefix}{number}.{key}.")


def find_unevaluable(definition: Definition, context: ConditionContext) -> dict[str, str]:
    """Why the filter or a branch cannot be evaluated now, by location: `filter`, or the id of the branch."""
    faults = (
        next(_faults_of_condition(location, condition, definition, context), None)
        for location, condition in references_of(definition).conditions
    )
    return {fault.place: fault.message for fault in faults if fault is not None}


def _faults_of_condition(
    location: str, condition: Condition, definition: Definition, context: ConditionContext
) -> Iterator[Fault]:
    """The faults of a condition, with the location of its step instead of their location in the condition. `no_ticket`
    says why a condition on tickets is a fault; None if the journey has a ticket."""
    no_ticket = None if _has_sale(definition) else "a journey triggered by an opt-in has none"
    for fault in conditions.find_faults(condition, context, root=location, no_ticket=no_ticket):
        yield Fault(location, fault.message)


def _has_sale(definition: Definition) -> bool:
    return definition.trigger != "opt_in"


def as_data(faults: Collection[Fault]) -> list[Mapping[str, str]]:
    return [{"place": fault.place, "message": fault.message} for fault in faults]
