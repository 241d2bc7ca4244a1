"""Finds the sales of one page of a list with filters that have no index, reading a bounded number of sales.

First the sales after the page's position are read one by one. Only if none of them matches, blocks without a matching
sale are skipped. A page may have fewer sales than asked for; it is empty only at the end of the list.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, LiteralString, NamedTuple, get_args
from uuid import UUID

from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.kit.errors import Unavailable
from regulars.kit.ids import first_id_at
from regulars.sales.blocks.build import BLOCK_SALES, find_end
from regulars.sales.blocks.order import ALL_STORES, BY_ID, BY_PROFILE, BY_STORE, BY_TIME, Order
from regulars.sales.model import Currency, SaleType

_SEARCHED: Final = frozenset(
    {"type", "currency", "store_id", "profile_id", "created_from", "created_to", "updated_from"}
)
_TIMES: Final = frozenset({"occurred_from", "occurred_to"})
# How many sales are read one by one. Those of a store or in the order of time are each on a page of their own.
SCANNED_MAX: Final = 1_000
# How many sales after the last block are read. Those of all stores are next to each other.
_NEWEST_MAX: Final = {BY_ID: 10_000, BY_STORE: 2_000}
_BLOCKS_MAX: Final = {BY_ID: 8, BY_STORE: 2}
# How many sales of one customer are read.
_OF_CUSTOMER_MAX: Final = 3_000
# How far a server's clock may have been from the database's when an older release made the id of a sale.
CLOCK_DIFFERENCE_MAX: Final = timedelta(hours=1)
# A till may date a sale at any time.
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# No sale was created before or after these.
_FIRST_CREATED, _LAST_CREATED = datetime(1970, 1, 2, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_FIRST_ID, LAST_ID = UUID(int=0), UUID(int=(1 << 128) - 1)

_MATCHES: Final[LiteralString] = """(
    (%(type)s::text IS NULL OR e.type = %(type)s)
    AND (%(currency)s::text IS NULL OR e.currency = %(currency)s)
    AND (%(store_id)s::uuid IS NULL OR e.store_id = %(store_id)s)
    AND (%(profile_id)s::uuid IS NULL OR e.profile_id IS NOT DISTINCT FROM %(profile_id)s)
    AND (%(created_from)s::timestamptz IS NULL OR e.created_at >= %(created_from)s)
    AND (%(created_to)s::timestamptz IS NULL OR e.created_at < %(created_to)s)
    AND (%(occurred_from)s::timestamptz IS NULL OR e.occurred_at >= %(occurred_from)s)
    AND (%(occurred_to)s::timestamptz IS NULL OR e.occurred_at < %(occurred_to)s)
)"""
_COLUMNS: Final[LiteralString] = "e.id, e.occurred_at, e.created_at, e.type, e.currency, e.store_id, e.profile_id"
# The last sale that was read is returned too, so that the caller knows where the scan ended.
_SCAN: Final[LiteralString] = """
SELECT e.id, e.occurred_at, {matches} AS matches, e.number
FROM (
    SELECT *, row_number() OVER (ORDER BY {ordered}) AS number
    FROM (
        SELECT {columns}
        FROM sales_events AS e
        WHERE e.organization_id = %(organization_id)s AND {between}
        ORDER BY {ordered}
        LIMIT %(rows_max)s
    ) AS e
) AS e
WHERE {matches} OR e.number = %(rows_max)s
ORDER BY e.number
LIMIT %(found_max)s
"""
_FIND_BLOCKS: Final[LiteralString] = """
SELECT {columns}
FROM sale_blocks
WHERE organization_id = %(organization_id)s AND store_id = %(scope)s
  AND last_id > %(after)s AND last_id <= %(end)s AND first_id < %(until_id)s
  AND (%(contents)s::text[] IS NULL OR contents && %(contents)s)
  AND (%(created_from)s::timestamptz IS NULL OR created_to >= %(created_from)s)
  AND (%(created_to)s::timestamptz IS NULL OR created_from < %(created_to)s)
  AND (%(after_time)s::timestamptz IS NULL OR occurred_to >= %(after_time)s)
  AND occurred_from < %(until_time)s
ORDER BY {ordered}
LIMIT %(blocks_max)s
"""
_SCANS: Final = {
    order: fill(_SCAN, matches=_MATCHES, columns=_COLUMNS, between=order.between, ordered=order.ordered)
    for order in (BY_ID, BY_STORE, BY_PROFILE, BY_TIME)
}


def needs_search(filters: Collection[str], *, by_time: bool) -> bool:
    """Whether a filter has no index in the order of the list."""
    searched = _SEARCHED if by_time else _SEARCHED | _TIMES
    return not searched.isdisjoint(filters)


class SalePosition(NamedTuple):
    """The place of a sale in both orders of lists."""

    occurred_at: datetime
    id: UUID


class _Block(NamedTuple):
    first_id: UUID
    last_id: UUID
    occurred_from: datetime


class ScanResult(NamedTuple):
    matching: list[SalePosition]
    # The last sale that was read, if there may be more.
    end: SalePosition | None


class Search:
    """The search for one page: at most `limit` sales after a position, in the order of ids or, `by_time`, of time."""

    def __init__(
        self,
        organization_id: UUID,
        filters: Mapping[str, Any],
        *,
        after: SalePosition | None,
        by_time: bool,
        limit: int,
    ) -> None:
        self._by_time, self._limit = by_time, limit
        if since := [filters[name] for name in ("created_from", "updated_from") if name in filters]:
            filters = {**filters, "created_from": max(since)}
        lowest, until_id = _bound_ids(filters)
        start = after or SalePosition(filters.get("occurred_from") or _EARLIEST, _FIRST_ID)
        self._start = start if by_time else start._replace(id=max(start.id, lowest))
        self._values: dict[str, Any] = {
            **dict.fromkeys(_SEARCHED | _TIMES),
            **filters,
            "organization_id": organization_id,
            "until_id": until_id,
            "until_time": filters.get("occurred_to") or _LATEST,
            "scope": filters.get("store_id") or ALL_STORES,
            "contents": _list_contents(filters),
        }
        self._is_of_customer = "profile_id" in filters
        self._order_of_scope = BY_STORE if "store_id" in filters else BY_ID
        self._blocks_max = _BLOCKS_MAX[self._order_of_scope]

    async def find(self, tx: Tx) -> tuple[list[UUID], bool]:
        """The ids of the page in its order, and whether more sales may follow."""
        if self._is_of_customer:
            sales = await self._scan(tx, BY_PROFILE, rows_max=_OF_CUSTOMER_MAX)
            if sales.end is None or (sales.matching and not self._by_time):
                return self._cut(sales.matching, is_end=sales.end is None)
        scanned = await self._scan(tx, BY_TIME if self._by_time else self._order_of_scope, rows_max=SCANNED_MAX)
        if scanned.matching or scanned.end is None:
            return self._cut(scanned.matching, is_end=scanned.end is None)
        if self._is_of_customer:
            raise self._refuse()
        self._start = scanned.end
        return await (self._skip_by_time(tx) if self._by_time else self._skip_by_id(tx))

    async def _skip_by_id(self, tx: Tx) -> tuple[list[UUID], bool]:
        """Read the next blocks that may have a match, or else the sales after the last block."""
        end = await self._find_end(tx)
        after_time = self._values["occurred_from"]
        blocks = await self._find_blocks(tx, end, ordered="last_id", after=self._start.id, after_time=after_time)
        matching = await self._read_blocks(tx, blocks[: self._blocks_max])
        if matching:
            return self._cut(matching, is_end=False)
        if len(blocks) > self._blocks_max:
            raise self._refuse()
        newest = await self._scan_newest(tx, end)
        if newest.end is not None and not newest.matching:
            raise self._refuse()
        return self._cut(newest.matching, is_end=newest.end is None)

    async def _skip_by_time(self, tx: Tx) -> tuple[list[UUID], bool]:
        """Read the earliest blocks that may have a match, and the sales after the last block. What they have is
        complete up to the earliest sale of the blocks that were not read."""
        end = await self._find_end(tx)
        after_time = self._start.occurred_at
        blocks = await self._find_blocks(
            tx, end, ordered="occurred_from, last_id", after=_FIRST_ID, after_time=after_time
        )
        newest = await self._scan_newest(tx, end)
        found = [*await self._read_blocks(tx, blocks[: self._blocks_max]), *newest.matching]
        is_end = len(blocks) <= self._blocks_max
        until = _LATEST if is_end else blocks[self._blocks_max].occurred_from
        matching = [sale for sale in found if sale > self._start and sale.occurred_at < until]
        if newest.end is not None or not (matching or is_end):
            raise self._refuse()
        return self._cut(matching, is_end=is_end)

    def _cut(self, matching: Sequence[SalePosition], *, is_end: bool) -> tuple[list[UUID], bool]:
        following = [found for found in matching if found > self._start] if self._by_time else list(matching)
        following.sort(key=None if self._by_time else attrgetter("id"))
        return [found.id for found in following[: self._limit]], not is_end or len(following) > self._limit

    def _refuse(self) -> Unavailable:
        """The error for a page that would have to read more sales than one request may."""
        of = "occurred" if self._by_time else "created"
        return Unavailable(
            f"No sale that matches is among those that one request may read. Narrow {of}_from and {of}_to, or leave out"
            " another filter."
        )

    async def _scan(self, tx: Tx, order: Order, *, rows_max: int, after: UUID | None = None) -> ScanResult:
        """Read the next sales in the order of an index."""
        position = {"after": after or self._start.id, "after_time": self._start.occurred_at}
        if order is BY_PROFILE and self._by_time:
            position["after"] = _FIRST_ID
        rows = await tx.fetch(_SCANS[order], {**self._values, **position, **self._limits(order, rows_max)})
        matching = [SalePosition(row[1], row[0]) for row in rows if row[2]]
        is_full = bool(rows) and rows[-1][3] == rows_max
        return ScanResult(matching, SalePosition(rows[-1][1], rows[-1][0]) if is_full else None)

    def _limits(self, order: Order, rows_max: int) -> dict[str, int]:
        """How many sales a scan reads, and how many it returns: one more than the page, and the last that it read. What
        is read in another order than that of the list is sorted, so all of it is returned."""
        is_sorted = self._by_time == (order is BY_TIME)
        return {"rows_max": rows_max, "found_max": self._limit + 2 if is_sorted else rows_max + 1}

    async def _find_end(self, tx: Tx) -> UUID:
        """Where the blocks end. It is read once for a page, since the worker may build blocks meanwhile."""
        return await find_end(tx, self._values["organization_id"], self._values["scope"])

    async def _scan_newest(self, tx: Tx, end: UUID) -> ScanResult:
        """Read the sales that are in no block yet."""
        after = end if self._by_time else max(end, self._start.id)
        return await self._scan(tx, self._order_of_scope, after=after, rows_max=_NEWEST_MAX[self._order_of_scope])

    async def _find_blocks(
        self, tx: Tx, end: UUID, *, ordered: LiteralString, after: UUID, after_time: datetime | None
    ) -> list[_Block]:
        """The next blocks that may have a match, one more than are read."""
        position = {"end": end, "after": after, "after_time": after_time}
        values = {**self._values, **position, "blocks_max": self._blocks_max + 1}
        return await tx.fetch_all(_Block, fill(_FIND_BLOCKS, ordered=ordered), values)

    async def _read_blocks(self, tx: Tx, blocks: Sequence[_Block]) -> list[SalePosition]:
        matching: list[SalePosition] = []
        for block in blocks:
            values = {**self._values, "until_id": min(self._values["until_id"], UUID(int=block.last_id.int + 1))}
            before_block = UUID(int=block.first_id.int - 1)
            after = before_block if self._by_time else max(before_block, self._start.id)
            values |= {"after": after, **self._limits(self._order_of_scope, BLOCK_SALES + 1)}
            rows = await tx.fetch(_SCANS[self._order_of_scope], values)
            matching += [SalePosition(row[1], row[0]) for row in rows if row[2]]
            if len(matching) > self._limit and not self._by_time:
                break
        return matching


def _bound_ids(filters: Mapping[str, Any]) -> tuple[UUID, UUID]:
    """The ids after and before which sales were created in the time of the filters, with a margin."""
    lowest, until_id = _FIRST_ID, filters.get("before_id") or LAST_ID
    if filters.get("created_from"):
        lowest = first_id_at(_clamp(filters["created_from"]) - CLOCK_DIFFERENCE_MAX)
    if filters.get("created_to"):
        until_id = min(until_id, first_id_at(_clamp(filters["created_to"]) + CLOCK_DIFFERENCE_MAX))
    return lowest, until_id


def _clamp(created: datetime) -> datetime:
    """The time, or the nearest one to which the margin can be added."""
    return min(max(created, _FIRST_CREATED), _LAST_CREATED)


def _list_contents(filters: Mapping[str, Any]) -> list[str] | None:
    """The pairs of type and currency that match, as blocks store them; None if all do."""
    if not filters.get("type") and not filters.get("currency"):
        return None
    types = [filters["type"]] if filters.get("type") else get_args(SaleType)
    currencies = [filters["currency"]] if filters.get("currency") else get_args(Currency)
    return [f"{kind} {currency}" for kind in types for currency in currencies]
