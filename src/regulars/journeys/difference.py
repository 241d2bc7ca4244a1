"""What is different between two versions, line by line, in the words that the flow uses."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from regulars.journeys.definition import Definition, SendText, Step
from regulars.journeys.labels import TRIGGERS, tell_condition, tell_entry, tell_exits, tell_step, tell_ways
from regulars.journeys.program import Forking


class Line(NamedTuple):
    """`sign` is "+", "-" or nothing; `depth` says how far in it stands."""

    sign: str
    depth: int
    text: str


def tell_difference(before: Definition, after: Definition) -> list[Line]:
    """Every line of both, those of `before` only with a minus, those of `after` only with a plus."""
    old, new = list(_lines(before)), list(_lines(after))
    told: list[Line] = []
    for act, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if act == "equal":
            told += [Line("", depth, text) for depth, text in new[new_from:new_to]]
        else:
            told += [Line("-", depth, text) for depth, text in old[old_from:old_to]]
            told += [Line("+", depth, text) for depth, text in new[new_from:new_to]]
    return told


def count_changes(lines: list[Line]) -> tuple[int, int]:
    """How many lines came and went."""
    return sum(line.sign == "+" for line in lines), sum(line.sign == "-" for line in lines)


def _lines(definition: Definition) -> Iterator[tuple[int, str]]:
    yield 0, f"Name: {definition.name}"
    yield 0, f"Trigger: {TRIGGERS[definition.trigger]}"
    yield 0, f"Comes in: {tell_entry(definition)}"
    yield 0, tell_exits(definition)
    if definition.filter is not None:
        yield 0, f"Only if: {tell_condition(definition.filter)}"
    yield from _steps(definition.steps, 0)


def _steps(steps: tuple[Step, ...], depth: int) -> Iterator[tuple[int, str]]:
    for step in steps:
        told = tell_step(step)
        yield depth, told.kind if told.kind == told.name else f"{told.kind}: {_whole(step, told.name)}"
        if isinstance(step, Forking):
            names = tell_ways(step)
            for name, inside in zip(names, (step.then, step.otherwise), strict=True):
                yield depth + 1, f"{name}:"
                yield from _steps(inside, depth + 2)


def _whole(step: Step, name: str) -> str:
    return f"“{step.text}”" if isinstance(step, SendText) else name
