"""What the conditions and texts of a definition name."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from regulars.conditions.needs import segments_of
from regulars.conditions.tree import Condition
from regulars.journeys.definition import Branch, Definition, SendText
from regulars.journeys.program import walk
from regulars.messaging.template import ATTRIBUTE_PREFIX, TemplateError, parse_template

FILTER = "filter"


class Needs(NamedTuple):
    # The filter and every branch, each with its place: `filter`, or the id of the step.
    conditions: tuple[tuple[str, Condition], ...]
    segments: frozenset[str]
    # The attributes that texts name.
    attributes: frozenset[str]


@lru_cache(maxsize=1_024)
def needs_of(definition: Definition) -> Needs:
    conditions = tuple(_conditions(definition))
    return Needs(
        conditions=conditions,
        segments=frozenset(it for _, condition in conditions for it in segments_of(condition)),
        attributes=frozenset(key for _, step in walk(definition.steps) for key in _attributes(step)),
    )


def _conditions(definition: Definition) -> Iterator[tuple[str, Condition]]:
    if definition.filter is not None:
        yield FILTER, definition.filter
    for place, step in walk(definition.steps):
        if isinstance(step, Branch):
            yield place, step.condition


def _attributes(step: object) -> Iterator[str]:
    try:
        fields = parse_template(step.text).fields if isinstance(step, SendText) else ()
    except TemplateError:
        return
    yield from (field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX))
