"""Run a batch; if it fails, bisect it and run both parts, until each failing item is isolated."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def bisect_failures(
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    on_failure: Callable[[Sequence[Item], Exception], Sequence[Result] | None],
) -> list[Result]:
    """Return the results of the items, in their order. A call of `run` that raises must have written nothing.

    `on_failure` decides about each failed part: it returns replacement results, or None to bisect the part. A single
    item cannot be bisected, so its error is raised. `on_failure` raises an error that no item caused, such as a lost
    connection, to stop the bisection.
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
