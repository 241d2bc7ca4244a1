"""One item's fault must not become its neighbours': what fails together is run in halves until only the guilty fail."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def by_halves(
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    failed: Callable[[Sequence[Item], Exception], Sequence[Result] | None],
) -> list[Result]:
    """What running the items gives, in their order. A run that raises must have taken nothing into effect.

    `failed` decides about each run that did: what there is instead of its results, or None to run its halves, which an
    item that failed alone does not have. What it raises ends everything, for errors that are no item's fault.
    """
    try:
        return list(await run(items))
    except Exception as error:  # `failed` decides about every one
        instead = failed(items, error)
        if instead is not None:
            return list(instead)
        if len(items) <= 1:
            raise
    middle = len(items) // 2
    return [*await by_halves(items[:middle], run, failed), *await by_halves(items[middle:], run, failed)]
