"""The statements on `demo_runs`."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from regulars.kit.db import Tx


class Run(NamedTuple):
    tickets: int
    progress: dict[str, int]
    attempts: int
    created_at: datetime
    finished_at: datetime | None
    failed_at: datetime | None


async def insert_run_if_new(tx: Tx, organization_id: UUID, *, tickets: int) -> bool:
    count = await tx.execute(
        "INSERT INTO demo_runs (organization_id, tickets, created_at, due_at) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (organization_id) DO NOTHING",
        (organization_id, tickets, tx.now, tx.now),
    )
    return count == 1


async def find_run(tx: Tx, organization_id: UUID) -> Run | None:
    rows = await tx.fetch(
        "SELECT tickets, progress, attempts, created_at, finished_at, failed_at FROM demo_runs"
        " WHERE organization_id = %s",
        (organization_id,),
    )
    return Run(*rows[0]) if rows else None


async def take_due_run(tx: Tx, organization_id: UUID, *, until: datetime) -> Run | None:
    """Take it, for as long as progress is told: a worker that dies lets it fall due again."""
    rows = await tx.fetch(
        "UPDATE demo_runs SET due_at = %s, attempts = attempts + 1, progress = '{}' WHERE organization_id = %s"
        " AND organization_id IN (SELECT organization_id FROM demo_runs WHERE organization_id = %s AND due_at <= %s"
        " FOR UPDATE SKIP LOCKED)"
        " RETURNING tickets, progress, attempts, created_at, finished_at, failed_at",
        (until, organization_id, organization_id, tx.now),
    )
    return Run(*rows[0]) if rows else None


async def tell_progress(tx: Tx, organization_id: UUID, progress: Mapping[str, int], *, until: datetime) -> None:
    await tx.execute(
        "UPDATE demo_runs SET progress = %s, due_at = %s WHERE organization_id = %s AND finished_at IS NULL",
        (msgspec.json.encode(progress).decode(), until, organization_id),
    )


async def finish_run(tx: Tx, organization_id: UUID, progress: Mapping[str, int]) -> None:
    await tx.execute(
        "UPDATE demo_runs SET progress = %s, due_at = NULL, finished_at = %s WHERE organization_id = %s",
        (msgspec.json.encode(progress).decode(), tx.now, organization_id),
    )


async def fail_run(tx: Tx, organization_id: UUID, *, due_at: datetime | None) -> None:
    await tx.execute(
        "UPDATE demo_runs SET due_at = %s::timestamptz,"
        " failed_at = CASE WHEN %s::timestamptz IS NULL THEN %s::timestamptz END WHERE organization_id = %s",
        (due_at, due_at, tx.now, organization_id),
    )
