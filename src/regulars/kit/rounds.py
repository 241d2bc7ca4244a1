"""Upserts over a list: several items may name the same key, and each key may need another round."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from regulars.kit.errors import Unavailable

ROUNDS_MAX = 5

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


async def settle_in_rounds(
    items: Sequence[Item],
    key_of: Callable[[Item], str],
    settle: Callable[[dict[str, list[Item]]], Awaitable[Mapping[str, list[Outcome]]]],
) -> list[Outcome]:
    """The outcome of each item, in their order.

    `settle` gets the items of each key in their order and answers the keys it could settle. A key that it leaves out
    lost a race against another transaction, and is settled again in the next round, onto the winner's row.
    """
    outcomes: dict[int, Outcome] = {}
    waiting: dict[str, list[int]] = {}
    for position, item in enumerate(items):
        waiting.setdefault(key_of(item), []).append(position)
    for _ in range(ROUNDS_MAX):
        if not waiting:
            break
        settled = await settle({key: [items[position] for position in at] for key, at in waiting.items()})
        for key, decided in settled.items():
            outcomes.update(zip(waiting.pop(key), decided, strict=True))
    if waiting:
        raise Unavailable("The same rows are being created and erased over and over; try again.")
    return [outcomes[position] for position in range(len(items))]
