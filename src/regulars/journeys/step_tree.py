"""Edits the tree of steps in a journey's definition. No I/O.

A place such as `3.else.1` addresses a step: here the first step on the path `3.else`, the `else` branch of step 3. A
place without a step raises `StepNotFound`, because another user may have changed the steps.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec.structs import replace

from regulars.conditions.tree import All, Condition
from regulars.journeys.definition import Branch, Definition, Step
from regulars.journeys.program import FILTER, paths_of
from regulars.kit.refusals import NotFound

Direction = Literal["up", "down"]
# The fields of a step that contain the steps of its branches.
_BRANCH_FIELDS: Final = {"then": "then", "else": "otherwise"}
_PLACE_CHARACTERS_MAX: Final = 400


class StepNotFound(NotFound):
    """There is no step at the place."""

    def __init__(self) -> None:
        super().__init__("This step is no longer in the draft.")


def step_at(definition: Definition, place: str) -> Step:
    path, index = split_place(place)
    steps = steps_in(definition, path)
    if not 0 <= index < len(steps):
        raise StepNotFound
    return steps[index]


def steps_in(definition: Definition, path: str) -> tuple[Step, ...]:
    """The steps on a path such as `3.else`; the path "" has the steps of the journey itself."""
    if not path:
        return definition.steps
    place, _, branch = path.rpartition(".")
    steps = dict(paths_of(step_at(definition, place))).get(branch)
    if steps is None:
        raise StepNotFound
    return steps


def insert_step(definition: Definition, place: str, step: Step) -> Definition:
    """Insert the step at a place; the step that was there and the steps after it move down by one."""
    path, index = split_place(place)
    steps = steps_in(definition, path)
    if not 0 <= index <= len(steps):
        raise StepNotFound
    return _with_steps(definition, path, (*steps[:index], step, *steps[index:]))


def replace_step(definition: Definition, place: str, *replacement: Step) -> Definition:
    """Replace the step at a place; without a replacement it is removed."""
    step_at(definition, place)
    path, index = split_place(place)
    steps = steps_in(definition, path)
    return _with_steps(definition, path, (*steps[:index], *replacement, *steps[index + 1 :]))


def remove_step(definition: Definition, place: str) -> Definition:
    return replace_step(definition, place)


def move_step(definition: Definition, place: str, direction: Direction) -> tuple[Definition, str]:
    """Move a step by one place in the order of the flow, also into and out of paths, and return its new place."""
    step = step_at(definition, place)
    remaining = remove_step(definition, place)
    slots = list(_list_slots(remaining.steps, ""))
    index = slots.index(place) + (-1 if direction == "up" else 1)
    target = slots[min(max(index, 0), len(slots) - 1)]
    return insert_step(remaining, target, step), target


def condition_of(definition: Definition, owner: str) -> Condition | None:
    """The condition of the filter or of a branch step; `owner` is `filter`, or the place of that step."""
    if owner == FILTER:
        return definition.filter
    step = step_at(definition, owner)
    if not isinstance(step, Branch):
        raise StepNotFound
    return step.condition


def with_condition(definition: Definition, owner: str, condition: Condition | None) -> Definition:
    """Set the condition of the filter or of a branch step. A branch step without a condition gets an empty group, which
    `check` reports as a fault."""
    if owner == FILTER:
        return replace(definition, filter=condition)
    step = step_at(definition, owner)
    if not isinstance(step, Branch):
        raise StepNotFound
    return replace_step(definition, owner, replace(step, condition=All(of=()) if condition is None else condition))


def split_place(place: str) -> tuple[str, int]:
    """The path that contains the step, and the step's index on this path."""
    path, _, number = place.rpartition(".")
    if len(place) > _PLACE_CHARACTERS_MAX or not (number.isascii() and number.isdigit() and len(number) <= 4):  # noqa: PLR2004  # thousands of steps
        raise StepNotFound
    return path, int(number) - 1


def place_after(place: str) -> str:
    """The place after a step, on the same path."""
    path, index = split_place(place)
    return f"{path}.{index + 2}" if path else str(index + 2)


def _with_steps(definition: Definition, path: str, steps: tuple[Step, ...]) -> Definition:
    if not path:
        return replace(definition, steps=steps)
    place, _, branch = path.rpartition(".")
    return replace_step(definition, place, replace(step_at(definition, place), **{_BRANCH_FIELDS[branch]: steps}))


def _list_slots(steps: tuple[Step, ...], prefix: str) -> Iterator[str]:
    """Every place where a step can be inserted, in the order of the flow."""
    for number, step in enumerate(steps, start=1):
        yield f"{prefix}{number}"
        for key, path in paths_of(step):
            yield from _list_slots(path, f"{prefix}{number}.{key}.")
    yield f"{prefix}{len(steps) + 1}"
