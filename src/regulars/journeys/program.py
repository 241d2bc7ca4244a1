"""A definition as a run follows it: every step with the one that comes after it on each of its ways."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from regulars.journeys.definition import Branch, Definition, SetAttribute, Split, Step, WaitForPurchase

Forking = Branch | Split | WaitForPurchase


class Node(NamedTuple):
    id: str
    step: Step
    # Where it goes on: after the step, or, for one with two ways, after the ways have met again.
    next: str | None
    then: str | None = None
    otherwise: str | None = None


class Program(NamedTuple):
    first: str | None
    nodes: dict[str, Node]


@lru_cache(maxsize=1_024)
def program_of(definition: Definition) -> Program:
    """Of two steps with one id the first counts; `check` refuses such a definition."""
    nodes: dict[str, Node] = {}
    first = _place(definition.steps, nodes, prefix="", after=None)
    return Program(first, nodes)


@lru_cache(maxsize=1_024)
def sets_attributes(definition: Definition) -> bool:
    return any(isinstance(step, SetAttribute) for _, step in walk(definition.steps))


def walk(steps: tuple[Step, ...], prefix: str = "") -> Iterator[tuple[str, Step]]:
    """Every step with its id, or with its place where it has none of its own, in the order of reading."""
    for number, step in enumerate(steps, start=1):
        yield _id_of(step, prefix, number), step
        if isinstance(step, Forking):
            inner = f"{prefix}{number}."
            yield from walk(step.then, f"{inner}then.")
            yield from walk(step.otherwise, f"{inner}else.")


def _place(steps: tuple[Step, ...], nodes: dict[str, Node], *, prefix: str, after: str | None) -> str | None:
    following = after
    for number in range(len(steps), 0, -1):
        step = steps[number - 1]
        identifier = _id_of(step, prefix, number)
        then = otherwise = None
        if isinstance(step, Forking):
            inner = f"{prefix}{number}."
            then = _place(step.then, nodes, prefix=f"{inner}then.", after=following)
            otherwise = _place(step.otherwise, nodes, prefix=f"{inner}else.", after=following)
        nodes[identifier] = Node(identifier, step, following, then, otherwise)
        following = identifier
    return following


def _id_of(step: Step, prefix: str, number: int) -> str:
    return step.id or f"{prefix}{number}"
