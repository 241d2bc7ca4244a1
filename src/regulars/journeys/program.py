"""Converts a journey's definition to a graph of steps, and lists the conditions and segments it refers to."""

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
from regulars.texts.template import ATTRIBUTE_PREFIX, fields_of

# Steps with two paths, which join again afterwards.
Fork = Branch | Split | WaitForPurchase


def paths_of(step: Step) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """The two paths after a fork, `then` and `else`, with their steps; other steps have none."""
    return (("then", step.then), ("else", step.otherwise)) if isinstance(step, Fork) else ()


class StepNode(NamedTuple):
    id: str
    step: Step
    # The id of the step after this step; for a fork, of the step where its two paths join.
    next: str | None
    # For a fork: the ids of the first steps of its two paths.
    then: str | None = None
    otherwise: str | None = None


class StepGraph(NamedTuple):
    # The id of the first step; None if there are no steps.
    first: str | None
    nodes: dict[str, StepNode]


@lru_cache(maxsize=1_024)
def graph_of(definition: Definition) -> StepGraph:
    """The graph of a definition. Of two steps with the same id, which `check` reports as a fault, the first is used."""
    nodes: dict[str, StepNode] = {}
    first = _add_nodes(definition.steps, nodes, prefix="", after=None)
    return StepGraph(first, nodes)


@lru_cache(maxsize=1_024)
def sets_attributes(definition: Definition) -> bool:
    return any(isinstance(step, SetAttribute) for _, step in walk_steps(definition.steps))


def walk_steps(steps: tuple[Step, ...]) -> Iterator[tuple[str, Step]]:
    """Every step in the order of the flow, with its id, or with its place if it has no id."""
    return ((step.id or place, step) for place, step in walk_places(steps))


def walk_places(steps: tuple[Step, ...], prefix: str = "") -> Iterator[tuple[str, Step]]:
    """Every step in the order of the flow, with its place, such as `3.else.1`."""
    for number, step in enumerate(steps, start=1):
        yield f"{prefix}{number}", step
        for key, path in paths_of(step):
            yield from walk_places(path, f"{prefix}{number}.{key}.")


def has_text(steps: tuple[Step, ...]) -> bool:
    return any(isinstance(step, SendText) for _, step in walk_steps(steps))


class HoldoutStep(NamedTuple):
    """A split that holds customers out; `texts_within` is the longest time between the split and the last text that
    other customers get."""

    id: str
    percent_held_out: int
    texts_within: timedelta


def holdouts_of(definition: Definition) -> list[HoldoutStep]:
    return [
        HoldoutStep(step_id, 100 - step.percent, _measure_path(step.then)[1])
        for step_id, step in walk_steps(definition.steps)
        if isinstance(step, Split) and step.holdout
    ]


def _measure_path(steps: tuple[Step, ...]) -> tuple[timedelta, timedelta]:
    """How long a path lasts at most, and after what time its last text is requested."""
    elapsed = last_text = timedelta(0)
    for step in steps:
        elapsed += _longest_wait(step)
        if isinstance(step, SendText):
            last_text = elapsed
        elif isinstance(step, Fork):
            measured = [(path, *_measure_path(path)) for path in (step.then, step.otherwise)]
            last_text = max([last_text, *(elapsed + text_after for path, _, text_after in measured if has_text(path))])
            elapsed += max(duration for _, duration, _ in measured)
    return elapsed, last_text


def _longest_wait(step: Step) -> timedelta:
    match step:
        case Wait() | WaitForPurchase():
            return step.duration
        case WaitUntil():
            return timedelta(days=7 if step.weekdays else 1)
        case _:
            return timedelta(0)


def _add_nodes(steps: tuple[Step, ...], nodes: dict[str, StepNode], *, prefix: str, after: str | None) -> str | None:
    """Add the steps of a path to the nodes; return the id of the first. `after` is the id of the step after the path.
    The last step is added first, because each step needs the id of the next."""
    next_id = after
    for number in range(len(steps), 0, -1):
        step = steps[number - 1]
        identifier = step.id or f"{prefix}{number}"
        then = otherwise = None
        if isinstance(step, Fork):
            step_prefix = f"{prefix}{number}."
            then = _add_nodes(step.then, nodes, prefix=f"{step_prefix}then.", after=next_id)
            otherwise = _add_nodes(step.otherwise, nodes, prefix=f"{step_prefix}else.", after=next_id)
        nodes[identifier] = StepNode(identifier, step, next_id, then, otherwise)
        next_id = identifier
    return next_id


# The location of the filter's condition; that of a branch's condition is the id of the step.
FILTER = "filter"


class References(NamedTuple):
    """What a definition refers to."""

    # The conditions of the filter and of every branch, each with its location: `filter`, or the id of the step.
    conditions: tuple[tuple[str, Condition], ...]
    segments: frozenset[str]
    campaigns: frozenset[str]
    # The customer attributes that texts use.
    attributes: frozenset[str]


@lru_cache(maxsize=1_024)
def references_of(definition: Definition) -> References:
    conditions = tuple(_list_conditions(definition))
    return References(
        conditions=conditions,
        segments=frozenset(it for _, condition in conditions for it in segments_of(condition)),
        campaigns=frozenset(it for _, condition in conditions for it in campaigns_of(condition)),
        attributes=frozenset(key for _, step in walk_steps(definition.steps) for key in _list_attributes(step)),
    )


def _list_conditions(definition: Definition) -> Iterator[tuple[str, Condition]]:
    if definition.filter is not None:
        yield FILTER, definition.filter
    for step_id, step in walk_steps(definition.steps):
        if isinstance(step, Branch):
            yield step_id, step.condition


def _list_attributes(step: object) -> Iterator[str]:
    fields = fields_of(step.text) if isinstance(step, SendText) else ()
    yield from (field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX))
