"""Converts a definition to a graph of steps, and lists the conditions, segments and attributes that it refers to."""

from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from regulars.conditions.tree import Condition, campaigns_of, segments_of
from regulars.journeys.definition import (
    Branch,
    Definition,
    SendText,
    SetAttribute,
    Split,
    Step,
    Wait,
    WaitForPurchase,
    WaitUntil,
)
from regulars.messaging.template import ATTRIBUTE_PREFIX, fields_of

Fork = Branch | Split | WaitForPurchase


class ProgramNode(NamedTuple):
    id: str
    step: Step
    # The step after this one; for a fork, the step after its two paths have joined again.
    next: str | None
    then: str | None = None
    otherwise: str | None = None


class Program(NamedTuple):
    first: str | None
    nodes: dict[str, ProgramNode]


@lru_cache(maxsize=1_024)
def program_of(definition: Definition) -> Program:
    """The graph of a definition. If two steps have the same id, the first one is used; `check` reports it as a
    fault."""
    nodes: dict[str, ProgramNode] = {}
    first = _add_nodes(definition.steps, nodes, prefix="", after=None)
    return Program(first, nodes)


@lru_cache(maxsize=1_024)
def sets_attributes(definition: Definition) -> bool:
    return any(isinstance(step, SetAttribute) for _, step in walk(definition.steps))


def walk(steps: tuple[Step, ...], prefix: str = "") -> Iterator[tuple[str, Step]]:
    """Every step with its id, or with its place if it has no id, in the order of the flow."""
    for number, step in enumerate(steps, start=1):
        yield _id_of(step, prefix, number), step
        if isinstance(step, Fork):
            inner = f"{prefix}{number}."
            yield from walk(step.then, f"{inner}then.")
            yield from walk(step.otherwise, f"{inner}else.")


def has_text(steps: tuple[Step, ...]) -> bool:
    return any(isinstance(step, SendText) for _, step in walk(steps))


class HoldoutStep(NamedTuple):
    """A split that holds customers out, and the longest time between the split and the last text of the other
    customers."""

    id: str
    percent_held_out: int
    texts_within: timedelta


def holdouts_of(definition: Definition) -> list[HoldoutStep]:
    return [
        HoldoutStep(place, 100 - step.percent, _times(step.then)[1])
        for place, step in walk(definition.steps)
        if isinstance(step, Split) and step.holdout
    ]


def _times(steps: tuple[Step, ...]) -> tuple[timedelta, timedelta]:
    """How long a path lasts at most, and after what time its last text is requested; waiting for open hours is not
    counted."""
    passed = last = timedelta(0)
    for step in steps:
        passed += _longest_wait(step)
        if isinstance(step, SendText):
            last = passed
        elif isinstance(step, Fork):
            ends = [(path, *_times(path)) for path in (step.then, step.otherwise)]
            last = max([last, *(passed + text for path, _, text in ends if has_text(path))])
            passed += max(duration for _, duration, _ in ends)
    return passed, last


def _longest_wait(step: Step) -> timedelta:
    match step:
        case Wait():
            return timedelta(days=step.days, hours=step.hours, minutes=step.minutes)
        case WaitUntil():
            return timedelta(days=7 if step.weekdays else 1)
        case WaitForPurchase():
            return timedelta(days=step.days, hours=step.hours)
        case _:
            return timedelta(0)


def _add_nodes(steps: tuple[Step, ...], nodes: dict[str, ProgramNode], *, prefix: str, after: str | None) -> str | None:
    following = after
    for number in range(len(steps), 0, -1):
        step = steps[number - 1]
        identifier = _id_of(step, prefix, number)
        then = otherwise = None
        if isinstance(step, Fork):
            inner = f"{prefix}{number}."
            then = _add_nodes(step.then, nodes, prefix=f"{inner}then.", after=following)
            otherwise = _add_nodes(step.otherwise, nodes, prefix=f"{inner}else.", after=following)
        nodes[identifier] = ProgramNode(identifier, step, following, then, otherwise)
        following = identifier
    return following


def _id_of(step: Step, prefix: str, number: int) -> str:
    return step.id or f"{prefix}{number}"


FILTER = "filter"


class References(NamedTuple):
    # The filter and every branch, each with its place: `filter`, or the id of the step.
    conditions: tuple[tuple[str, Condition], ...]
    segments: frozenset[str]
    campaigns: frozenset[str]
    # The attributes that texts use.
    attributes: frozenset[str]


@lru_cache(maxsize=1_024)
def references_of(definition: Definition) -> References:
    conditions = tuple(_conditions(definition))
    return References(
        conditions=conditions,
        segments=frozenset(it for _, condition in conditions for it in segments_of(condition)),
        campaigns=frozenset(it for _, condition in conditions for it in campaigns_of(condition)),
        attributes=frozenset(key for _, step in walk(definition.steps) for key in _attributes(step)),
    )


def _conditions(definition: Definition) -> Iterator[tuple[str, Condition]]:
    if definition.filter is not None:
        yield FILTER, definition.filter
    for place, step in walk(definition.steps):
        if isinstance(step, Branch):
            yield place, step.condition


def _attributes(step: object) -> Iterator[str]:
    fields = fields_of(step.text) if isinstance(step, SendText) else ()
    yield from (field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX))
