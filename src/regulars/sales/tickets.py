"""Find tickets for the pages: a filtered list, the tickets of customers, and the tickets before and after a ticket.
Each statement reads a limited number of rows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Position, Scan
from regulars.sales.model import StoredSale

# With a filter that matches few rows, one page scans at most this many rows; then the user may continue the search.
ROWS_SCANNED_MAX: Final = 20_000
# Tickets that are loaded of a customer, for the customer's page and for a list of customers.
CUSTOMER_TICKETS_MAX: Final = 2_000
LISTED_CUSTOMER_TICKETS_MAX: Final = 200
# Needs no escape in a URL.
_STORES_SEPARATOR: Final = "."


class ListedTicket(NamedTuple):
    """A ticket in a list of tickets, with its store and its customer."""

    id: UUID
    external_id: str
    type: str
    occurred_at: datetime
    created_at: datetime
    currency: str
    total_amount_cents: int
    store_external_id: str
    store_name: str | None
    profile_id: UUID | None
    profile_external_id: str | None
    first_name: str | None
    last_name: str | None


class TicketFilters(NamedTuple):
    """The filters of the list. The store, the customer or the time decides which index is read."""

    store_id: UUID | None = None
    # Several stores; they have no index of their own.
    store_ids: list[UUID] | None = None
    profile_id: UUID | None = None
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None
    type: str | None = None
    currency: str | None = None
    is_identified: bool | None = None
    # The code of a product on a line.
    product: str | None = None

    @property
    def is_by_time(self) -> bool:
        """Whether the list is in the order of `occurred_at`. The indexes by store and by customer are in the order in
        which tickets were recorded."""
        has_time = self.occurred_from is not None or self.occurred_to is not None
        return has_time or (self.store_id is None and self.profile_id is None)


def encode_stores(store_ids: Iterable[UUID]) -> str:
    """Write several stores as one value of a URL."""
    return _STORES_SEPARATOR.join(map(STORE.encode, store_ids))


def decode_stores(text: str) -> list[UUID] | None:
    """Read the stores of a value of a URL; None if they cannot be read."""
    store_ids = [STORE.decode(part) for part in text.split(_STORES_SEPARATOR)]
    found = [store_id for store_id in store_ids if store_id is not None]
    return found if len(found) == len(store_ids) else None


class CustomerTicket(NamedTuple):
    """A ticket with the fields that a customer's history needs."""

    profile_id: UUID
    id: UUID
    external_id: str
    type: str
    occurred_at: datetime
    currency: str
    total_amount_cents: int
    store_id: UUID
    line_count: int


_BY_TIME: Final = Keyset({"e.occurred_at": parse_timestamp, "e.id": UUID}, is_descending=True)
_BY_RECORDING: Final = Keyset({"e.id": UUID}, is_descending=True)
_CONDITIONS: Final[dict[str, LiteralString]] = {
    "occurred_from": "e.occurred_at >= %(occurred_from)s",
    "occurred_to": "e.occurred_at < %(occurred_to)s",
    "profile_id": "e.profile_id = %(profile_id)s",
    "store_id": "e.store_id = %(store_id)s",
    "store_ids": "e.store_id = ANY (%(store_ids)s::uuid[])",
    "type": "e.type = %(type)s",
    "currency": "e.currency = %(currency)s",
    "is_identified": "(e.profile_id IS NOT NULL) = %(is_identified)s",
    "product": """
        EXISTS (SELECT FROM json_array_elements(e.line_items) AS line
                WHERE line -> 'product' ->> 'external_id' = %(product)s)
        """,
}


class NamedTicket(NamedTuple):
    external_id: str
    type: str
    occurred_at: datetime


async def find_by_beginning(tx: Tx, organization_id: UUID, text: str, *, limit: int) -> list[NamedTicket]:
    """Return tickets whose number begins with the text, by number."""
    return await tx.fetch_all(
        NamedTicket,
        """
        SELECT {columns}
        FROM (
            SELECT {columns} FROM sales_events
            WHERE organization_id = %(organization_id)s AND external_id >= %(text)s
            ORDER BY external_id
            LIMIT %(limit)s
        ) AS following
        WHERE starts_with(external_id, %(text)s)
        ORDER BY external_id
        """,
        {"organization_id": organization_id, "text": text, "limit": limit},
    )


_LIST_TICKETS: Final = """
SELECT e.id, e.external_id, e.type, e.occurred_at, e.created_at, e.currency, e.total_amount_cents,
       s.external_id, s.name, p.id, p.external_id, p.first_name, p.last_name
FROM (
    SELECT * FROM (
        SELECT e.id, e.external_id, e.type, e.occurred_at, e.created_at, e.currency,
               e.total_amount_cents, e.store_id, e.profile_id, e.line_items
        FROM sales_events AS e
        WHERE e.organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
        ORDER BY {ordered}
        LIMIT %(scan_limit)s
    ) AS e
    WHERE true {and_filters}
    ORDER BY {ordered}
    LIMIT %(limit)s
) AS e
JOIN LATERAL (
    SELECT external_id, name FROM stores
    WHERE organization_id = %(organization_id)s AND id = e.store_id LIMIT 1
) AS s ON true
LEFT JOIN LATERAL (
    SELECT id, external_id, first_name, last_name FROM profiles
    WHERE organization_id = %(organization_id)s AND id = e.profile_id LIMIT 1
) AS p ON true
ORDER BY {ordered}
"""


async def list_tickets(
    tx: Tx, organization_id: UUID, filters: TicketFilters, page: PageRequest
) -> PageRows[ListedTicket]:
    """Return a page of tickets, newest first, from a limited number of scanned rows."""
    if filters.is_by_time:
        order, indexed = _BY_TIME, ["occurred_from", "occurred_to"]
    else:
        order, indexed = _BY_RECORDING, ["profile_id" if filters.profile_id else "store_id"]
        page = page._replace(position=None if page.position is None else page.position[1:])
    tickets = await order.fetch(
        tx,
        _LIST_TICKETS,
        page,
        {"organization_id": organization_id, **filters._asdict()},
        make=ListedTicket,
        filters={name: text for name, text in _CONDITIONS.items() if name not in indexed},
        scan=Scan("sales_events AS e", ROWS_SCANNED_MAX, {name: _CONDITIONS[name] for name in indexed}),
    )
    if tickets.end_position is not None and not filters.is_by_time:
        # A position always has a time and an id; in the order of recording the time is ignored.
        tickets.end_position = (format_timestamp(tx.now), *tickets.end_position)
    return tickets


def position_of(ticket: ListedTicket) -> Position:
    return format_timestamp(ticket.occurred_at), str(ticket.id)


async def list_customer_tickets(tx: Tx, organization_id: UUID, profile_id: UUID) -> list[CustomerTicket]:
    """Return the tickets of a customer, newest `occurred_at` first."""
    tickets = await _list_newest_of_each(tx, organization_id, [profile_id], per_customer_max=CUSTOMER_TICKETS_MAX)
    return sorted(tickets, key=lambda ticket: (ticket.occurred_at, ticket.id), reverse=True)


async def list_tickets_of_customers(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID]
) -> dict[UUID, list[CustomerTicket]]:
    """Return the newest tickets of each of several customers."""
    by_customer: dict[UUID, list[CustomerTicket]] = defaultdict(list)
    if profile_ids:
        for ticket in await _list_newest_of_each(
            tx, organization_id, profile_ids, per_customer_max=LISTED_CUSTOMER_TICKETS_MAX
        ):
            by_customer[ticket.profile_id].append(ticket)
    return by_customer


async def _list_newest_of_each(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID], *, per_customer_max: int
) -> list[CustomerTicket]:
    """Return the last recorded tickets of each customer."""
    return await tx.fetch_all(
        CustomerTicket,
        """
        SELECT wanted.profile_id, e.id, e.external_id, e.type, e.occurred_at, e.currency, e.total_amount_cents,
               e.store_id, json_array_length(e.line_items)
        FROM unnest(%(profile_ids)s::uuid[]) AS wanted (profile_id)
        CROSS JOIN LATERAL (
            SELECT id, external_id, type, occurred_at, currency, total_amount_cents, store_id, line_items
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = wanted.profile_id
            ORDER BY id DESC
            LIMIT %(per_customer_max)s
        ) AS e
        """,
        {
            "organization_id": organization_id,
            "profile_ids": list(profile_ids),
            "per_customer_max": per_customer_max,
        },
    )


async def find_adjacent_tickets(tx: Tx, organization_id: UUID, sale: StoredSale) -> tuple[str | None, str | None]:
    """Return the external ids of the tickets that the same store recorded just before and after."""
    statement = """
        SELECT external_id
        FROM sales_events
        WHERE organization_id = %(organization_id)s AND store_id = %(store_id)s AND id {comparison} %(id)s
        ORDER BY id {order}
        LIMIT 1
        """
    values = {"organization_id": organization_id, "store_id": sale.store.id, "id": sale.id}
    earlier = await tx.fetch_column(fill(statement, comparison="<", order="DESC"), values)
    later = await tx.fetch_column(fill(statement, comparison=">", order="ASC"), values)
    return next(iter(earlier), None), next(iter(later), None)
