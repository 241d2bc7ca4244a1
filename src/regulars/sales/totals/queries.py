"""The statements on the hourly totals."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.arrays import Uuids
from regulars.kit.db import Tx
from regulars.sales.model import Currency

# Totals are locked in the order of their key, so that two who count together do not wait for each other in a circle.
_ADD: Final[LiteralString] = """
GROUP BY 1, 2, 3, 4, 5
ORDER BY 2, 3, 4, 5
ON CONFLICT (organization_id, hour, store_id, currency, type) DO UPDATE
SET tickets = t.tickets + excluded.tickets,
    identified_tickets = t.identified_tickets + excluded.identified_tickets,
    amount_cents = t.amount_cents + excluded.amount_cents,
    discount_cents = t.discount_cents + excluded.discount_cents
"""
_SUMS: Final[LiteralString] = """
INSERT INTO hourly_totals AS t
    (organization_id, hour, store_id, currency, type, tickets, identified_tickets, amount_cents, discount_cents)
SELECT %(organization_id)s::uuid, date_trunc('hour', e.occurred_at, 'UTC'), e.store_id, e.currency, e.type,
       count(*), count(*) FILTER (WHERE e.profile_id IS NOT NULL OR e.anonymised_at IS NOT NULL),
       sum(e.total_amount_cents), sum(e.total_discount_cents)
"""


async def add_sales(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    """Count these sales, but for those that the fill counts.

    The list stands in a sub-select, where the planner does not see how long it is: a plan for one that is known to be
    short looks cheaper than one for any, so it would be planned anew each time, which takes longer than running it.
    """
    await tx.execute(
        _SUMS  # noqa: S608  # the parts are ours
        + """
        FROM unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT store_id, currency, type, occurred_at, profile_id, anonymised_at,
                   total_amount_cents, total_discount_cents
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND id = wanted.id
            LIMIT 1
        ) AS e
        WHERE NOT EXISTS (
            SELECT FROM hourly_totals_fills AS f
            WHERE f.organization_id = %(organization_id)s AND wanted.id <= f.fence
        )
        """
        + _ADD,
        {"organization_id": organization_id, "ids": Uuids([identifier.bytes for identifier in ids])},
    )


async def add_stretch(tx: Tx, organization_id: UUID, *, after: UUID, until: UUID) -> None:
    """Count every sale with an id in this stretch."""
    await tx.execute(
        _SUMS
        + """
        FROM sales_events AS e
        WHERE e.organization_id = %(organization_id)s AND e.id > %(after)s AND e.id <= %(until)s
        """
        + _ADD,
        {"organization_id": organization_id, "after": after, "until": until},
    )


class Fill(NamedTuple):
    fence: UUID
    walked_to: UUID
    due_at: datetime | None


async def lock_fill_if_free(tx: Tx, organization_id: UUID) -> Fill | None:
    """None if there is no fill, or another transaction has locked it."""
    rows = await tx.fetch(
        "SELECT fence, walked_to, due_at FROM hourly_totals_fills WHERE organization_id = %s FOR UPDATE SKIP LOCKED",
        (organization_id,),
    )
    return Fill(*rows[0]) if rows else None


async def lock_fill(tx: Tx, organization_id: UUID) -> None:
    """Waits for a transaction that has locked it."""
    await tx.fetch("SELECT FROM hourly_totals_fills WHERE organization_id = %s FOR UPDATE", (organization_id,))


async def find_fill(tx: Tx, organization_id: UUID) -> Fill | None:
    rows = await tx.fetch(
        "SELECT fence, walked_to, due_at FROM hourly_totals_fills WHERE organization_id = %s", (organization_id,)
    )
    return Fill(*rows[0]) if rows else None


async def find_end_of_stretch(
    tx: Tx, organization_id: UUID, *, after: UUID, until: UUID, sales_max: int
) -> UUID | None:
    """The id of the last of so many sales, or None if there are fewer."""
    rows = await tx.fetch(
        """
        SELECT id
        FROM sales_events
        WHERE organization_id = %(organization_id)s AND id > %(after)s AND id <= %(until)s
        ORDER BY id
        LIMIT 1 OFFSET %(skipped)s
        """,
        {"organization_id": organization_id, "after": after, "until": until, "skipped": sales_max - 1},
    )
    return rows[0][0] if rows else None


async def insert_fill_if_new(tx: Tx, organization_id: UUID) -> None:
    await tx.execute(
        """
        INSERT INTO hourly_totals_fills (organization_id, fence, walked_to, due_at)
        VALUES (%(organization_id)s, %(start)s, %(start)s, NULL)
        ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "start": UUID(int=0)},
    )


async def lock_totals(tx: Tx) -> None:
    """Until the transaction ends no sale is added to the totals; pages read them meanwhile."""
    await tx.execute("LOCK TABLE hourly_totals IN SHARE ROW EXCLUSIVE MODE")


async def find_newest_sale(tx: Tx, organization_id: UUID) -> UUID | None:
    rows = await tx.fetch(
        "SELECT id FROM sales_events WHERE organization_id = %s ORDER BY id DESC LIMIT 1", (organization_id,)
    )
    return rows[0][0] if rows else None


async def delete_totals(tx: Tx, organization_id: UUID) -> None:
    await tx.execute("DELETE FROM hourly_totals WHERE organization_id = %s", (organization_id,))


async def restart_fill(tx: Tx, organization_id: UUID, *, fence: UUID, due_at: datetime) -> None:
    await tx.execute(
        "UPDATE hourly_totals_fills SET fence = %s, walked_to = %s, due_at = %s WHERE organization_id = %s",
        (fence, UUID(int=0), due_at, organization_id),
    )


async def update_fill(tx: Tx, organization_id: UUID, *, walked_to: UUID, due_at: datetime | None) -> None:
    await tx.execute(
        "UPDATE hourly_totals_fills SET walked_to = %s, due_at = %s WHERE organization_id = %s",
        (walked_to, due_at, organization_id),
    )


class DayRow(NamedTuple):
    day: datetime
    currency: str
    type: str
    tickets: int
    identified_tickets: int
    amount_cents: int


async def sum_by_day(
    tx: Tx, organization_id: UUID, days: Sequence[tuple[datetime, datetime]], *, store_id: UUID | None = None
) -> list[DayRow]:
    """Totals per day, currency and type. A day is given by its beginning and end, and summed by itself: to ask each row
    for its day, and to sort all of them, takes longer."""
    at_store = SQL("") if store_id is None else SQL("AND store_id = %(store_id)s")
    rows = await tx.fetch(
        SQL("""
        SELECT of_day.starts, t.currency, t.type, t.tickets, t.identified_tickets, t.amount_cents
        FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS of_day (starts, ends)
        CROSS JOIN LATERAL (
            SELECT currency, type, sum(tickets)::bigint AS tickets,
                   sum(identified_tickets)::bigint AS identified_tickets, sum(amount_cents) AS amount_cents
            FROM hourly_totals
            WHERE organization_id = %(organization_id)s AND hour >= of_day.starts AND hour < of_day.ends {at_store}
            GROUP BY currency, type
            OFFSET 0
        ) AS t
        ORDER BY of_day.starts, t.currency, t.type
        """).format(at_store=at_store),
        {
            "organization_id": organization_id,
            "starts": [start for start, _ in days],
            "ends": [end for _, end in days],
            "store_id": store_id,
        },
    )
    return [DayRow(row[0], row[1], row[2], row[3], row[4], int(row[5])) for row in rows]


class StoreRow(NamedTuple):
    store_id: UUID
    currency: str
    type: str
    tickets: int
    identified_tickets: int
    amount_cents: int


async def sum_by_store(
    tx: Tx, organization_id: UUID, *, start: datetime, end: datetime, store_ids: Sequence[UUID] | None = None
) -> list[StoreRow]:
    """Of all stores, or of some of them."""
    some = SQL("") if store_ids is None else SQL("AND store_id = ANY(%(store_ids)s::uuid[])")
    rows = await tx.fetch(
        SQL("""
        SELECT store_id, currency, type, sum(tickets)::bigint, sum(identified_tickets)::bigint, sum(amount_cents)
        FROM hourly_totals
        WHERE organization_id = %(organization_id)s AND hour >= %(start)s AND hour < %(end)s {some}
        GROUP BY store_id, currency, type
        """).format(some=some),
        {"organization_id": organization_id, "start": start, "end": end, "store_ids": store_ids and list(store_ids)},
    )
    return [StoreRow(row[0], row[1], row[2], row[3], row[4], int(row[5])) for row in rows]


async def list_hours(
    tx: Tx, organization_id: UUID, stretches: Sequence[tuple[datetime, datetime]], store_ids: Sequence[UUID]
) -> list[tuple[UUID, datetime, int]]:
    """Tickets of these stores in each hour of the stretches."""
    rows = await tx.fetch(
        """
        SELECT t.store_id, t.hour, sum(t.tickets)::bigint
        FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS stretch (starts, ends)
        CROSS JOIN LATERAL (
            SELECT store_id, hour, tickets
            FROM hourly_totals
            WHERE organization_id = %(organization_id)s AND hour >= stretch.starts AND hour < stretch.ends
              AND store_id = ANY(%(store_ids)s::uuid[])
            OFFSET 0
        ) AS t
        GROUP BY t.store_id, t.hour
        """,
        {
            "organization_id": organization_id,
            "starts": [start for start, _ in stretches],
            "ends": [end for _, end in stretches],
            "store_ids": list(store_ids),
        },
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def find_last_received(tx: Tx, organization_id: UUID, store_ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """When the newest ticket of each store came in; a store without tickets is absent."""
    rows = await tx.fetch(
        """
        SELECT wanted.store_id, last.created_at
        FROM unnest(%(store_ids)s::uuid[]) AS wanted (store_id)
        CROSS JOIN LATERAL (
            SELECT created_at
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND store_id = wanted.store_id
            ORDER BY id DESC
            LIMIT 1
        ) AS last
        """,
        {"organization_id": organization_id, "store_ids": list(store_ids)},
    )
    return {row[0]: row[1] for row in rows}


async def find_last_currency(tx: Tx, organization_id: UUID) -> Currency | None:
    rows = await tx.fetch(
        "SELECT currency FROM hourly_totals WHERE organization_id = %s ORDER BY hour DESC LIMIT 1", (organization_id,)
    )
    return rows[0][0] if rows else None
