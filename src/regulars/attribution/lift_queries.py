"""The SQL of lifts. A lift compares the spend of customers who were texted with that of a holdout."""

from collections.abc import Collection
from datetime import date, datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.columns import names_of
from regulars.kit.db import Tx


class LiftRow(NamedTuple):
    kind: str
    source_id: UUID
    step: str
    # A month such as 2026-11, or a quarter such as 2026-Q4; empty for a campaign.
    period: str
    state: str
    held_out_share: float
    # For how many days sales count: after the last text of a campaign, or after the split of a journey.
    window_days: int
    # The window; None until it is known.
    first_day: date | None
    last_day: date | None
    # The day on which the groups were fixed; what customers spent before it is the baseline.
    frozen_on: date | None
    # When the sales of the result were read.
    as_of: datetime | None
    # A `LiftAnswer` as JSON.
    result: str | None
    reason: str | None

    @property
    def key(self) -> tuple[str, UUID, str, str]:
        return self[:4]


_COLUMNS: Final = SQL(names_of(LiftRow, "lifts").replace("lifts.result", "lifts.result::text"))
_IS_KEY: Final = SQL(
    """
    lifts.organization_id = %(organization_id)s AND lifts.kind = %(kind)s AND lifts.source_id = %(source_id)s
      AND lifts.step = %(step)s AND lifts.period = %(period)s
    """
)


async def insert_lift_if_new(tx: Tx, organization_id: UUID, row: LiftRow) -> None:
    """Insert a lift that is due now."""
    await tx.execute(
        """
        INSERT INTO lifts (organization_id, kind, source_id, step, period, held_out_share, window_days, first_day,
                           last_day, frozen_on, due_at)
        VALUES (%(organization_id)s, %(kind)s, %(source_id)s, %(step)s, %(period)s, %(held_out_share)s,
                %(window_days)s, %(first_day)s, %(last_day)s, %(frozen_on)s, %(due_at)s)
        ON CONFLICT (organization_id, kind, source_id, step, period) DO NOTHING
        """,
        {"organization_id": organization_id, "due_at": tx.now, **row._asdict()},
    )


async def delete_if_open(tx: Tx, organization_id: UUID, source: tuple[str, UUID, str, str]) -> None:
    """Delete the lift of a source, unless its window has closed."""
    key = dict(zip(LiftRow._fields[:4], source, strict=True))
    await tx.execute(
        SQL("DELETE FROM lifts WHERE {is_key} AND lifts.state = 'open'").format(is_key=_IS_KEY),
        {"organization_id": organization_id, **key},
    )


async def list_lifts(tx: Tx, organization_id: UUID, kind: str, ids: Collection[UUID]) -> list[LiftRow]:
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM lifts
            WHERE organization_id = %s AND kind = %s AND source_id = ANY (%s::uuid[])
            ORDER BY source_id, step, period
            """
        ).format(columns=_COLUMNS),
        (organization_id, kind, list(ids)),
    )
    return [LiftRow(*row) for row in rows]


async def make_provisional_due(tx: Tx, organization_id: UUID) -> int:
    """Make provisional lifts due now, except those that a worker is computing; return how many."""
    return await tx.execute(
        """
        UPDATE lifts SET due_at = %(now)s
        WHERE organization_id = %(organization_id)s AND due_at > %(now)s AND state = 'provisional' AND owner IS NULL
        """,
        {"organization_id": organization_id, "now": tx.now},
    )


async def claim_due(tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime) -> list[LiftRow]:
    rows = await tx.fetch(
        SQL(
            """
            UPDATE lifts SET owner = %(owner)s, due_at = %(until)s
            FROM (
                SELECT kind, source_id, step, period FROM lifts
                WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
                ORDER BY due_at, kind, source_id, step, period
                LIMIT %(limit)s
                FOR UPDATE SKIP LOCKED
            ) AS due
            WHERE lifts.organization_id = %(organization_id)s AND lifts.kind = due.kind
              AND lifts.source_id = due.source_id AND lifts.step = due.step AND lifts.period = due.period
            RETURNING {columns}
            """
        ).format(columns=_COLUMNS),
        {"organization_id": organization_id, "now": tx.now, "limit": limit, "owner": owner, "until": until},
    )
    return [LiftRow(*row) for row in rows]


async def save_lift(tx: Tx, organization_id: UUID, row: LiftRow, *, owner: UUID, due_at: datetime | None) -> int:
    """Save a claimed lift and release it; returns 0 if another worker has claimed it meanwhile."""
    return await tx.execute(
        SQL(
            """
            UPDATE lifts
            SET state = %(state)s, first_day = %(first_day)s, last_day = %(last_day)s, frozen_on = %(frozen_on)s,
                as_of = %(as_of)s, result = %(result)s::json, reason = %(reason)s, owner = NULL, due_at = %(due_at)s
            WHERE {is_key} AND lifts.owner = %(owner)s
            """
        ).format(is_key=_IS_KEY),
        {"organization_id": organization_id, "owner": owner, "due_at": due_at, **row._asdict()},
    )
