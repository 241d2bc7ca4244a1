"""Failpoints: named calls in the code where a crash test kills or suspends the process, or closes its connection.

Only a call of `arm` arms a failpoint. No code of this package calls `arm`, which a test checks, so no setting, variable
or file of a production configuration can arm one. A failpoint that is not armed costs one dictionary lookup.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import psycopg

# `sleep` suspends the process, `raise` simulates a lost connection, and `cut` closes the connection.
Act = Literal["kill", "sleep", "raise", "cut"]


@dataclass(slots=True)
class _ArmedFailpoint:
    act: Act
    passes: int
    seconds: float
    before_failing: Callable[[str, Act], None]


# The armed failpoints by name. Hot paths call `hit` only if there are any, and some callers prepare for theirs.
armed: Final[dict[str, _ArmedFailpoint]] = {}


def hit(name: str, drop_connection: Callable[[], object] | None = None) -> None:
    """Fail if this failpoint is armed. `drop_connection` closes the connection of the caller, if it has its own."""
    if name in armed:
        _fail(name, drop_connection)


def arm(
    name: str,
    act: Act,
    *,
    passes: int = 0,
    seconds: float = 0.0,
    before_failing: Callable[[str, Act], None] = lambda *_: None,
) -> None:
    """Arm a failpoint: it ignores the first `passes` calls of `hit` and fails once, after calling `before_failing`."""
    armed[name] = _ArmedFailpoint(act, passes, seconds, before_failing)


def disarm() -> None:
    armed.clear()


def _fail(name: str, drop_connection: Callable[[], object] | None) -> None:
    failpoint = armed[name]
    if failpoint.passes > 0:
        failpoint.passes -= 1
        return
    del armed[name]
    failpoint.before_failing(name, failpoint.act)
    if failpoint.act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif failpoint.act == "sleep":
        # The whole process stops, as if it were swapped out or suspended.
        time.sleep(failpoint.seconds)
    elif failpoint.act == "cut" and drop_connection is not None:
        drop_connection()
    else:
        raise psycopg.OperationalError(f"a failpoint at {name}")
