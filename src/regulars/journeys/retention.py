"""Deletes runs of journeys and passes of customers through holdout splits: of a customer whose data is erased, and all
others after 13 months. Totals remain."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.conditions.erased_values import DefinitionTable
from regulars.experiments.journey_holdouts import delete_holdout_passes_of
from regulars.journeys.runs.trace import add_totals
from regulars.kit.db import Tx

# 13 months.
RETENTION: Final = timedelta(days=396)
DEFINITIONS: Final = (
    DefinitionTable(
        """
        SELECT definition::text, journey_id, version FROM journey_versions
        WHERE organization_id = %(organization_id)s AND {contains_value}
        ORDER BY journey_id, version
        """,
        """
        UPDATE journey_versions SET definition = %s::json
        WHERE organization_id = %s AND journey_id = %s AND version = %s
        """,
    ),
    # The revision is incremented, so that a user who edits the previous revision gets a conflict.
    DefinitionTable(
        """
        SELECT definition::text, journey_id FROM journey_drafts
        WHERE organization_id = %(organization_id)s AND {contains_value}
        ORDER BY journey_id
        FOR UPDATE
        """,
        """
        UPDATE journey_drafts SET definition = %s::json, revision = revision + 1
        WHERE organization_id = %s AND journey_id = %s
        """,
    ),
    # A backtest of a definition that changes is deleted; it can be requested again.
    DefinitionTable(
        """
        SELECT definition::text, journey_id FROM journey_backtests
        WHERE organization_id = %(organization_id)s AND {contains_value}
        ORDER BY journey_id
        """,
        "DELETE FROM journey_backtests WHERE definition::text <> %s AND organization_id = %s AND journey_id = %s",
    ),
)


async def erase_runs(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    """Delete the runs of customers with their traces, and their rows of `journey_customers`."""
    # Every transaction that locks several runs locks them in the order of their ids.
    rows = await tx.fetch(
        """
        SELECT id, journey_id, version, step, state FROM journey_runs
        WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, list(profile_ids)),
    )
    run_ids = [row[0] for row in rows]
    await tx.execute(
        "DELETE FROM journey_runs WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, run_ids)
    )
    await _delete_traces(tx, organization_id, run_ids)
    await tx.execute(
        "DELETE FROM journey_customers WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])",
        (organization_id, list(profile_ids)),
    )
    # The totals count deleted open runs as ended, because otherwise a step would show them as waiting for ever.
    open_runs = [row for row in rows if row[-1] != "ended"]
    ended = Counter((journey_id, version, step or "", "ended") for _, journey_id, version, step, _ in open_runs)
    await add_totals(tx, organization_id, ended)
    await delete_holdout_passes_of(tx, organization_id, profile_ids)


async def delete_old_runs(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    run_ids = await tx.fetch_column(
        """
        DELETE FROM journey_runs
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM journey_runs
            WHERE organization_id = %(organization_id)s AND ended_at < %(before)s
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
    await _delete_traces(tx, organization_id, run_ids)
    return len(run_ids)


async def _delete_traces(tx: Tx, organization_id: UUID, run_ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM journey_trace WHERE organization_id = %s AND run_id = ANY (%s::uuid[])",
        (organization_id, list(run_ids)),
    )
