"""List sales for the API by filters and cursor, and find sales by reference."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

from regulars.kit import changes
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.errors import invalid
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE, Reference, first_id_at, read_reference
from regulars.kit.keyset import PageRequest, Position, reading_in_index_order
from regulars.kit.pagination import read_cursor, read_limit, scope_of, write_cursor
from regulars.kit.text import check_reference, read_timestamp
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profiles
from regulars.sales import queries
from regulars.sales.blocks.search import CLOCK_DIFFERENCE_MAX, LAST_ID, SalePosition, Search, needs_search
from regulars.sales.model import Currency, SaleType, StoredSale
from regulars.stores.find import find_stores
from regulars.stores.model import StoreNotFound

_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST_ID = UUID(int=0)

TYPES: tuple[str, ...] = get_args(SaleType)
CURRENCIES: tuple[str, ...] = get_args(Currency)
_ENUMS = {"type": TYPES, "currency": CURRENCIES}
_TIMES = ("occurred_from", "occurred_to", "created_from", "created_to", changes.PARAMETER)


async def list_sales(
    tx: Tx, organization_id: UUID, query: Mapping[str, str], *, secret: bytes
) -> tuple[Sequence[StoredSale], bool, str | None]:
    """Return a page of sales, whether more follow, and the cursor of the next page."""
    if changes.PARAMETER in query:
        return await _list_changes(tx, organization_id, query, secret=secret)
    limit = read_limit(query)
    filters = _read_filters(query)
    by_time = "occurred_from" in query or "occurred_to" in query
    scope = scope_of("sales-events", query)
    position = None
    if "cursor" in query:
        identifier, occurred_at = read_cursor(secret, scope, query["cursor"])
        position = (occurred_at, identifier) if by_time else (identifier,)
    filters |= await _find_references(tx, organization_id, query)
    sales, has_more = await _find_page(tx, organization_id, filters, position, by_time=by_time, limit=limit)
    cursor = write_cursor(secret, scope, _position_of(sales[-1])) if has_more else None
    return sales, has_more, cursor


def _position_of(sale: StoredSale) -> tuple[str, ...]:
    return SALES_EVENT.encode(sale.id), format_timestamp(sale.ticket.occurred_at)


async def _find_page(
    tx: Tx,
    organization_id: UUID,
    filters: Mapping[str, Any],
    position: Position | None,
    *,
    by_time: bool,
    limit: int,
) -> tuple[Sequence[StoredSale], bool]:
    """Return a page of sales, and whether more follow. Filters without an index are searched for in blocks."""
    if "external_id" in filters:
        found = await queries.SALES.find_by_external_ids(tx, organization_id, [filters["external_id"]])
        return [sale for sale in found if position is None and _matches(sale, filters)], False
    async with reading_in_index_order(tx, is_whole=True):
        if not needs_search(filters, by_time=by_time):
            page = PageRequest(limit + 1, position)
            sales = await queries.list_sales(tx, organization_id, filters, page, by_time=by_time)
            return sales[:limit], len(sales) > limit
        start = _read_position(filters, position)
        ids, has_more = await Search(organization_id, filters, after=start, by_time=by_time, limit=limit).find(tx)
        by_id = {sale.id: sale for sale in await queries.SALES.find_by_ids(tx, organization_id, ids)}
        return [by_id[identifier] for identifier in ids if identifier in by_id], has_more


def _matches(sale: StoredSale, filters: Mapping[str, Any]) -> bool:
    """Whether a sale has the values that all filters but `external_id` ask for."""
    times = {"occurred": sale.ticket.occurred_at, "created": sale.created_at, "updated": sale.created_at}
    values = {
        "type": sale.ticket.type,
        "currency": sale.ticket.currency,
        "store_id": sale.store.id,
        "profile_id": None if sale.profile is None else sale.profile.id,
    }
    return (
        all(value == filters.get(name, value) for name, value in values.items())
        and all(time >= filters.get(f"{name}_from", time) for name, time in times.items())
        and all(time < filters.get(f"{name}_to", time + _MILLISECOND) for name, time in times.items())
        and filters.get("after_id", _FIRST_ID) < sale.id < filters.get("before_id", LAST_ID)
    )


def _read_position(filters: Mapping[str, Any], position: Position | None) -> SalePosition | None:
    """The sale after which a search begins: the position of the cursor, or the start of a list of changes."""
    if position is not None:
        return SalePosition(parse_timestamp(position[0]) if len(position) > 1 else _EARLIEST, _decode(position[-1]))
    return SalePosition(_EARLIEST, filters["after_id"]) if "after_id" in filters else None


def _decode(identifier: str) -> UUID:
    return SALES_EVENT.decode(identifier) or _FIRST_ID


async def _list_changes(
    tx: Tx, organization_id: UUID, query: Mapping[str, str], *, secret: bytes
) -> tuple[Sequence[StoredSale], bool, str | None]:
    """Return a page of sales in the order of creation, which is a sale's only change, and the order of ids.

    The page ends at the *horizon*, before which all transactions are committed. Ids and the horizon come from the
    database's clock. Older releases made ids with the clock of their machine, which may have been behind, so the page
    begins a little before the requested time.
    """
    limit, scope = read_limit(query), scope_of("sales-events", query)
    filters = _read_filters(query)
    start = await changes.read_start(tx, query, secret=secret, scope=scope)
    if start.since is None:
        raise AssertionError("a query with this parameter has a start")
    since = start.since
    first = first_id_at(max(since.time, _EARLIEST) - CLOCK_DIFFERENCE_MAX)
    filters |= {"after_id": max(since.id, first), "before_id": first_id_at(since.horizon)}
    filters |= await _find_references(tx, organization_id, query)
    sales, has_more = await _find_page(tx, organization_id, filters, None, by_time=False, limit=limit)
    return start.cut_page(sales, limit, lambda sale: (sale.created_at, sale.id), may_have_more=has_more)


def _read_filters(query: Mapping[str, str]) -> dict[str, Any]:
    """Read the filters of the query, except the store and the customer, which are only checked."""
    filters: dict[str, Any] = {name: query[name] for name in (*_ENUMS, "external_id") if name in query}
    for name, allowed in _ENUMS.items():
        if name in query and query[name] not in allowed:
            raise invalid(name, "NOT_ALLOWED", f"It must be one of {', '.join(allowed)}.")
    for name in ("external_id", "store_id", "profile_id"):
        if name in query:
            check_reference(query[name], field=name)
    for name in _TIMES:
        if name in query:
            # The query parser turns an unescaped plus of the time zone into a space.
            filters[name] = read_timestamp(query[name].replace(" ", "+"), field=name)
    return filters


async def _find_references(tx: Tx, organization_id: UUID, query: Mapping[str, str]) -> dict[str, UUID]:
    """Look up the store and the customer of the filters. An unknown store or customer is an error (404), so that a
    typing error does not look like a store without sales."""
    filters: dict[str, UUID] = {}
    if "store_id" in query:
        store = read_reference(STORE, query["store_id"])
        stores = await find_stores(tx, organization_id, [store])
        if store not in stores:
            raise StoreNotFound("store_id names no store of this organization.")
        filters["store_id"] = stores[store].id
    if "profile_id" in query:
        profile = read_reference(PROFILE, query["profile_id"])
        profiles = await find_profiles(tx, organization_id, [profile])
        if profile not in profiles:
            raise ProfileNotFound("profile_id names no profile of this organization.")
        filters["profile_id"] = profiles[profile].id
    return filters


async def find_sale(tx: Tx, organization_id: UUID, reference: str) -> StoredSale | None:
    parsed = read_reference(SALES_EVENT, reference)
    return (await find_sales(tx, organization_id, [parsed])).get(parsed)


async def find_sales(tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, StoredSale]:
    """Return the sale of each reference; a reference without a sale is not in the result."""
    return await queries.SALES.find(tx, organization_id, references)
