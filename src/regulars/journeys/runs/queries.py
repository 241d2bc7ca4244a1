"""The SQL of runs, of customers' places in journeys, of traces and totals."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from psycopg.sql import SQL

from regulars.journeys.runs.model import NewRun, RunRow
from regulars.kit.db import Tx

_COLUMNS = SQL(
    """journey_runs.id, journey_runs.journey_id, journey_runs.version, journey_runs.fact_kind, journey_runs.fact_id,
       journey_runs.profile_id, journey_runs.sale_id, journey_runs.state, journey_runs.step, journey_runs.waits_for,
       journey_runs.waiting_since, journey_runs.due_at, journey_runs.attempts, journey_runs.outcome,
       journey_runs.reason, journey_runs.entered_at, journey_runs.ended_at, journey_runs.fact_at,
       journey_runs.seen_sales"""
)


async def lock_customers(
    tx: Tx, organization_id: UUID, journey_id: UUID, profile_ids: Sequence[UUID]
) -> dict[UUID, tuple[datetime | None, UUID | None]]:
    """Their places in the journey, made if new and then locked in order: when they last entered, and their run while
    it has not ended. Whoever ends a run need not touch the place: its state is read under the place's lock."""
    await tx.execute(
        """
        INSERT INTO journey_customers (organization_id, journey_id, profile_id)
        SELECT %(organization_id)s, %(journey_id)s, it.id
        FROM unnest(%(profile_ids)s::uuid[]) AS it (id)
        ORDER BY it.id
        ON CONFLICT (organization_id, journey_id, profile_id) DO NOTHING
        """,
        {"organization_id": organization_id, "journey_id": journey_id, "profile_ids": sorted(profile_ids)},
    )
    rows = await tx.fetch(
        """
        SELECT profile_id, entered_at, run_id FROM journey_customers
        WHERE organization_id = %s AND journey_id = %s AND profile_id = ANY (%s::uuid[])
        ORDER BY profile_id
        FOR UPDATE
        """,
        (organization_id, journey_id, sorted(profile_ids)),
    )
    open_runs = await _find_open(tx, organization_id, [row[2] for row in rows if row[2] is not None])
    return {row[0]: (row[1], row[2] if row[2] in open_runs else None) for row in rows}


async def _find_open(tx: Tx, organization_id: UUID, run_ids: Sequence[UUID]) -> set[UUID]:
    if not run_ids:
        return set()
    rows = await tx.fetch(
        "SELECT id FROM journey_runs WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND state <> 'ended'",
        (organization_id, list(run_ids)),
    )
    return {row[0] for row in rows}


async def insert_runs_if_new(tx: Tx, organization_id: UUID, runs: Sequence[NewRun], *, is_paused: bool) -> set[UUID]:
    """Those of a journey that was paused meanwhile wait until it goes on."""
    rows = await tx.fetch(
        """
        INSERT INTO journey_runs
            (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id, sale_id, state, step,
             due_at, held_due_at, entered_at, fact_at)
        SELECT %(organization_id)s, it.id, it.journey_id, it.version, it.fact_kind, it.fact_id, it.profile_id,
               it.sale_id, 'active', it.step, CASE WHEN NOT %(is_paused)s THEN %(now)s::timestamptz END,
               CASE WHEN %(is_paused)s THEN %(now)s::timestamptz END, %(now)s, it.fact_at
        FROM unnest(%(ids)s::uuid[], %(journey_ids)s::uuid[], %(versions)s::integer[], %(fact_kinds)s::text[],
                    %(fact_ids)s::text[], %(profile_ids)s::uuid[], %(sale_ids)s::uuid[], %(steps)s::text[],
                    %(fact_times)s::timestamptz[])
             AS it (id, journey_id, version, fact_kind, fact_id, profile_id, sale_id, step, fact_at)
        ON CONFLICT (organization_id, journey_id, fact_kind, fact_id) DO NOTHING
        RETURNING id
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "is_paused": is_paused,
            "ids": [it.id for it in runs],
            "journey_ids": [it.journey_id for it in runs],
            "versions": [it.version for it in runs],
            "fact_kinds": [it.fact_kind for it in runs],
            "fact_ids": [it.fact_id for it in runs],
            "profile_ids": [it.profile_id for it in runs],
            "sale_ids": [it.sale_id for it in runs],
            "steps": [it.step for it in runs],
            "fact_times": [it.fact_at for it in runs],
        },
    )
    return {row[0] for row in rows}


async def find_known_facts(
    tx: Tx, organization_id: UUID, journey_id: UUID, *, fact_kind: str, fact_ids: Sequence[str]
) -> set[str]:
    rows = await tx.fetch(
        """
        SELECT fact_id FROM journey_runs
        WHERE organization_id = %s AND journey_id = %s AND fact_kind = %s AND fact_id = ANY (%s::text[])
        """,
        (organization_id, journey_id, fact_kind, list(fact_ids)),
    )
    return {row[0] for row in rows}


async def set_customers_runs(
    tx: Tx, organization_id: UUID, journey_id: UUID, entered: Sequence[tuple[UUID, UUID]]
) -> None:
    """Profile and run of those who just entered."""
    await tx.execute(
        """
        UPDATE journey_customers SET entered_at = %(now)s, run_id = it.run_id
        FROM unnest(%(profile_ids)s::uuid[], %(run_ids)s::uuid[]) AS it (profile_id, run_id)
        WHERE journey_customers.organization_id = %(organization_id)s
          AND journey_customers.journey_id = %(journey_id)s AND journey_customers.profile_id = it.profile_id
        """,
        {
            "organization_id": organization_id,
            "journey_id": journey_id,
            "now": tx.now,
            "profile_ids": [it for it, _ in entered],
            "run_ids": [it for _, it in entered],
        },
    )


async def take_due_runs(tx: Tx, organization_id: UUID, *, after: RunRow | None = None, limit: int) -> list[RunRow]:
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM journey_runs
            JOIN journeys ON journeys.organization_id = %(organization_id)s
                AND journeys.id = journey_runs.journey_id AND journeys.state = 'live'
            WHERE journey_runs.organization_id = %(organization_id)s AND journey_runs.due_at <= %(now)s
              AND (journey_runs.due_at, journey_runs.id)
                  > (COALESCE(%(after)s, '-infinity'::timestamptz), %(after_id)s::uuid)
            ORDER BY journey_runs.due_at, journey_runs.id
            LIMIT %(limit)s
            FOR UPDATE OF journey_runs SKIP LOCKED
            """
        ).format(columns=_COLUMNS),
        {
            "organization_id": organization_id,
            "now": tx.now,
            "after": None if after is None else after.due_at,
            "after_id": UUID(int=0) if after is None else after.id,
            "limit": limit,
        },
    )
    return [RunRow(*row) for row in rows]


async def lock_active_runs_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[RunRow]:
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM journey_runs
            WHERE organization_id = %s AND profile_id = ANY (%s::uuid[]) AND state = 'active'
            ORDER BY id
            FOR UPDATE
            """
        ).format(columns=_COLUMNS),
        (organization_id, list(profile_ids)),
    )
    return [RunRow(*row) for row in rows]


async def lock_open_runs_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[RunRow]:
    """Parked ones too."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM journey_runs
            WHERE organization_id = %s AND profile_id = ANY (%s::uuid[]) AND state <> 'ended'
            ORDER BY id
            FOR UPDATE
            """
        ).format(columns=_COLUMNS),
        (organization_id, list(profile_ids)),
    )
    return [RunRow(*row) for row in rows]


async def wake_texted_runs(tx: Tx, organization_id: UUID, ended: Sequence[tuple[UUID, str]]) -> int:
    """Look now at runs that wait for the text of this very step; an earlier text's receipt wakes nobody."""
    # They are locked in this order, as everywhere.
    ended = sorted(ended)
    return await tx.execute(
        """
        UPDATE journey_runs
        SET due_at = CASE WHEN held_due_at IS NULL THEN %(now)s::timestamptz END,
            held_due_at = CASE WHEN held_due_at IS NOT NULL THEN %(now)s::timestamptz END
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT run.id
            FROM unnest(%(ids)s::uuid[], %(steps)s::text[]) AS it (id, step)
            CROSS JOIN LATERAL (
                SELECT id, step, state, waits_for FROM journey_runs
                WHERE organization_id = %(organization_id)s AND id = it.id
                ORDER BY id
                LIMIT 1
                FOR UPDATE
            ) AS run
            WHERE run.step = it.step AND run.state = 'active' AND run.waits_for = 'text'
        ))
        """,
        {
            "organization_id": organization_id,
            "ids": [it for it, _ in ended],
            "steps": [step for _, step in ended],
            "now": tx.now,
        },
    )


async def wake_runs(tx: Tx, organization_id: UUID, run_ids: Collection[UUID], *, waits_for: str) -> int:
    """Look now at runs that wait for this; one that is held by a pause looks when it goes on."""
    return await tx.execute(
        """
        UPDATE journey_runs
        SET due_at = CASE WHEN held_due_at IS NULL THEN %(now)s END,
            held_due_at = CASE WHEN held_due_at IS NOT NULL THEN %(now)s END
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[]) AND state = 'active'
          AND waits_for = %(waits_for)s
        """,
        {"organization_id": organization_id, "ids": list(run_ids), "waits_for": waits_for, "now": tx.now},
    )


async def save_runs(tx: Tx, organization_id: UUID, runs: Sequence[RunRow]) -> None:
    """Where the runs stand after a turn."""
    await tx.execute(
        """
        UPDATE journey_runs
        SET state = it.state, step = it.step, waits_for = it.waits_for, waiting_since = it.waiting_since,
            due_at = it.due_at, attempts = it.attempts, outcome = it.outcome, reason = it.reason,
            ended_at = it.ended_at, held_due_at = NULL, seen_sales = string_to_array(it.seen, ',')::uuid[]
        FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(steps)s::text[], %(waits)s::text[],
                    %(sinces)s::timestamptz[], %(dues)s::timestamptz[], %(attempts)s::integer[],
                    %(outcomes)s::text[], %(reasons)s::text[], %(ends)s::timestamptz[], %(seen)s::text[])
             AS it (id, state, step, waits_for, waiting_since, due_at, attempts, outcome, reason, ended_at, seen)
        WHERE journey_runs.organization_id = %(organization_id)s AND journey_runs.id = it.id
        """,
        {
            "organization_id": organization_id,
            "ids": [it.id for it in runs],
            "states": [it.state for it in runs],
            "steps": [it.step for it in runs],
            "waits": [it.waits_for for it in runs],
            "sinces": [it.waiting_since for it in runs],
            "dues": [it.due_at for it in runs],
            "attempts": [it.attempts for it in runs],
            "outcomes": [it.outcome for it in runs],
            "reasons": [it.reason for it in runs],
            "ends": [it.ended_at for it in runs],
            # One list in each row of a list: joined, because an array of arrays must be a rectangle.
            "seen": [None if it.seen_sales is None else ",".join(map(str, it.seen_sales)) for it in runs],
        },
    )


async def set_reason(tx: Tx, organization_id: UUID, run_id: UUID, *, reason: str) -> None:
    await tx.execute(
        "UPDATE journey_runs SET reason = %s WHERE organization_id = %s AND id = %s", (reason, organization_id, run_id)
    )


async def find_run(tx: Tx, organization_id: UUID, run_id: UUID) -> RunRow | None:
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM journey_runs WHERE organization_id = %s AND id = %s").format(columns=_COLUMNS),
        (organization_id, run_id),
    )
    return RunRow(*rows[0]) if rows else None


async def find_runs(tx: Tx, organization_id: UUID, run_ids: Collection[UUID]) -> list[RunRow]:
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM journey_runs WHERE organization_id = %s AND id = ANY (%s::uuid[])").format(
            columns=_COLUMNS
        ),
        (organization_id, list(run_ids)),
    )
    return [RunRow(*row) for row in rows]


async def hold_runs(tx: Tx, organization_id: UUID, journey_id: UUID) -> int:
    """Nothing of a paused journey becomes due; what was due then is remembered."""
    # Who asks for the active ones by name may be given those of all journeys, by the index of active runs.
    return await tx.execute(
        """
        UPDATE journey_runs SET held_due_at = due_at, due_at = NULL
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM journey_runs
            WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s
              AND state <> 'ended' AND state <> 'parked' AND due_at IS NOT NULL
            ORDER BY id
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "journey_id": journey_id},
    )


async def release_runs(tx: Tx, organization_id: UUID, journey_id: UUID) -> int:
    return await tx.execute(
        """
        UPDATE journey_runs SET due_at = held_due_at, held_due_at = NULL
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM journey_runs
            WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s
              AND state <> 'ended' AND state <> 'parked' AND held_due_at IS NOT NULL
            ORDER BY id
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "journey_id": journey_id},
    )


async def list_texting_runs(
    tx: Tx, organization_id: UUID, journey_id: UUID, *, after: UUID, limit: int
) -> list[tuple[UUID, str | None]]:
    """Runs that wait for a text, in the order of their ids, with the step they stand at."""
    rows = await tx.fetch(
        """
        SELECT id, step FROM journey_runs
        WHERE organization_id = %s AND journey_id = %s AND state <> 'ended' AND waits_for = 'text' AND id > %s
        ORDER BY id
        LIMIT %s
        """,
        (organization_id, journey_id, after, limit),
    )
    return [(row[0], row[1]) for row in rows]


async def lock_active_runs(tx: Tx, organization_id: UUID, journey_id: UUID, *, limit: int) -> list[RunRow]:
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM journey_runs
            WHERE organization_id = %s AND journey_id = %s AND state <> 'ended'
            ORDER BY id
            LIMIT %s
            FOR UPDATE
            """
        ).format(columns=_COLUMNS),
        (organization_id, journey_id, limit),
    )
    return [RunRow(*row) for row in rows]


async def is_any_active(tx: Tx, organization_id: UUID, journey_id: UUID) -> bool:
    rows = await tx.fetch(
        """
        SELECT EXISTS (
            SELECT 1 FROM journey_runs
            WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s
              AND state <> 'ended' AND state <> 'parked'
        )
        """,
        {"organization_id": organization_id, "journey_id": journey_id},
    )
    return bool(rows[0][0])


async def is_any_open(tx: Tx, organization_id: UUID) -> bool:
    """Parked ones count: a withdrawal ends them too."""
    rows = await tx.fetch(
        "SELECT EXISTS (SELECT 1 FROM journey_runs WHERE organization_id = %s AND state <> 'ended')",
        (organization_id,),
    )
    return bool(rows[0][0])


async def lock_run(tx: Tx, organization_id: UUID, run_id: UUID) -> RunRow | None:
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM journey_runs
            WHERE organization_id = %s AND id = %s
            FOR UPDATE
            """
        ).format(columns=_COLUMNS),
        (organization_id, run_id),
    )
    return RunRow(*rows[0]) if rows else None
