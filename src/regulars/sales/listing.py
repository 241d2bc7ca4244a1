"""Pages of sales: filters, order and cursor."""

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

CLOCKS_APART_MAX = timedelta(hours=1)
_EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)

TYPES: tuple[str, ...] = get_args(SaleType)
CURRENCIES: tuple[str, ...] = get_args(Currency)
_TIMES: dict[str, LiteralString] = {
    "occurred_from": "e.occurred_at >= %s",
    "occurred_to": "e.occurred_at < %s",
    "created_from": "e.created_at >= %s",
    "created_to": "e.created_at < %s",
    changes.PARAMETER: "e.created_at >= %s",
}
_ENUMS: dict[str, tuple[LiteralString, tuple[str, ...]]] = {
    "type": ("e.type = %s", TYPES),
    "currency": ("e.currency = %s", CURRENCIES),
}


async def list_sales(
    tx: Tx, organization_id: UUID, query: Mapping[str, str], *, secret: bytes
) -> tuple[Sequence[StoredSale], bool, str | None]:
    """A page of sales, whether there are more, and the cursor of the next page."""
    if changes.PARAMETER in query:
        return await _list_changes(tx, organization_id, query, secret=secret)
    limit = read_limit(query)
    conditions = _value_conditions(query)
    by_time = "occurred_from" in query or "occurred_to" in query
    scope = scope_of("sales-events", query)
    if "cursor" in query:
        conditions.append(_after(read_cursor(secret, scope, query["cursor"]), by_time=by_time))
    conditions += await _reference_conditions(tx, organization_id, query)
    found = await queries.list_sales(tx, organization_id, conditions=conditions, by_time=by_time, limit=limit + 1)
    page, cursor = cut_page(
        found,
        limit,
        secret=secret,
        scope=scope,
        position_of=lambda sale: (SALES_EVENT.encode(sale.id), format_timestamp(sale.ticket.occurred_at)),
    )
    return page, cursor is not None, cursor


async def _list_changes(
    tx: Tx, organization_id: UUID, query: Mapping[str, str], *, secret: bytes
) -> tuple[Sequence[StoredSale], bool, str | None]:
    """Sales in the order of their ids. The ids and the end of the page come from the same clock.

    A sale never changes, so its creation is its only change. Older releases made ids with the clock of their machine,
    which may have been behind: so the page begins a little before the requested time.
    """
    limit, scope = read_limit(query), scope_of("sales-events", query)
    conditions = _value_conditions(query)
    start = await changes.read_start(tx, query, secret=secret, scope=scope)
    if start.since is None:
        raise AssertionError("a query with this parameter has a beginning")
    since = start.since
    first = first_id_at(max(since.moment, _EARLIEST) - CLOCKS_APART_MAX)
    conditions.append(Condition("e.id > %s", (max(since.id, first),)))
    conditions.append(Condition("e.id < %s", (first_id_at(since.horizon),)))
    conditions += await _reference_conditions(tx, organization_id, query)
    found = await queries.list_sales(tx, organization_id, conditions=conditions, by_time=False, limit=limit + 1)
    return start.cut(found, limit, secret=secret, scope=scope, position_of=lambda sale: (sale.created_at, sale.id))


def _value_conditions(query: Mapping[str, str]) -> list[Condition]:
    conditions: list[Condition] = []
    for name, (condition, allowed) in _ENUMS.items():
        if name in query:
            if query[name] not in allowed:
                raise invalid(name, "NOT_ALLOWED", f"It must be one of {', '.join(allowed)}.")
            conditions.append(Condition(condition, (query[name],)))
    for name in ("external_id", "store_id", "profile_id"):
        if name in query:
            check_reference(query[name], field=name)
    if "external_id" in query:
        conditions.append(Condition("e.external_id = %s", (query["external_id"],)))
    for name, condition in _TIMES.items():
        if name in query:
            # An unescaped plus in a query is a space by the time it arrives here.
            moment = read_timestamp(query[name].replace(" ", "+"), field=name)
            conditions.append(Condition(condition, (moment,)))
    return conditions


def _after(position: tuple[str, ...], *, by_time: bool) -> Condition:
    identifier = SALES_EVENT.decode(position[0])
    if identifier is None:
        raise InvalidCursor("The cursor is not one this list gave out.")
    if not by_time:
        return Condition("e.id > %s", (identifier,))
    return Condition("(e.occurred_at, e.id) > (%s, %s)", (parse_timestamp(position[1]), identifier))


async def _reference_conditions(tx: Tx, organization_id: UUID, query: Mapping[str, str]) -> list[Condition]:
    """An unknown reference in a filter gets a 404, so that a typing error does not look like a store without sales."""
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
    """The sales that the references name; a reference without a sale is not in the result."""
    ids, external_ids = split_references(references)
    found: dict[Reference, StoredSale] = {}
    if ids:
        for identifier, sale in (await queries.find_sales_by_id(tx, organization_id, ids)).items():
            found[ById(identifier)] = sale
    if external_ids:
        for external_id, sale in (await queries.find_sales_by_external_id(tx, organization_id, external_ids)).items():
            found[ByExternalId(external_id)] = sale
    return found
