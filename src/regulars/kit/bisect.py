"""Bisection: a batch that fails is split in two and run again, until only the items that fail alone have failed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def bisect_failures(
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    on_failure: Callable[[Sequence[Item], Exception], Sequence[Result] | None],
) -> list[Result]:
    """The results of running the items, in their order. A run that raises must have had no effect.

    `on_failure` decides about each run that raised: it returns results to use instead, or None to bisect the run.
    A single item cannot be bisected, so its error is raised. An error that `on_failure` raises itself ends the whole
    call: use it for errors that no item caused.
    """
    try:
        return list(await run(items))
    except Exception as error:  # `on_failure` decides about each error
        replacements = on_failure(items, error)
        if replacements is not None:
            return list(replacements)
        if len(items) <= 1:
            raise
    middle = len(items) // 2
    return [
        *await bisect_failures(items[:middle], run, on_failure),
        *await bisect_failures(items[middle:], run, on_failure),
    ]
