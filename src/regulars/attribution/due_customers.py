"""The queue of customers whose purchases must be credited to texts again, because a sale, text or click is new or has
changed.

A computation starts two seconds after the last change, so that several changes need one computation.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.attribution.model import DELIVERY_HOURS_MAX, FROZEN_AFTER, TOUCHING_ORIGINS
from regulars.attribution.queries import SALES_BACK, DueCustomer
from regulars.kit.arrays import Ids
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at

QUEUE: Final = "attribution"
# The name under which this room registers its interest in facts.
NEEDED_BY: Final = "attribution"
COMPUTED_AFTER: Final = timedelta(seconds=2)
# SQL condition: the organization texted a customer in the last 121 days, `SALES_BACK` and a day. If not, attribution
# ignores sales.
HAS_RECENT_TEXTS: Final = """
(SELECT created_at FROM texts WHERE organization_id = %(organization_id)s ORDER BY id DESC LIMIT 1)
    > now() - interval '121 days'
"""
# Sorted, so that two transactions never deadlock.
_ENQUEUE: Final = """
INSERT INTO attribution_customers AS c (organization_id, profile_id, since, due_at)
SELECT %(organization_id)s, it.id, %(since)s, %(due_at)s
FROM unnest(%(ids)s::uuid[]) AS it (id)
ORDER BY it.id
ON CONFLICT (organization_id, profile_id) DO UPDATE
SET since = least(c.since, EXCLUDED.since), due_at = EXCLUDED.due_at, attempts = 0
"""
# A sale changes credits only if its customer has a credit that may change, or a text or a link by which the sale may be
# credited. A text that is not sent yet counts too: its time of sending may be committed after this statement. So does a
# customer who is being computed now: the computation may not see the sale. An organization's first sale after a text
# always counts, because the first computation registers the interest in changes of texts.
_FIND_BY_SALES: Final = """
SELECT s.profile_id
FROM unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT profile_id, occurred_at FROM sales_events
    WHERE organization_id = %(organization_id)s AND id = wanted.id AND profile_id IS NOT NULL
      AND occurred_at > %(sales_since)s
    LIMIT 1
) AS s
CROSS JOIN LATERAL (
    SELECT 1 FROM texts
    WHERE organization_id = %(organization_id)s AND profile_id = s.profile_id AND id > %(texts_since)s
      AND (
          state = 'queued' OR claimed_at >= s.occurred_at - %(delivery_window)s::interval
          OR NOT EXISTS (
              SELECT FROM interests WHERE organization_id = %(organization_id)s AND needed_by = %(needed_by)s
          )
      )
    UNION ALL
    SELECT 1 FROM attributed_sales
    WHERE organization_id = %(organization_id)s AND profile_id = s.profile_id AND sent_at > %(frozen_until)s
    UNION ALL
    SELECT 1 FROM links
    WHERE organization_id = %(organization_id)s AND profile_id = s.profile_id AND created_at > %(sales_since)s
      AND text_id IS NOT NULL AND url <> 'opt-out'
    UNION ALL
    SELECT 1 FROM attribution_customers
    WHERE organization_id = %(organization_id)s AND profile_id = s.profile_id
    LIMIT 1
) AS reason
"""


async def make_due_by_sales(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> int:
    """Enqueue the customers whose credits the new sales may change; return how many."""
    # Most sales enqueue no customer, and a statement that may insert takes twice the time, so read first.
    rows = await tx.fetch(
        _FIND_BY_SALES,
        {
            "organization_id": organization_id,
            "ids": Ids(sale_ids),
            "sales_since": tx.now - SALES_BACK,
            "texts_since": first_id_at(tx.now - SALES_BACK),
            "delivery_window": timedelta(hours=DELIVERY_HOURS_MAX),
            "frozen_until": tx.now - FROZEN_AFTER,
            "needed_by": NEEDED_BY,
        },
    )
    return await make_due(tx, organization_id, {row[0] for row in rows}) if rows else 0


async def make_due_by_texts(
    tx: Tx, organization_id: UUID, text_ids: Collection[UUID], *, since: datetime | None = None
) -> int:
    """Enqueue the customers who bought after one of these texts was sent; return how many."""
    # Reads first, as `make_due_by_sales` does.
    since = since or tx.now
    rows = await tx.fetch(
        """
        SELECT t.profile_id
        FROM unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT profile_id, claimed_at FROM texts
            WHERE organization_id = %(organization_id)s AND id = wanted.id AND profile_id IS NOT NULL
              AND claimed_at IS NOT NULL AND origin_kind = ANY (%(kinds)s::text[])
            LIMIT 1
        ) AS t
        CROSS JOIN LATERAL (
            SELECT FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = t.profile_id AND id > %(sales_since)s
              AND occurred_at > t.claimed_at
            LIMIT 1
        ) AS s
        """,
        {
            "organization_id": organization_id,
            "ids": Ids(text_ids),
            "sales_since": first_id_at(since - FROZEN_AFTER),
            "kinds": list(TOUCHING_ORIGINS),
        },
    )
    return await make_due(tx, organization_id, {row[0] for row in rows}, since=since) if rows else 0


async def make_due_by_credited_texts(
    tx: Tx, organization_id: UUID, text_ids: Collection[UUID], *, since: datetime | None = None
) -> int:
    """Enqueue the customers with purchases that are credited to these texts; return how many. So are customers who are
    being computed now: their new credits may not be visible yet."""
    rows = await tx.fetch(
        """
        SELECT t.profile_id
        FROM unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
        CROSS JOIN LATERAL (
            SELECT profile_id FROM texts
            WHERE organization_id = %(organization_id)s AND id = wanted.id AND profile_id IS NOT NULL
            LIMIT 1
        ) AS t
        CROSS JOIN LATERAL (
            SELECT 1 FROM attributed_sales WHERE organization_id = %(organization_id)s AND text_id = wanted.id
            UNION ALL
            SELECT 1 FROM attribution_customers
            WHERE organization_id = %(organization_id)s AND profile_id = t.profile_id
            LIMIT 1
        ) AS reason
        """,
        {"organization_id": organization_id, "ids": Ids(text_ids)},
    )
    return await make_due(tx, organization_id, {row[0] for row in rows}, since=since) if rows else 0


async def make_due(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, since: datetime | None = None
) -> int:
    """Enqueue customers; credits that are final at `since` will not change. Waits while a worker computes these
    customers, and locks their rows until the commit."""
    given = {
        "organization_id": organization_id,
        "ids": Ids(set(profile_ids)),
        "since": since or tx.now,
        "due_at": tx.now + COMPUTED_AFTER,
    }
    return await tx.execute(_ENQUEUE, given)


async def take_customers(tx: Tx, organization_id: UUID, *, limit: int) -> list[DueCustomer]:
    return await tx.fetch_all(
        DueCustomer,
        """
        SELECT {columns} FROM attribution_customers
        WHERE organization_id = %s AND due_at <= %s
        ORDER BY due_at, profile_id
        LIMIT %s
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id, tx.now, limit),
    )


async def delete_customers(tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM attribution_customers WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])",
        (organization_id, list(profile_ids)),
    )


async def postpone_customer(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, attempts: int, due_at: datetime | None
) -> None:
    await tx.execute(
        """
        UPDATE attribution_customers SET attempts = %s, due_at = %s WHERE organization_id = %s AND profile_id = %s
        """,
        (attempts, due_at, organization_id, profile_id),
    )
