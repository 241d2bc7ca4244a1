"""Upserts of a list: several items may have the same key, and a key that loses a race is tried again."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from regulars.kit.errors import Unavailable

ATTEMPTS_MAX = 5

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


async def upsert_with_retries(
    items: Sequence[Item],
    key_of: Callable[[Item], str],
    upsert: Callable[[dict[str, list[Item]]], Awaitable[Mapping[str, list[Outcome]]]],
) -> list[Outcome]:
    """The outcome of each item, in their order.

    `upsert` gets the items of each key in their order and returns the outcomes of the keys it wrote. A key that it
    does not return lost a race against another transaction, and is tried again on the row of that transaction.
    """
    outcomes: dict[int, Outcome] = {}
    waiting: dict[str, list[int]] = {}
    for position, item in enumerate(items):
        waiting.setdefault(key_of(item), []).append(position)
    for _ in range(ATTEMPTS_MAX):
        if not waiting:
            break
        written = await upsert({key: [items[position] for position in positions] for key, positions in waiting.items()})
        for key, its_outcomes in written.items():
            outcomes.update(zip(waiting.pop(key), its_outcomes, strict=True))
    if waiting:
        raise Unavailable("The same rows are being created and erased over and over; try again.")
    return [outcomes[position] for position in range(len(items))]
