"""Runs a function on several runs of sales at the same time; numpy releases the interpreter lock while it works."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import current_thread
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_NAME: Final = "analysis"
_threads: Final = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=_NAME)


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The result of the function for each item. A call in one of these threads uses no other: it might wait forever."""
    is_in_thread = current_thread().name.startswith(_NAME)
    return list(map(function, items) if is_in_thread else _threads.map(function, items))
