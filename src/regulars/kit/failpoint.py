"""Failpoints: named places in the code where `bin/crash` kills or stops the process, or cuts its connection.

A failpoint is armed only by code that calls `arm`, and nothing in this package does, which a test checks: no setting,
variable or file of a production configuration arms one. A failpoint that is not armed costs one dictionary lookup.
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
    """Raised at a failpoint that simulates a lost connection."""


@dataclass(slots=True)
class _Trap:
    act: Act
    passes: int
    seconds: float
    sprung: Callable[[str, Act], None]


_traps: Final[dict[str, _Trap]] = {}


def hit(place: str, cut: Callable[[], object] | None = None) -> None:
    """Fail here if the failpoint is armed. `cut` closes the connection of the caller, if it has its own."""
    if _traps and place in _traps:
        _spring(place, cut)


def is_set(place: str) -> bool:
    """Whether the failpoint is armed, for callers that must prepare for it."""
    return place in _traps


def arm(
    place: str, act: Act, *, passes: int = 0, seconds: float = 0.0, sprung: Callable[[str, Act], None] = lambda *_: None
) -> None:
    """Arm a failpoint: it fails once, after `passes` calls of `hit`. `sprung` is called just before."""
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
        # The whole process stops, as if it were swapped out or suspended.
        time.sleep(trap.seconds)
    elif trap.act == "cut" and cut is not None:
        cut()
    else:
        raise LostError(f"a trap at {place}")
