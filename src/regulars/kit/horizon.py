"""The horizon of a list of changes: a time before which all our transactions have ended.

It is read from the sessions of the database. PostgreSQL shows the start of another role's transaction only to members
of that role and of `pg_read_all_stats`, and none where `track_activities` is off. If one of our sessions hides it,
there is no horizon: a caller that polls would miss the rows of that session's transactions.

Each reading finds out whether a session hides its transactions, because one may have begun since the reading before.
Why one hides them is read once a minute at most.
"""

from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple

import psycopg

from regulars.kit import log
from regulars.kit.clock import monotonic, truncate_to_milliseconds
from regulars.kit.db import Tx
from regulars.kit.db_session import APPLICATION_NAME
from regulars.kit.errors import Unavailable

FIX: Final = (
    "Let all nodes connect as one role, or GRANT pg_read_all_stats to their roles; keep track_activities on, and let a"
    " pooler pass the application name on, with an addition at its end if need be."
)
PROBLEM_LOGGED_EVERY_S: Final = 60.0
# A pooler may add the address of its client to our application name. Every poll runs this statement, so it reads the
# function below the view `pg_stat_activity`, which joins the names of roles and databases: with 80 sessions it takes
# half as long.
_READ_HORIZON: Final[LiteralString] = """
SELECT least(clock_timestamp(), min(xact_start) FILTER (WHERE pid <> pg_backend_pid())) - interval '2 seconds'
           AS horizon,
       coalesce(bool_or(pid = pg_backend_pid()), false)
           AND bool_and(backend_start IS NOT NULL AND state IS DISTINCT FROM 'disabled') AS is_readable
FROM pg_stat_get_activity(NULL)
WHERE starts_with(application_name, %s)
  AND datid = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_READ_SESSIONS: Final[LiteralString] = """
SELECT coalesce(bool_or(pid = pg_backend_pid()), false) AS is_own_found,
       string_agg(DISTINCT usename, ', ') FILTER (WHERE backend_start IS NULL) AS hidden_roles,
       coalesce(bool_or(state = 'disabled'), false) AS is_tracking_off
FROM pg_stat_activity
WHERE starts_with(application_name, %s) AND datname = current_database()
"""

_log = log.get(__name__)


class Sessions(NamedTuple):
    """What the database shows of our sessions."""

    is_own_found: bool
    # The names of the roles whose transactions are hidden.
    hidden_roles: str | None
    is_tracking_off: bool

    def describe_problem(self) -> str | None:
        """One sentence for the operator about why there is no horizon; None if there is one."""
        if not self.is_own_found:
            return f"The database does not show our session under the application name '{APPLICATION_NAME}'."
        if self.hidden_roles is not None:
            return f"The database hides the transactions of sessions of another role: {self.hidden_roles}."
        if self.is_tracking_off:
            return "The database does not show when transactions began, because track_activities is off."
        return None


class ProblemLog:
    """Reads and logs why there is no horizon, once a minute at most, however many polls are refused."""

    def __init__(self) -> None:
        self._next_at = float("-inf")

    async def record(self, tx: Tx) -> None:
        if monotonic() >= self._next_at:
            self._next_at = monotonic() + PROBLEM_LOGGED_EVERY_S
            [row] = await tx.fetch(_READ_SESSIONS, (APPLICATION_NAME,))
            _log_problem(Sessions(*row).describe_problem())


_PROBLEM_LOG: Final = ProblemLog()


async def read_horizon(tx: Tx) -> datetime:
    """Read the horizon; call it before reading the rows, because a transaction that begins later writes newer rows."""
    [(horizon, is_readable)] = await tx.fetch(_READ_HORIZON, (APPLICATION_NAME,))
    if not is_readable:
        await _PROBLEM_LOG.record(tx)
        raise Unavailable(
            "Changes cannot be listed now: the database hides transactions in which rows may be missed. `regulars"
            " doctor` says why."
        )
    return truncate_to_milliseconds(horizon)


def warn_at_start(connection: psycopg.Connection[Any]) -> None:
    """Log that lists of changes will be refused, if they will, before the first caller asks for one."""
    _log_problem(find_problem(connection))


def find_problem(connection: psycopg.Connection[Any]) -> str | None:
    """One sentence about why changes cannot be listed; None if they can."""
    [row] = connection.execute(_READ_SESSIONS, (APPLICATION_NAME,)).fetchall()
    return Sessions(*row).describe_problem()


def _log_problem(problem: str | None) -> None:
    if problem is not None:
        _log.warning("changes.cannot_be_listed", reason=problem, fix=FIX)
