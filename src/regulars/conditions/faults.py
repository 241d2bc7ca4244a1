"""Finds the faults of a tree of conditions.

The same check runs when a definition is saved and each time it is evaluated, because in the meantime the type of a key
may have changed, or a segment or store may have been deleted. A tree with a fault is not evaluated at all. If only the
faulty condition were false, a *none* group around it would be true for every customer.
"""

from collections.abc import Iterator
from typing import Final

from regulars.conditions import tree
from regulars.conditions.check import EMPTY_GROUP, ConditionContext, Fault
from regulars.conditions.kind import TicketKind

FAULTS_MAX: Final = 50
EMPTY_TEXT: Final = "A value is empty; remove it. For customers without a value, use “is set” or “is not set”."


def find_faults(
    condition: tree.Condition, context: ConditionContext, *, root: str = "match", no_ticket: str | None = None
) -> list[Fault]:
    """Find the first FAULTS_MAX faults. `no_ticket` says why conditions on the ticket that triggered a journey are not
    allowed; None allows them."""
    return list(_check(condition, context, root, no_ticket))[:FAULTS_MAX]


def place_of(root: str, path: tree.Path) -> str:
    """The path of a condition in the definition, such as `match.of[1]`."""
    return root + "".join(f".of[{number}]" for number in path)


def find_size_faults(condition: tree.Condition, root: str) -> Iterator[Fault]:
    """The size limits that the condition exceeds."""
    leaves = sum(not isinstance(part, tree.Group) for _, part in tree.walk(condition))
    if leaves > tree.CONDITIONS_MAX:
        yield Fault(root, f"A definition has at most {tree.CONDITIONS_MAX} conditions; this one has {leaves}.")
    if tree.depth_of(condition) > tree.DEPTH_MAX:
        yield Fault(root, f"Groups are nested at most {tree.DEPTH_MAX} deep.")


def find_empty_texts(condition: tree.Condition, root: str = "match") -> Iterator[Fault]:
    """Empty texts that conditions compare with. They cannot be saved; one that is stored is evaluated as it is."""
    for path, part in tree.walk(condition):
        for place, texts in () if isinstance(part, tree.Group) else part.list_texts():
            if not all(text.strip() for text in texts):
                yield Fault(f"{place_of(root, path)}.{place}", EMPTY_TEXT)


def _check(condition: tree.Condition, context: ConditionContext, root: str, no_ticket: str | None) -> Iterator[Fault]:
    yield from find_size_faults(condition, root)
    for path, part in tree.walk(condition):
        place = place_of(root, path)
        if isinstance(part, tree.Group):
            if not part.of:
                yield Fault(place, EMPTY_GROUP)
            continue
        if no_ticket is not None and isinstance(part, TicketKind):
            yield Fault(place, f"A condition is about the ticket, and {no_ticket}.")
        yield from part.find_faults(place, context)
