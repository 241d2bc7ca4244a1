"""The statements on `journey_backtests`: one a journey, the last that was asked for."""

from datetime import datetime
from uuid import UUID

from regulars.journeys.backtest.asked.model import AskedRow
from regulars.kit.db import Tx


async def upsert_asked(tx: Tx, organization_id: UUID, asked: AskedRow) -> None:
    """The new question takes the place of the old one, whose answer is forgotten."""
    await tx.execute(
        """
        INSERT INTO journey_backtests
            (organization_id, journey_id, version, revision, definition, days, asked_at, asked_by, due_at)
        VALUES (%(organization_id)s, %(journey_id)s, %(version)s, %(revision)s, %(definition)s::json, %(days)s, %(now)s,
                %(by)s, %(now)s)
        ON CONFLICT (organization_id, journey_id)
        DO UPDATE SET version = EXCLUDED.version, revision = EXCLUDED.revision, definition = EXCLUDED.definition,
                      days = EXCLUDED.days, asked_at = EXCLUDED.asked_at, asked_by = EXCLUDED.asked_by, facts = 0,
                      report = NULL, failure = NULL, ended_at = NULL, attempts = 0, due_at = EXCLUDED.due_at
        """,
        {
            "organization_id": organization_id,
            "journey_id": asked.journey_id,
            "version": asked.version,
            "revision": asked.revision,
            "definition": asked.definition,
            "days": asked.days,
            "by": asked.asked_by,
            "now": tx.now,
        },
    )


async def find_asked(tx: Tx, organization_id: UUID, journey_id: UUID) -> AskedRow | None:
    rows = await tx.fetch(
        """
        SELECT journey_id, version, revision, definition::text, days, asked_at, asked_by, facts, report, failure,
               ended_at, attempts
        FROM journey_backtests
        WHERE organization_id = %s AND journey_id = %s
        """,
        (organization_id, journey_id),
    )
    return AskedRow(*rows[0]) if rows else None


async def take_due(tx: Tx, organization_id: UUID, *, until: datetime) -> AskedRow | None:
    """One, for as long as progress is told: a worker that dies lets it fall due again."""
    rows = await tx.fetch(
        """
        UPDATE journey_backtests SET due_at = %(until)s, attempts = attempts + 1
        WHERE organization_id = %(organization_id)s AND journey_id = ANY (ARRAY(
            SELECT journey_id FROM journey_backtests
            WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
            ORDER BY due_at
            LIMIT 1
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING journey_id, version, revision, definition::text, days, asked_at, asked_by, facts, report, failure,
                  ended_at, attempts
        """,
        {"organization_id": organization_id, "until": until, "now": tx.now},
    )
    return AskedRow(*rows[0]) if rows else None


async def tell_progress(tx: Tx, organization_id: UUID, asked: AskedRow, *, facts: int, until: datetime) -> None:
    await tx.execute(
        """
        UPDATE journey_backtests SET facts = %s, due_at = %s
        WHERE organization_id = %s AND journey_id = %s AND asked_at = %s AND ended_at IS NULL
        """,
        (facts, until, organization_id, asked.journey_id, asked.asked_at),
    )


async def finish(
    tx: Tx, organization_id: UUID, asked: AskedRow, *, report: str | None, failure: str | None, due_at: datetime | None
) -> None:
    """Only the question that was played: a newer one waits for its own answer. With a due time it is tried again."""
    await tx.execute(
        """
        UPDATE journey_backtests
        SET report = %(report)s::json, failure = %(failure)s, due_at = %(due_at)s,
            ended_at = CASE WHEN %(due_at)s::timestamptz IS NULL THEN %(now)s::timestamptz END
        WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND asked_at = %(asked_at)s
        """,
        {
            "organization_id": organization_id,
            "journey_id": asked.journey_id,
            "asked_at": asked.asked_at,
            "report": report,
            "failure": failure,
            "due_at": due_at,
            "now": tx.now,
        },
    )
