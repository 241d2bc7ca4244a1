"""Changing a definition at a place: steps by where they stand (`3.else.1`), conditions by their way from the root.

Pure functions. A place that is not there gives `NoSuchPlace`: somebody else may have changed the steps meanwhile.
"""

from collections.abc import Iterator
from typing import Final, Literal, cast

from msgspec.structs import replace

from regulars.conditions.tree import All, Any, Condition, Group, Nothing
from regulars.journeys.definition import Branch, Definition, Step
from regulars.journeys.program import Forking

FILTER: Final = "filter"
GROUPS: Final[dict[str, type[Group]]] = {"all": All, "any": Any, "none": Nothing}
Way = Literal["up", "down"]
_WAYS: Final = {"then": "then", "else": "otherwise"}
_PLACE_CHARACTERS_MAX: Final = 400


class NoSuchPlace(Exception):
    """Nothing stands there."""


def step_at(definition: Definition, place: str) -> Step:
    container, index = split_place(place)
    steps = steps_in(definition, container)
    if not 0 <= index < len(steps):
        raise NoSuchPlace(place)
    return steps[index]


def steps_in(definition: Definition, container: str) -> tuple[Step, ...]:
    """The steps of a way, such as `3.else`; "" is the journey itself."""
    if not container:
        return definition.steps
    place, _, way = container.rpartition(".")
    step = step_at(definition, place)
    if not isinstance(step, Forking) or way not in _WAYS:
        raise NoSuchPlace(container)
    return cast("tuple[Step, ...]", getattr(step, _WAYS[way]))


def insert_step(definition: Definition, place: str, step: Step) -> Definition:
    """The step will stand there; what stood there comes after it."""
    container, index = split_place(place)
    steps = steps_in(definition, container)
    if not 0 <= index <= len(steps):
        raise NoSuchPlace(place)
    return _with_steps(definition, container, (*steps[:index], step, *steps[index:]))


def replace_step(definition: Definition, place: str, step: Step) -> Definition:
    step_at(definition, place)
    container, index = split_place(place)
    steps = steps_in(definition, container)
    return _with_steps(definition, container, (*steps[:index], step, *steps[index + 1 :]))


def remove_step(definition: Definition, place: str) -> Definition:
    step_at(definition, place)
    container, index = split_place(place)
    steps = steps_in(definition, container)
    return _with_steps(definition, container, (*steps[:index], *steps[index + 1 :]))


def move_step(definition: Definition, place: str, way: Way) -> tuple[Definition, str]:
    """One place on in the order of reading, into a way and out of it again, so that every place can be reached."""
    step = step_at(definition, place)
    without = remove_step(definition, place)
    slots = list(_slots(without.steps, ""))
    at = slots.index(place) + (-1 if way == "up" else 1)
    target = slots[min(max(at, 0), len(slots) - 1)]
    return insert_step(without, target, step), target


def walk_places(definition: Definition) -> Iterator[tuple[str, Step]]:
    """Every step with where it stands, whatever id it has."""
    return _walk(definition.steps, "")


def condition_of(definition: Definition, owner: str) -> Condition | None:
    """`owner` is `filter`, or the place of a branch."""
    if owner == FILTER:
        return definition.filter
    step = step_at(definition, owner)
    if not isinstance(step, Branch):
        raise NoSuchPlace(owner)
    return step.condition


def with_condition(definition: Definition, owner: str, condition: Condition | None) -> Definition:
    """A branch always asks something; one that lost its question has an empty group, which is a fault to mend."""
    if owner == FILTER:
        return replace(definition, filter=condition)
    step = step_at(definition, owner)
    if not isinstance(step, Branch):
        raise NoSuchPlace(owner)
    return replace_step(definition, owner, replace(step, condition=All(of=()) if condition is None else condition))


def part_at(root: Condition | None, way: str) -> Condition | None:
    """`way` is like `0.2`; "" is the root."""
    found = root
    for index in _indexes(way):
        if not isinstance(found, Group) or not 0 <= index < len(found.of):
            raise NoSuchPlace(way)
        found = found.of[index]
    return found


def add_part(root: Condition | None, way: str, part: Condition) -> Condition:
    """Into the group that stands there; beside what is no group."""
    there = part_at(root, way)
    if there is None:
        return part
    if isinstance(there, Group):
        return _replaced(root, _indexes(way), replace(there, of=(*there.of, part)))
    return _replaced(root, _indexes(way), All(of=(there, part)))


def replace_part(root: Condition | None, way: str, part: Condition) -> Condition:
    if part_at(root, way) is None:
        raise NoSuchPlace(way)
    return _replaced(root, _indexes(way), part)


def remove_part(root: Condition | None, way: str) -> Condition | None:
    """A group that loses its last condition goes too, and one that keeps a single one becomes it."""
    if part_at(root, way) is None:
        raise NoSuchPlace(way)
    indexes = _indexes(way)
    if not indexes or root is None:
        return None
    above = part_at(root, ".".join(map(str, indexes[:-1])))
    if not isinstance(above, Group):
        raise NoSuchPlace(way)
    left = (*above.of[: indexes[-1]], *above.of[indexes[-1] + 1 :])
    parent = ".".join(map(str, indexes[:-1]))
    if not left:
        return remove_part(root, parent)
    is_needless = len(left) == 1 and not isinstance(above, Nothing)
    return _replaced(root, indexes[:-1], left[0] if is_needless else replace(above, of=left))


def regroup(root: Condition | None, way: str, kind: str) -> Condition:
    """All, any or none of the same."""
    there = part_at(root, way)
    if not isinstance(there, Group) or kind not in GROUPS:
        raise NoSuchPlace(way)
    return _replaced(root, _indexes(way), GROUPS[kind](of=there.of))


def split_place(place: str) -> tuple[str, int]:
    """The way a step stands in, and its index there."""
    container, _, number = place.rpartition(".")
    if len(place) > _PLACE_CHARACTERS_MAX or not (number.isascii() and number.isdigit() and len(number) <= 4):  # noqa: PLR2004  # thousands of steps
        raise NoSuchPlace(place)
    return container, int(number) - 1


def _with_steps(definition: Definition, container: str, steps: tuple[Step, ...]) -> Definition:
    if not container:
        return replace(definition, steps=steps)
    place, _, way = container.rpartition(".")
    return replace_step(definition, place, replace(step_at(definition, place), **{_WAYS[way]: steps}))


def _slots(steps: tuple[Step, ...], prefix: str) -> Iterator[str]:
    """Every place where a step could be put, in the order of reading."""
    for number, step in enumerate(steps, start=1):
        yield f"{prefix}{number}"
        if isinstance(step, Forking):
            yield from _slots(step.then, f"{prefix}{number}.then.")
            yield from _slots(step.otherwise, f"{prefix}{number}.else.")
    yield f"{prefix}{len(steps) + 1}"


def _walk(steps: tuple[Step, ...], prefix: str) -> Iterator[tuple[str, Step]]:
    for number, step in enumerate(steps, start=1):
        yield f"{prefix}{number}", step
        if isinstance(step, Forking):
            yield from _walk(step.then, f"{prefix}{number}.then.")
            yield from _walk(step.otherwise, f"{prefix}{number}.else.")


def _indexes(way: str) -> list[int]:
    parts = way.split(".") if way else []
    if len(way) > _PLACE_CHARACTERS_MAX or not all(part.isascii() and part.isdigit() for part in parts):
        raise NoSuchPlace(way)
    return [int(part) for part in parts]


def _replaced(root: Condition | None, indexes: list[int], part: Condition) -> Condition:
    if not indexes:
        return part
    if not isinstance(root, Group) or not 0 <= indexes[0] < len(root.of):
        raise NoSuchPlace(".".join(map(str, indexes)))
    first, rest = indexes[0], indexes[1:]
    inner = _replaced(root.of[first], rest, part)
    return replace(root, of=(*root.of[:first], inner, *root.of[first + 1 :]))
