"""The statements behind the pages on tickets. Each reads a bounded stretch of an index."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from psycopg.sql import SQL, Composable, Identifier

from regulars.kit.db import Tx
from regulars.sales.browse.model import CustomerTicket, Filters, Position, TicketLine

_FITTING: Final = {
    "store_id": SQL("w.store_id = %(store_id)s"),
    "profile_id": SQL("w.profile_id = %(profile_id)s"),
    "type": SQL("w.type = %(type)s"),
    "currency": SQL("w.currency = %(currency)s"),
    "is_identified": SQL("(w.profile_id IS NOT NULL) = %(is_identified)s"),
}


def _window(filters: Filters, *, beyond: Position | None, is_backward: bool) -> Composable:
    """The conditions that an index answers."""
    conditions: list[Composable] = []
    if filters.is_by_time:
        if filters.occurred_from is not None:
            conditions.append(SQL("e.occurred_at >= %(occurred_from)s"))
        if filters.occurred_to is not None:
            conditions.append(SQL("e.occurred_at < %(occurred_to)s"))
        key = SQL("(e.occurred_at, e.id) {} (%(beyond_at)s, %(beyond_id)s)")
    else:
        conditions.append(SQL("e.profile_id = %(profile_id)s" if filters.profile_id else "e.store_id = %(store_id)s"))
        key = SQL("e.id {} %(beyond_id)s")
    if beyond is not None:
        conditions.append(key.format(SQL(">" if is_backward else "<")))
    return SQL("").join(SQL(" AND ") + condition for condition in conditions)


def _fitting(filters: Filters) -> Composable:
    """The conditions that are looked at row by row, inside the stretch."""
    conditions = [text for name, text in _FITTING.items() if getattr(filters, name) is not None]
    return SQL(" AND ").join([SQL("true"), *conditions])


def _order(filters: Filters, alias: str, *, is_backward: bool) -> Composable:
    text = SQL("{0}.occurred_at {1}, {0}.id {1}" if filters.is_by_time else "{0}.id {1}")
    return text.format(Identifier(alias), SQL("ASC" if is_backward else "DESC"))


def _values(organization_id: UUID, filters: Filters, beyond: Position | None) -> dict[str, Any]:
    return {
        "organization_id": organization_id,
        **filters._asdict(),
        "beyond_at": None if beyond is None else beyond.occurred_at,
        "beyond_id": None if beyond is None else beyond.id,
    }


async def list_tickets(
    tx: Tx,
    organization_id: UUID,
    filters: Filters,
    *,
    beyond: Position | None,
    is_backward: bool,
    looked_at_max: int,
    limit: int,
) -> list[TicketLine]:
    """Tickets the newest first, out of the next so many: a rare filter never reads a whole organization."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT f.id, f.external_id, f.type, f.occurred_at, f.created_at, f.currency, f.total_amount_cents,
                   s.external_id, s.name, p.id, p.external_id, p.first_name, p.last_name
            FROM (
                SELECT *, row_number() OVER () AS place FROM (
                    SELECT w.* FROM (
                        SELECT e.id, e.external_id, e.type, e.occurred_at, e.created_at, e.currency,
                               e.total_amount_cents, e.store_id, e.profile_id
                        FROM sales_events AS e
                        WHERE e.organization_id = %(organization_id)s {window}
                        ORDER BY {inner_order}
                        LIMIT %(looked_at_max)s
                    ) AS w
                    WHERE {fitting}
                    ORDER BY {outer_order}
                    LIMIT %(limit)s
                ) AS page
            ) AS f
            JOIN LATERAL (
                SELECT external_id, name FROM stores
                WHERE organization_id = %(organization_id)s AND id = f.store_id LIMIT 1
            ) AS s ON true
            LEFT JOIN LATERAL (
                SELECT id, external_id, first_name, last_name FROM profiles
                WHERE organization_id = %(organization_id)s AND id = f.profile_id LIMIT 1
            ) AS p ON true
            ORDER BY f.place
            """
        ).format(
            window=_window(filters, beyond=beyond, is_backward=is_backward),
            fitting=_fitting(filters),
            inner_order=_order(filters, "e", is_backward=is_backward),
            outer_order=_order(filters, "w", is_backward=is_backward),
        ),
        {**_values(organization_id, filters, beyond), "looked_at_max": looked_at_max, "limit": limit},
    )
    return [TicketLine(*row) for row in rows]


async def find_end_of_window(
    tx: Tx, organization_id: UUID, filters: Filters, *, beyond: Position | None, looked_at_max: int
) -> Position | None:
    """The last of the next so many tickets, or None if there are fewer."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT e.occurred_at, e.id
            FROM sales_events AS e
            WHERE e.organization_id = %(organization_id)s {window}
            ORDER BY {order}
            LIMIT 1 OFFSET %(skipped)s
            """
        ).format(
            window=_window(filters, beyond=beyond, is_backward=False), order=_order(filters, "e", is_backward=False)
        ),
        {**_values(organization_id, filters, beyond), "skipped": looked_at_max - 1},
    )
    return Position(*rows[0]) if rows else None


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
