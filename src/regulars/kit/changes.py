"""Pages of a list in the order of last change, so that a caller that polls for changes misses no row.

A row has the timestamp of its transaction's start, and may be committed after a row with a newer timestamp. A caller
whose cursor is past that timestamp would never get the row. So a page ends at a *horizon*: a time before which all
transactions have ended. The horizon is the start of the oldest open transaction, or now, minus two seconds, because the
statement that records sales gets its timestamp up to a second before it begins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.horizon import read_horizon
from regulars.kit.pagination import read_cursor, scope_of, write_cursor
from regulars.kit.text import read_timestamp

PARAMETER = "updated_from"
_LOWEST_ID = UUID(int=0)

T = TypeVar("T")


class ChangePosition(NamedTuple):
    """The position after which a page of changes begins, and the horizon before which it ends."""

    time: datetime
    id: UUID
    horizon: datetime


@dataclass(frozen=True, slots=True)
class PageStart:
    """The start of a page: after an id in the order of creation, or after a position in the order of last change.

    A cursor is signed with the `secret` and valid only for the `scope`: the list and its filters.
    """

    secret: bytes = field(repr=False)
    scope: str
    after: UUID | None = None
    since: ChangePosition | None = None

    def cut_page(
        self,
        rows: Sequence[T],
        limit: int,
        position_of: Callable[[T], tuple[datetime, UUID]],
        *,
        may_have_more: bool = False,
    ) -> tuple[Sequence[T], bool, str | None]:
        """Return the page, whether more rows follow, and the next cursor. The caller has fetched one row over `limit`,
        or fewer, if it read as many rows as it may (`may_have_more`).

        A list of changes always has a next cursor: the caller continues from there when it polls again.
        """
        page, has_more = rows[:limit], len(rows) > limit or may_have_more
        if self.since is None:
            return page, has_more, self._write_cursor(position_of(page[-1])[1:]) if has_more else None
        return page, has_more, self._write_cursor(position_of(page[-1]) if page else self.since[:2])

    def _write_cursor(self, position: tuple[Any, ...]) -> str:
        keys = (key.isoformat() if isinstance(key, datetime) else str(key) for key in position)
        return write_cursor(self.secret, self.scope, tuple(keys))


async def read_start(tx: Tx, query: Mapping[str, str], *, secret: bytes, scope: str) -> PageStart:
    """Read from the query where the page starts."""
    position = read_cursor(secret, scope, query["cursor"]) if "cursor" in query else ()
    if PARAMETER not in query:
        return PageStart(secret, scope, after=UUID(position[0]) if position else None)
    # The query parser turns an unescaped plus of the time zone into a space.
    time, identifier = read_timestamp(query[PARAMETER].replace(" ", "+"), field=PARAMETER), _LOWEST_ID
    if position:
        time, identifier = datetime.fromisoformat(position[0]), UUID(position[1])
    return PageStart(secret, scope, since=ChangePosition(time, identifier, await read_horizon(tx)))


def scope_of_changes(name: str, query: Mapping[str, str], **filters: Any) -> str:
    from_parameter = {PARAMETER: query[PARAMETER]} if PARAMETER in query else {}
    return scope_of(name, {}, **filters, **from_parameter)
