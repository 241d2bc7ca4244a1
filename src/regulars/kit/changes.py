"""Pages in the order of change: a caller can poll for changes for ever and misses no row.

A row has the timestamp of its transaction's start, and may be committed after a row with a newer timestamp. A caller
that has passed this position would never see it. So a page ends before a *horizon*: all rows before it are committed or
rolled back. The horizon is the start of the oldest open transaction, or now, minus two seconds: the statement that
records sales gets its timestamp up to a second before it begins.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from regulars.kit.clock import truncate_to_milliseconds
from regulars.kit.db import Tx
from regulars.kit.db_session import APPLICATION_NAME
from regulars.kit.pagination import read_cursor, scope_of, write_cursor
from regulars.kit.text import read_timestamp

PARAMETER = "updated_from"
_BEFORE_ALL = UUID(int=0)

T = TypeVar("T")


class Since(NamedTuple):
    """The position after which a page of changes begins, and the horizon before which it ends."""

    moment: datetime
    id: UUID
    horizon: datetime


class Start(NamedTuple):
    """The start of a page: after an id in the order of creation, or at a position in the order of change."""

    after: UUID | None = None
    since: Since | None = None

    def cut(
        self,
        found: Sequence[T],
        limit: int,
        *,
        secret: bytes,
        scope: str,
        position_of: Callable[[T], tuple[datetime, UUID]],
    ) -> tuple[Sequence[T], bool, str | None]:
        """Split rows that were fetched with one extra: the page, whether there are more, and the cursor of the next
        page.

        A list of changes has no end: at the horizon, the cursor is the position from which to continue later.
        """
        page, has_more = found[:limit], len(found) > limit
        if self.since is None:
            return page, has_more, _write(secret, scope, position_of(page[-1])[1:]) if has_more else None
        return page, has_more, _write(secret, scope, position_of(page[-1]) if page else self.since[:2])


async def read_start(tx: Tx, query: Mapping[str, str], *, secret: bytes, scope: str) -> Start:
    """Read the start of the page from the query; `scope` contains the value of `updated_from`, if there is one."""
    position = read_cursor(secret, scope, query["cursor"]) if "cursor" in query else ()
    if PARAMETER not in query:
        return Start(after=UUID(position[0]) if position else None)
    # An unescaped plus in a query is a space by the time it arrives here.
    moment, identifier = read_timestamp(query[PARAMETER].replace(" ", "+"), field=PARAMETER), _BEFORE_ALL
    if position:
        moment, identifier = datetime.fromisoformat(position[0]), UUID(position[1])
    return Start(since=Since(moment, identifier, await _read_horizon(tx)))


def scope_of_changes(name: str, query: Mapping[str, str], **filters: Any) -> str:
    from_parameter = {PARAMETER: query[PARAMETER]} if PARAMETER in query else {}
    return scope_of(name, {}, **filters, **from_parameter)


def _write(secret: bytes, scope: str, position: tuple[Any, ...]) -> str:
    return write_cursor(
        secret, scope, tuple(it.isoformat() if isinstance(it, datetime) else str(it) for it in position)
    )


async def _read_horizon(tx: Tx) -> datetime:
    """The time before which all transactions have ended. It is read before the rows of a page: a transaction that
    begins later writes newer rows."""
    rows = await tx.fetch(
        "SELECT least(clock_timestamp(), min(xact_start)) - interval '2 seconds' FROM pg_stat_activity"
        " WHERE application_name = %s AND datname = current_database() AND pid <> pg_backend_pid()",
        (APPLICATION_NAME,),
    )
    return truncate_to_milliseconds(rows[0][0])
