"""Named places where a process can be made to break: `bin/crash` kills, stops and cuts there, and then looks.

Only code can set a trap, by calling `arm`, and nothing in this package does (a test holds that): no setting, variable
or file of a production configuration turns one on. A place without a trap costs one look at an empty dictionary.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import psycopg

Act = Literal["kill", "sleep", "raise", "cut"]


class LostError(psycopg.OperationalError):
    """What a place hears that is told that its connection is gone."""


@dataclass(slots=True)
class _Trap:
    act: Act
    passes: int
    seconds: float
    sprung: Callable[[str, Act], None]


_traps: Final[dict[str, _Trap]] = {}


def hit(place: str, cut: Callable[[], object] | None = None) -> None:
    """Break here if a trap is set. `cut` is how the place loses the connection it works on, where that is its own."""
    if _traps and place in _traps:
        _spring(place, cut)


def is_set(place: str) -> bool:
    """For places that have to prepare for what would happen there."""
    return place in _traps


def arm(
    place: str, act: Act, *, passes: int = 0, seconds: float = 0.0, sprung: Callable[[str, Act], None] = lambda *_: None
) -> None:
    """Set a trap that springs once, when the place has been passed so many times. `sprung` hears it just before."""
    _traps[place] = _Trap(act, passes, seconds, sprung)


def disarm() -> None:
    _traps.clear()


def _spring(place: str, cut: Callable[[], object] | None) -> None:
    trap = _traps[place]
    if trap.passes > 0:
        trap.passes -= 1
        return
    del _traps[place]
    trap.sprung(place, trap.act)
    if trap.act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif trap.act == "sleep":
        # The whole process stands still, as one that is swapped out or stopped does.
        time.sleep(trap.seconds)
    elif trap.act == "cut" and cut is not None:
        cut()
    else:
        raise LostError(f"a trap at {place}")
