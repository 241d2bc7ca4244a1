"""Bisection: a batch that fails is split in two and run again, until only the items that fail alone have failed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def bisect_failures(
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    failed: Callable[[Sequence[Item], Exception], Sequence[Result] | None],
) -> list[Result]:
    """The results of running the items, in their order. A run that raises must have had no effect.

    `failed` decides about each run that raised: it returns results to use instead, or None to bisect the run. A single
    item cannot be bisected, so its error is raised. An error that `failed` raises itself ends the whole call: use it
    for errors that no item caused.
    """
    try:
        return list(await run(items))
    except Exception as error:  # `failed` decides about each error
        instead = failed(items, error)
        if instead is not None:
            return list(instead)
        if len(items) <= 1:
            raise
    middle = len(items) // 2
    return [*await bisect_failures(items[:middle], run, failed), *await bisect_failures(items[middle:], run, failed)]
