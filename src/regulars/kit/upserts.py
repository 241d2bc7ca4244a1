"""Upsert a list of items, several of which may have the same key, and retry keys that lose a race."""

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
    """Return the outcome of each item, in the order of the items.

    `upsert` gets the items by key and returns the outcomes of the keys it wrote. A key that it does not return lost a
    race against another transaction, and is tried again on the row that the other transaction wrote.
    """
    outcomes: dict[int, Outcome] = {}
    pending: dict[str, list[int]] = {}
    for position, item in enumerate(items):
        pending.setdefault(key_of(item), []).append(position)
    for _ in range(ATTEMPTS_MAX):
        if not pending:
            break
        written = await upsert({key: [items[position] for position in positions] for key, positions in pending.items()})
        for key, key_outcomes in written.items():
            outcomes.update(zip(pending.pop(key), key_outcomes, strict=True))
    if pending:
        raise Unavailable("The same rows are being created and erased over and over; try again.")
    return [outcomes[position] for position in range(len(items))]
