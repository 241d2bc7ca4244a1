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
class _ArmedFailpoint:
    act: Act
    passes: int
    seconds: float
    before_failing: Callable[[str, Act], None]


_armed: Final[dict[str, _ArmedFailpoint]] = {}


def hit(place: str, drop_connection: Callable[[], object] | None = None) -> None:
    """Fail here if the failpoint is armed. `drop_connection` closes the connection of the caller, if it has its own."""
    if _armed and place in _armed:
        _fail(place, drop_connection)


def is_set(place: str) -> bool:
    """Whether the failpoint is armed, for callers that must prepare for it."""
    return place in _armed


def arm(
    place: str,
    act: Act,
    *,
    passes: int = 0,
    seconds: float = 0.0,
    before_failing: Callable[[str, Act], None] = lambda *_: None,
) -> None:
    """Arm a failpoint: it fails once, after `passes` calls of `hit`. `before_failing` is called just before."""
    _armed[place] = _ArmedFailpoint(act, passes, seconds, before_failing)


def disarm() -> None:
    _armed.clear()


def _fail(place: str, drop_connection: Callable[[], object] | None) -> None:
    armed = _armed[place]
    if armed.passes > 0:
        armed.passes -= 1
        return
    del _armed[place]
    armed.before_failing(place, armed.act)
    if armed.act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif armed.act == "sleep":
        # The whole process stops, as if it were swapped out or suspended.
        time.sleep(armed.seconds)
    elif armed.act == "cut" and drop_connection is not None:
        drop_connection()
    else:
        raise LostError(f"a failpoint at {place}")
