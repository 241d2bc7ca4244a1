"""Start many acts at the same instant."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
BARRIER_SECONDS_MAX = 60


def at_once(acts: Sequence[Callable[[], T]]) -> list[T]:
    """Run all acts in threads that wait for each other before they begin."""
    barrier = threading.Barrier(len(acts), timeout=BARRIER_SECONDS_MAX)

    def run(act: Callable[[], T]) -> T:
        barrier.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))
