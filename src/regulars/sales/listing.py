"""List sales for the API by filters and cursor, and find sales by reference."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import LiteralString, get_args
from uuid import UUID

from regulars.kit import changes
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.errors import InvalidCursor, invalid
from regulars.kit.ids import (
    PROFILE,
    SALES_EVENT,
    STORE,
    ByExternalId,
    ById,
    Reference,
    first_id_at,
    read_reference,
    split_references,
)
from regulars.kit.pagination import cut_page, read_cursor, read_limit, scope_of
from regulars.kit.text import check_reference, read_timestamp
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.find import find_profiles
from regulars.sales import queries
from regulars.sales.model import Currency, SaleType, StoredSale
from regulars.sales.queries import Condition
from regulars.stores.find import find_stores
from regulars.stores.model import StoreNotFound

# How far a server's clock may have been behind the database's when it made an id.
CLOCK_DIFFERENCE_MAX = timedelta(hours=1)
_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)

TYPES: tuple[str, ...] = get_args(SaleType)
CURRENCIES: tuple[str, ...] = get_args(Currency)
_TIME_CONDITIONS: dict[str, LiteralString] = {
    "occurred_from": "e.occurred_at >= %s",
    "occurred_to": "e.occurred_at < %s",
    "created_from": "e.created_at >= %s",
    "created_to": "e.created_at < %s",
    changes.PARAMETER: "e.created_at >= %s",
}
_ENUM_CONDITIONS: dict[str, tuple[LiteralString, tuple[str, ...]]] = {
    "type": ("e.type = %s", TYPES),
    "currency": ("e.currency = %s", CURRENCIES),
}


async def list_sales(
    tx: Tx, organization_id: UUID, query: Mapping[str, str], *, secret: bytes
) -> tuple[Sequence[StoredSale], bool, str | None]:
    """Return a page of sales, whether more follow, and the cursor of the next page."""
    if changes.PARAMETER in query:
        return await _list_changes(tx, organization_id, query, secret=secret)
    limit = read_limit(query)
    conditions = _value_conditions(query)
    by_time = "occurred_from" in query or "occurred_to" in query
    scope = scope_of("sales-events", query)
    if "cursor" in query:
        conditions.append(_position_condition(read_cursor(secret, scope, query["cursor"]), by_time=by_time))
    conditions += await _reference_conditions(tx, organization_id, query)
    sales = await queries.list_sales(tx, organization_id, conditions=conditions, by_time=by_time, limit=limit + 1)
    page, cursor = cut_page(
        sales,
        limit,
        secret=secret,
        scope=scope,
        position_of=lambda sale: (SALES_EVENT.encode(sale.id), format_timestamp(sale.ticket.occurred_at)),
    )
    return page, cursor is not None, cursor


async def _list_changes(
    tx: Tx, organization_id: UUID, query: Mapping[str, str], *, secret: bytes
) -> tuple[Sequence[StoredSale], bool, str | None]:
    """Return a page of sales in the order of creation, which is a sale's only change, and the order of ids.

    The page ends at the *horizon*, before which all transactions are committed. Ids and the horizon come from the
    database's clock. Older releases made ids with the clock of their machine, which may have been behind, so the page
    begins a little before the requested time.
    """
    limit, scope = read_limit(query), scope_of("sales-events", query)
    conditions = _value_conditions(query)
    start = await changes.read_start(tx, query, secret=secret, scope=scope)
    if start.since is None:
        raise AssertionError("a query with this parameter has a start")
    since = start.since
    first = first_id_at(max(since.time, _EARLIEST) - CLOCK_DIFFERENCE_MAX)
    conditions.append(Condition("e.id > %s", (max(since.id, first),)))
    conditions.append(Condition("e.id < %s", (first_id_at(since.horizon),)))
    conditions += await _reference_conditions(tx, organization_id, query)
    sales = await queries.list_sales(tx, organization_id, conditions=conditions, by_time=False, limit=limit + 1)
    return start.cut_page(sales, limit, secret=secret, scope=scope, position_of=lambda sale: (sale.created_at, sale.id))


def _value_conditions(query: Mapping[str, str]) -> list[Condition]:
    conditions: list[Condition] = []
    for name, (condition, allowed) in _ENUM_CONDITIONS.items():
        if name in query:
            if query[name] not in allowed:
                raise invalid(name, "NOT_ALLOWED", f"It must be one of {', '.join(allowed)}.")
            conditions.append(Condition(condition, (query[name],)))
    for name in ("external_id", "store_id", "profile_id"):
        if name in query:
            check_reference(query[name], field=name)
    if "external_id" in query:
        conditions.append(Condition("e.external_id = %s", (query["external_id"],)))
    for name, condition in _TIME_CONDITIONS.items():
        if name in query:
            # The query parser turns an unescaped plus of the time zone into a space.
            moment = read_timestamp(query[name].replace(" ", "+"), field=name)
            conditions.append(Condition(condition, (moment,)))
    return conditions


def _position_condition(position: tuple[str, ...], *, by_time: bool) -> Condition:
    identifier = SALES_EVENT.decode(position[0])
    if identifier is None:
        raise InvalidCursor("The cursor is not one this list gave out.")
    if not by_time:
        return Condition("e.id > %s", (identifier,))
    return Condition("(e.occurred_at, e.id) > (%s, %s)", (parse_timestamp(position[1]), identifier))


async def _reference_conditions(tx: Tx, organization_id: UUID, query: Mapping[str, str]) -> list[Condition]:
    """Look up the store and the customer of the filters. An unknown store or customer is an error (404), so that a
    typing error does not look like a store without sales."""
    conditions: list[Condition] = []
    if "store_id" in query:
        store = read_reference(STORE, query["store_id"])
        stores = await find_stores(tx, organization_id, [store])
        if store not in stores:
            raise StoreNotFound("store_id names no store of this organization.")
        conditions.append(Condition("e.store_id = %s", (stores[store].id,)))
    if "profile_id" in query:
        profile = read_reference(PROFILE, query["profile_id"])
        profiles = await find_profiles(tx, organization_id, [profile])
        if profile not in profiles:
            raise ProfileNotFound("profile_id names no profile of this organization.")
        conditions.append(Condition("e.profile_id = %s", (profiles[profile].id,)))
    return conditions


async def find_sale(tx: Tx, organization_id: UUID, reference: str) -> StoredSale | None:
    parsed = read_reference(SALES_EVENT, reference)
    return (await find_sales(tx, organization_id, [parsed])).get(parsed)


async def find_sales(tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, StoredSale]:
    """Return the sale of each reference; a reference without a sale is not in the result."""
    ids, external_ids = split_references(references)
    sales: dict[Reference, StoredSale] = {}
    if ids:
        for identifier, sale in (await queries.find_sales_by_id(tx, organization_id, ids)).items():
            sales[ById(identifier)] = sale
    if external_ids:
        for external_id, sale in (await queries.find_sales_by_external_id(tx, organization_id, external_ids)).items():
            sales[ByExternalId(external_id)] = sale
    return sales
