"""The horizon of a list of changes: a time before which all our transactions have ended.

It is read from the sessions of the database. PostgreSQL shows the start of another role's transaction only to members
of that role and of `pg_read_all_stats`, and none where `track_activities` is off. If one of our sessions hides it,
there is no horizon: a caller that polls would miss the rows of that session's transactions.
"""

from datetime import datetime
from typing import Any, Final, LiteralString, NamedTuple

import psycopg

from regulars.kit.clock import truncate_to_milliseconds
from regulars.kit.db import Tx
from regulars.kit.db_session import APPLICATION_NAME
from regulars.kit.errors import Unavailable

FIX: Final = (
    "Let all nodes connect as one role, or GRANT pg_read_all_stats to their roles; keep track_activities on, and let a"
    " pooler pass the application name on, with an addition at its end if need be."
)
# A pooler may add the address of its client to our application name.
_READ_SESSIONS: Final[LiteralString] = """
SELECT least(clock_timestamp(), min(xact_start) FILTER (WHERE pid <> pg_backend_pid())) - interval '2 seconds'
           AS horizon,
       coalesce(bool_or(pid = pg_backend_pid()), false) AS is_own_found,
       string_agg(DISTINCT usename, ', ') FILTER (WHERE backend_start IS NULL) AS hidden_roles,
       coalesce(bool_or(state = 'disabled'), false) AS is_tracking_off
FROM pg_stat_activity
WHERE starts_with(application_name, %s) AND datname = current_database()
"""


class Sessions(NamedTuple):
    """What the database shows of our sessions."""

    horizon: datetime
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


async def read_horizon(tx: Tx) -> datetime:
    """Read the horizon; call it before reading the rows, because a transaction that begins later writes newer rows."""
    [row] = await tx.fetch(_READ_SESSIONS, (APPLICATION_NAME,))
    sessions = Sessions(*row)
    if sessions.describe_problem() is not None:
        raise Unavailable(
            "Changes cannot be listed now: the database hides transactions in which rows may be missed. `regulars"
            " doctor` says why."
        )
    return truncate_to_milliseconds(sessions.horizon)


def find_problem(connection: psycopg.Connection[Any]) -> str | None:
    """One sentence about why changes cannot be listed; None if they can."""
    [row] = connection.execute(_READ_SESSIONS, (APPLICATION_NAME,)).fetchall()
    return Sessions(*row).describe_problem()
