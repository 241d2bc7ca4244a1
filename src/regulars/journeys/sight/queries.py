"""The SQL of what runs see. Everything is looked up one key at a time through LATERAL, for tables that were never
analyzed; nothing is written."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.journeys.sight.model import PersonRow, RecordedRow, SaleRow
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at

# The time in an id is a server's own, and that of a sale the database's. They are not an hour apart.
CLOCKS_DIFFER_BY: Final = timedelta(hours=1)


async def find_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[SaleRow]:
    rows = await tx.fetch(
        """
        SELECT sale.id, sale.type, sale.profile_id, sale.store_id, store.external_id, store.name,
               store.address ->> 'country_code', sale.total_amount_cents, sale.currency, sale.occurred_at,
               sale.created_at, sale.line_items
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, type, profile_id, store_id, total_amount_cents, currency, occurred_at, created_at, line_items
            FROM sales_events WHERE organization_id = %(organization_id)s AND id = it.id LIMIT 1
        ) AS sale
        CROSS JOIN LATERAL (
            SELECT external_id, name, address FROM stores
            WHERE organization_id = %(organization_id)s AND id = sale.store_id LIMIT 1
        ) AS store
        """,
        {"organization_id": organization_id, "ids": list(ids)},
    )
    return [SaleRow(*row) for row in rows]


async def find_people(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[PersonRow]:
    rows = await tx.fetch(
        """
        SELECT person.id, person.first_name, person.last_name, person.attributes, EXISTS (
            SELECT 1 FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = person.id AND status = 'SUBSCRIBED'
        )
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, first_name, last_name, attributes FROM profiles
            WHERE organization_id = %(organization_id)s AND id = it.id LIMIT 1
        ) AS person
        """,
        {"organization_id": organization_id, "ids": list(ids)},
    )
    return [PersonRow(*row) for row in rows]


async def find_recorded_since(
    tx: Tx, organization_id: UUID, asked: Sequence[tuple[UUID, UUID | None, datetime]]
) -> list[list[RecordedRow]]:
    """For each (profile, sale to leave out, since): the latest sales recorded since that moment.

    An id begins with its time, so the index of a customer's sales is read from that moment on: one card may be shared
    by all customers at the till and have tens of thousands of sales.
    """
    rows = await tx.fetch(
        """
        SELECT it.place, found.id, found.type, found.occurred_at, found.created_at
        FROM unnest(%(profile_ids)s::uuid[], %(sale_ids)s::uuid[], %(sinces)s::timestamptz[], %(first_ids)s::uuid[])
             WITH ORDINALITY AS it (profile_id, sale_id, since, first_id, place)
        CROSS JOIN LATERAL (
            SELECT id, type, occurred_at, created_at FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = it.profile_id AND id >= it.first_id
              AND created_at >= it.since AND id IS DISTINCT FROM it.sale_id
            ORDER BY id DESC
            LIMIT 50
        ) AS found
        """,
        {
            "organization_id": organization_id,
            "profile_ids": [it[0] for it in asked],
            "sale_ids": [it[1] for it in asked],
            "sinces": [it[2] for it in asked],
            "first_ids": [first_id_at(it[2] - CLOCKS_DIFFER_BY) for it in asked],
        },
    )
    found: list[list[RecordedRow]] = [[] for _ in asked]
    for place, *sale in rows:
        found[place - 1].append(RecordedRow(*sale))
    return found
