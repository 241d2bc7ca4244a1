"""Describes two versions of a journey's definition as lines of text, and finds the lines that differ."""

from collections.abc import Iterator
from typing import NamedTuple

from regulars.journeys import labels
from regulars.journeys.definition import Definition, SendText, Step
from regulars.journeys.program import paths_of
from regulars.kit.text import diff_lines
from regulars.texts.labels import label_choice
from regulars.texts.template import texts_by_value
from regulars.texts.template_labels import describe_template


class DiffLine(NamedTuple):
    """`sign` is "+", "-" or empty; `depth` is the indentation."""

    sign: str
    depth: int
    text: str


def diff_definitions(before: Definition, after: Definition) -> list[DiffLine]:
    """The lines of both definitions; a line only in `before` has a minus, a line only in `after` a plus."""
    lines = diff_lines(list(_describe_lines(before)), list(_describe_lines(after)))
    return [DiffLine(sign, depth, text) for sign, (depth, text) in lines]


def count_changes(lines: list[DiffLine]) -> tuple[int, int]:
    """The number of added and of removed lines."""
    return sum(line.sign == "+" for line in lines), sum(line.sign == "-" for line in lines)


def _describe_lines(definition: Definition) -> Iterator[tuple[int, str]]:
    yield 0, f"Name: {definition.name}"
    yield 0, f"Trigger: {labels.TRIGGERS[definition.trigger]}"
    yield 0, labels.describe_reentry(definition)
    yield 0, labels.describe_exits(definition)
    if definition.filter is not None:
        yield 0, f"Only if: {labels.describe_condition(definition.filter)}"
    yield from _describe_steps(definition.steps, 0)


def _describe_steps(steps: tuple[Step, ...], depth: int) -> Iterator[tuple[int, str]]:
    for step in steps:
        summary = labels.describe_step(step)
        yield depth, summary.kind if summary.kind == summary.name else f"{summary.kind}: {_detail(step, summary.name)}"
        for (_, inner_steps), name in zip(paths_of(step), labels.describe_paths(step), strict=False):
            yield depth + 1, f"{name}:"
            yield from _describe_steps(inner_steps, depth + 2)


def _detail(step: Step, name: str) -> str:
    if not isinstance(step, SendText):
        return name
    texts = texts_by_value(step.text).items()
    links = " (links of their own)" if step.personal_links else ""
    described = [(_choice(step, value), describe_template(text, with_fallbacks=True)) for value, text in texts]
    return "; ".join(f"{choice}“{text}”" for choice, text in described) + links


def _choice(step: SendText, value: str) -> str:
    label = label_choice(step.text, value, labels.LANGUAGES)
    return f"{label}: " if label else ""
