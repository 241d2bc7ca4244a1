"""What the conditions of a definition have to know before they can be judged."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from regulars.journeys.conditions import parts
from regulars.journeys.definition import (
    Branch,
    Condition,
    Definition,
    OfAttribute,
    OfProduct,
    OfSegment,
    OfStore,
    Purchases,
)
from regulars.journeys.program import walk

FILTER = "filter"


class Needs(NamedTuple):
    # The filter and every branch, each with its place: `filter`, or the id of the step.
    conditions: tuple[tuple[str, Condition], ...]
    attributes: frozenset[str]
    properties: frozenset[str]
    segments: frozenset[str]
    stores: frozenset[str]
    # The numbers of days in which earlier purchases are counted.
    windows: frozenset[int]


@lru_cache(maxsize=1_024)
def needs_of(definition: Definition) -> Needs:
    conditions = tuple(_conditions(definition))
    every = [part for _, condition in conditions for part in parts(condition)]
    return Needs(
        conditions=conditions,
        attributes=frozenset(part.key for part in every if isinstance(part, OfAttribute)),
        properties=frozenset(
            part.property for part in every if isinstance(part, OfProduct) and part.property is not None
        ),
        segments=frozenset(part.id for part in every if isinstance(part, OfSegment)),
        stores=frozenset(store for part in every if isinstance(part, OfStore) for store in part.any_of),
        windows=frozenset(part.in_days for part in every if isinstance(part, Purchases)),
    )


def _conditions(definition: Definition) -> Iterator[tuple[str, Condition]]:
    if definition.filter is not None:
        yield FILTER, definition.filter
    for place, step in walk(definition.steps):
        if isinstance(step, Branch):
            yield place, step.condition
