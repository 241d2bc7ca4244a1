"""Runs a function on several runs of sales at the same time; numpy releases the interpreter lock while it works."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_threads: Final = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="analysis")


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The result of the function for each item. The function must not call `map_in_threads`."""
    return list(_threads.map(function, items))
