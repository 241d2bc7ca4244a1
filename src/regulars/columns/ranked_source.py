"""Customers in the order of the analysis process, as the source of a list."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from uuid import UUID

from regulars.columns.protocol import AnalysisUnavailable, MemberCursor, Members, NotReady, parse_cursor
from regulars.kit.clock import monotonic
from regulars.kit.db import Tx
from regulars.lists.sources import Connect, SourcePage

# How long a file waits for a page after the first one, for a process that is restarted.
PAGE_RETRIES_S: Final = 30.0
PAGE_RETRY_INTERVAL_S: Final = 0.2

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPage(SourcePage[Row]):
    members: Members


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRank(Generic[Row]):
    """`request` is `Analysis.members` of a query, without cursor and limit; `load` reads the rows of the customers."""

    request: Callable[..., Awaitable[Members]]
    load: Callable[[Tx, Sequence[UUID]], Awaitable[Sequence[Row]]]
    # Only in a sorted list does a cursor count the customers before it, so that there is a way back.
    is_sorted: bool = False
    retries_s: float = 0.0

    async def page(self, connect: Connect, *, after: str = "", before: str = "", limit: int) -> RankedPage[Row]:
        """A cursor of another build (epoch) of the columnar data is refused with `CursorExpired`."""
        start = parse_cursor(after) or _step_back(parse_cursor(before), limit)
        members = await self._request_members(start, limit)
        async with connect() as tx:
            rows = await self.load(tx, members.profile_ids)
        previous = str(start) if self.is_sorted and start is not None and start.number else None
        following = None if members.next is None else str(members.next)
        return RankedPage(rows, previous, following, members=members)

    async def _request_members(self, start: MemberCursor | None, limit: int) -> Members:
        """Only a request for the first page fails at once."""
        until = monotonic() + self.retries_s
        while True:
            try:
                return await self.request(after=start, limit=limit)
            except (NotReady, AnalysisUnavailable):
                if start is None or monotonic() > until:
                    raise
            await asyncio.sleep(PAGE_RETRY_INTERVAL_S)


def _step_back(end: MemberCursor | None, limit: int) -> MemberCursor | None:
    return None if end is None or end.number <= limit else end._replace(number=end.number - limit)
