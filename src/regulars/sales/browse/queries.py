"""The statements behind the pages on tickets. Each reads a bounded stretch of an index."""

from collections.abc import Sequence
from typing import Final, LiteralString
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows
from regulars.sales.browse.model import CustomerTicket, Filters, TicketLine

_BY_TIME: Final = Keyset({"e.occurred_at": parse_timestamp, "e.id": UUID}, is_descending=True)
_BY_ARRIVAL: Final = Keyset({"e.id": UUID}, is_descending=True)
_CONDITIONS: Final[dict[str, LiteralString]] = {
    "occurred_from": "e.occurred_at >= %(occurred_from)s",
    "occurred_to": "e.occurred_at < %(occurred_to)s",
    "profile_id": "e.profile_id = %(profile_id)s",
    "store_id": "e.store_id = %(store_id)s",
    "type": "e.type = %(type)s",
    "currency": "e.currency = %(currency)s",
    "is_identified": "(e.profile_id IS NOT NULL) = %(is_identified)s",
}


async def list_tickets(
    tx: Tx, organization_id: UUID, filters: Filters, page: PageRequest, *, rows_max: int
) -> PageRows[TicketLine]:
    """Tickets the newest first, among a bounded number."""
    if filters.is_by_time:
        order, indexed = _BY_TIME, ["occurred_from", "occurred_to"]
    else:
        order, indexed = _BY_ARRIVAL, ["profile_id" if filters.profile_id else "store_id"]
        page = page._replace(position=None if page.position is None else page.position[1:])
    found = await order.scan(
        tx,
        SQL(
            """
            SELECT e.id, e.external_id, e.type, e.occurred_at, e.created_at, e.currency, e.total_amount_cents,
                   s.external_id, s.name, p.id, p.external_id, p.first_name, p.last_name
            FROM (
                SELECT * FROM (
                    SELECT e.id, e.external_id, e.type, e.occurred_at, e.created_at, e.currency,
                           e.total_amount_cents, e.store_id, e.profile_id
                    FROM sales_events AS e
                    WHERE e.organization_id = %(organization_id)s {indexed} {beyond}
                    ORDER BY {ordered}
                    LIMIT %(looked_at)s
                ) AS e
                WHERE true {narrowed}
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
        ),
        page,
        {"organization_id": organization_id, **filters._asdict()},
        make=TicketLine,
        table="sales_events AS e",
        indexed={name: _CONDITIONS[name] for name in indexed},
        filters={name: text for name, text in _CONDITIONS.items() if name not in indexed},
        rows_max=rows_max,
    )
    if found.ended_at is not None and not filters.is_by_time:
        # A position has a time in either order, which this one does not read.
        found.ended_at = (format_timestamp(tx.now), *found.ended_at)
    return found


async def list_customer_tickets(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID], *, per_customer_max: int
) -> list[CustomerTicket]:
    """The tickets of each customer that arrived last, so many at most."""
    rows = await tx.fetch(
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
    return [CustomerTicket(*row) for row in rows]


async def find_neighbour(
    tx: Tx, organization_id: UUID, store_id: UUID, ticket_id: UUID, *, is_earlier: bool
) -> str | None:
    """The ticket of the same store that arrived just before or after this one."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT external_id
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND store_id = %(store_id)s AND id {beyond} %(id)s
            ORDER BY id {order}
            LIMIT 1
            """
        ).format(beyond=SQL("<" if is_earlier else ">"), order=SQL("DESC" if is_earlier else "ASC")),
        {"organization_id": organization_id, "store_id": store_id, "id": ticket_id},
    )
    return rows[0][0] if rows else None
