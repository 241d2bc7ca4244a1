"""The SQL of lists for people; each is one stretch of an index."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from psycopg.sql import SQL, Composable

from regulars.journeys.browse.model import SpanRow, VersionRow
from regulars.journeys.runs.model import RunRow
from regulars.kit.db import Tx

_COLUMNS = SQL(
    """id, journey_id, version, fact_kind, fact_id, profile_id, sale_id, state, step, waits_for, waiting_since,
       due_at, attempts, outcome, reason, entered_at, ended_at, fact_at, seen_sales"""
)


async def list_runs(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    *,
    state: str | None,
    step: str | None,
    profile_id: UUID | None,
    beyond: UUID | None,
    is_backward: bool,
    limit: int,
) -> list[RunRow]:
    """The newest first; backward, the oldest of the newer ones first. A step names those who stand there now."""
    conditions: list[Composable] = [SQL("organization_id = %(organization_id)s AND journey_id = %(journey_id)s")]
    given: dict[str, Any] = {"organization_id": organization_id, "journey_id": journey_id, "limit": limit}
    if step is not None:
        conditions.append(SQL("step = %(step)s AND state <> 'ended'"))
        given["step"] = step
    elif state is not None:
        conditions.append(SQL("state = %(state)s"))
        given["state"] = state
    if profile_id is not None:
        conditions.append(SQL("profile_id = %(profile_id)s"))
        given["profile_id"] = profile_id
    if beyond is not None:
        conditions.append(SQL("id > %(beyond)s") if is_backward else SQL("id < %(beyond)s"))
        given["beyond"] = beyond
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM journey_runs WHERE {conditions} ORDER BY id {order} LIMIT %(limit)s").format(
            columns=_COLUMNS,
            conditions=SQL(" AND ").join(conditions),
            order=SQL("ASC") if is_backward else SQL("DESC"),
        ),
        given,
    )
    return [RunRow(*row) for row in rows]


async def list_runs_of_customer(tx: Tx, organization_id: UUID, profile_id: UUID, *, limit: int) -> list[RunRow]:
    rows = await tx.fetch(
        SQL(
            "SELECT {columns} FROM journey_runs WHERE organization_id = %s AND profile_id = %s"
            " ORDER BY id DESC LIMIT %s"
        ).format(columns=_COLUMNS),
        (organization_id, profile_id, limit),
    )
    return [RunRow(*row) for row in rows]


async def list_runs_of_person(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, after: UUID, limit: int
) -> list[RunRow]:
    """The oldest first."""
    rows = await tx.fetch(
        SQL(
            "SELECT {columns} FROM journey_runs WHERE organization_id = %s AND profile_id = %s AND id > %s"
            " ORDER BY id LIMIT %s"
        ).format(columns=_COLUMNS),
        (organization_id, profile_id, after, limit),
    )
    return [RunRow(*row) for row in rows]


async def list_versions(tx: Tx, organization_id: UUID, journey_id: UUID, *, limit: int) -> list[VersionRow]:
    rows = await tx.fetch(
        """
        SELECT version, created_at, created_by FROM journey_versions
        WHERE organization_id = %s AND journey_id = %s
        ORDER BY version DESC
        LIMIT %s
        """,
        (organization_id, journey_id, limit),
    )
    return [VersionRow(*row) for row in rows]


async def list_spans(tx: Tx, organization_id: UUID, journey_id: UUID, *, limit: int) -> list[SpanRow]:
    rows = await tx.fetch(
        """
        SELECT version, since, until FROM journey_activations
        WHERE organization_id = %s AND journey_id = %s
        ORDER BY since DESC
        LIMIT %s
        """,
        (organization_id, journey_id, limit),
    )
    return [SpanRow(*row) for row in rows]


async def name_journeys(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    rows = await tx.fetch(
        "SELECT id, name FROM journeys WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )
    return {row[0]: row[1] for row in rows}
