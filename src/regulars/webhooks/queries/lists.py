"""The SQL of the lists and counts on pages about webhooks; each statement reads a limited range of an index."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Scan, reading_in_index_order
from regulars.webhooks.model import (
    ROWS_SCANNED_MAX,
    Delivery,
    DeliveryFilter,
    LastDelivery,
    WaitingDeliveries,
)

_NEWEST: Final = Keyset({"d.id": UUID}, is_descending=True)
# Failed deliveries have an index by endpoint, so a filter by failure needs the endpoint too.
_INDEXED: Final = {"endpoint_id": "d.endpoint_id = %(endpoint_id)s", "is_failed": "d.state = 'failed'"}
_FILTERS: Final = {"state": "d.state = %(state)s", "type": "m.type = %(type)s"}


async def list_deliveries(
    tx: Tx, organization_id: UUID, filters: DeliveryFilter, page: PageRequest
) -> PageRows[Delivery]:
    """Return a page of deliveries, newest first; it scans a limited number of rows, so it may be short."""
    async with reading_in_index_order(tx):
        is_indexed = filters.state == "failed" and filters.endpoint_id is not None
        return await _NEWEST.fetch(
            tx,
            """
            SELECT d.id, d.endpoint_id, d.message_id, m.type, d.state, d.attempts, d.lapses, d.due_at, d.created_at,
                   d.attempted_at, d.duration_ms, d.answer_status, d.is_replay
            FROM (
                SELECT id, endpoint_id, message_id, state, attempts, lapses, due_at, created_at, attempted_at,
                       duration_ms, answer_status, is_replay
                FROM webhook_deliveries AS d
                WHERE organization_id = %(organization_id)s {and_indexed_filters} {and_after_position}
                ORDER BY {ordered}
                LIMIT %(scan_limit)s
            ) AS d
            CROSS JOIN LATERAL (
                SELECT type FROM webhook_messages
                WHERE organization_id = %(organization_id)s AND id = d.message_id
                LIMIT 1
            ) AS m
            WHERE true {and_filters}
            ORDER BY {ordered}
            LIMIT %(limit)s
            """,
            page,
            {
                "organization_id": organization_id,
                "endpoint_id": filters.endpoint_id,
                "is_failed": is_indexed or None,
                "state": None if is_indexed else filters.state,
                "type": filters.type,
            },
            make=Delivery,
            filters=_FILTERS,
            scan=Scan("webhook_deliveries AS d", ROWS_SCANNED_MAX, _INDEXED),
        )


async def list_last_outcomes(
    tx: Tx, organization_id: UUID, endpoint_ids: Sequence[UUID], *, limit: int
) -> dict[UUID, list[LastDelivery]]:
    """Return the last deliveries of each endpoint, the newest first."""
    rows = await tx.fetch(
        """
        SELECT e.id, d.state, d.attempts, d.answer_status, d.attempted_at
        FROM unnest(%(endpoints)s::uuid[]) AS e (id)
        CROSS JOIN LATERAL (
            SELECT id, state, attempts, answer_status, attempted_at FROM webhook_deliveries
            WHERE organization_id = %(organization_id)s AND endpoint_id = e.id
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS d
        ORDER BY e.id, d.id DESC
        """,
        {"organization_id": organization_id, "endpoints": list(endpoint_ids), "limit": limit},
    )
    last_deliveries: dict[UUID, list[LastDelivery]] = {}
    for endpoint_id, *delivery in rows:
        last_deliveries.setdefault(endpoint_id, []).append(LastDelivery(*delivery))
    return last_deliveries


async def count_waiting(
    tx: Tx, organization_id: UUID, endpoint_ids: Sequence[UUID], *, limit: int
) -> dict[UUID, WaitingDeliveries]:
    """Return for each endpoint how many deliveries wait, counted up to a limit, since when, and the last response."""
    rows = await tx.fetch(
        """
        SELECT e.id, w.total, w.oldest, w.attempted_at, w.answer_status
        FROM unnest(%(endpoints)s::uuid[]) AS e (id)
        CROSS JOIN LATERAL (
            SELECT count(*) AS total, min(d.created_at) AS oldest, max(d.attempted_at) AS attempted_at,
                   (array_agg(d.answer_status ORDER BY d.attempted_at DESC NULLS LAST))[1] AS answer_status
            FROM (
                SELECT created_at, attempted_at, answer_status FROM webhook_deliveries
                WHERE organization_id = %(organization_id)s AND endpoint_id = e.id AND due_at IS NOT NULL
                ORDER BY due_at, id
                LIMIT %(limit)s
            ) AS d
        ) AS w
        """,
        {"organization_id": organization_id, "endpoints": list(endpoint_ids), "limit": limit},
    )
    return {row[0]: WaitingDeliveries(*row[1:]) for row in rows}
