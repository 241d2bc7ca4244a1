"""The SQL of journey runs, and of `journey_customers`, which has each customer's last entry into a journey."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.journeys.model import NewJourneyRun, RunRow
from regulars.kit.arrays import Bigints, Ids, Labels, Texts, Timestamps
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx
from regulars.texts.text_rows import IS_STOPPED, REMAINS_STOPPED


async def lock_customers(
    tx: Tx, organization_id: UUID, journey_id: UUID, profile_ids: Sequence[UUID]
) -> dict[UUID, tuple[datetime | None, UUID | None]]:
    """Insert the rows of new customers, then lock all rows in order; return the time of each customer's last entry, and
    the run if it is open. The end of a run does not change these rows: the state of the run is read under their
    lock."""
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
    open_ids = await tx.fetch_column(
        "SELECT id FROM journey_runs WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND state <> 'ended'",
        (organization_id, list(run_ids)),
    )
    return set(open_ids)


_NEW_RUNS: Final = Columns(
    id=Ids, journey_id=Ids, version=Bigints, fact_kind=Labels, fact_id=Texts, profile_id=Ids, sale_id=Ids, step=Labels,
    fact_at=Timestamps,
)  # fmt: skip
_INSERT_RUNS: Final = _NEW_RUNS.write(
    """
    INSERT INTO journey_runs (organization_id, state, due_at, entered_at, {columns})
    SELECT %(organization_id)s, 'active', %(now)s, %(now)s, it.* FROM {rows}
    ON CONFLICT (organization_id, journey_id, fact_kind, fact_id) DO NOTHING
    RETURNING id
    """
)


async def insert_runs_if_new(tx: Tx, organization_id: UUID, runs: Sequence[NewJourneyRun]) -> set[UUID]:
    """Insert runs and return the ids of inserted runs."""
    values = {"organization_id": organization_id, "now": tx.now, **_NEW_RUNS.of(runs)}
    return set(await tx.fetch_column(_INSERT_RUNS, values))


async def set_customers_runs(
    tx: Tx, organization_id: UUID, journey_id: UUID, entered: Sequence[tuple[UUID, UUID]]
) -> None:
    """Store the run of each customer who just entered."""
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


_TAKE_DUE: Final = fill(
    """
    SELECT {columns}, journey_id {is_stopped} FROM journey_runs
    WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
      AND (due_at, id) > (COALESCE(%(after)s, '-infinity'::timestamptz), %(after_id)s::uuid)
      AND NOT (%(skips_stopped)s AND journey_id {is_stopped})
    ORDER BY due_at, id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
    """,
    columns=names_of(RunRow),
    is_stopped=IS_STOPPED,
)


class DueRun(NamedTuple):
    run: RunRow
    # Whether its journey is paused.
    is_stopped: bool


async def take_due_runs(
    tx: Tx, organization_id: UUID, *, after: DueRun | None, limit: int, skips_stopped: bool
) -> list[DueRun]:
    """Lock and return due runs, except those that another transaction has locked."""
    rows = await tx.fetch(
        _TAKE_DUE,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "after": None if after is None else after.run.due_at,
            "after_id": UUID(int=0) if after is None else after.run.id,
            "skips_stopped": skips_stopped,
            "limit": limit,
        },
    )
    return [DueRun(RunRow(*row), is_stopped) for *row, is_stopped in rows]


_SET_ASIDE: Final = fill(
    """
    UPDATE journey_runs SET held_due_at = due_at, due_at = NULL
    WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[]) AND journey_id {remains_stopped}
    """,
    remains_stopped=REMAINS_STOPPED,
)


async def set_aside(tx: Tx, organization_id: UUID, run_ids: Sequence[UUID]) -> None:
    """Set runs aside that wait for the end of a pause; the caller has locked them."""
    await tx.execute(_SET_ASIDE, {"organization_id": organization_id, "ids": list(run_ids)})


# All transactions lock runs in the order of their ids.
_LOCK: Final = "SELECT {columns} FROM journey_runs WHERE organization_id = %s AND {condition} ORDER BY id FOR UPDATE"
_LOCK_ACTIVE_OF: Final = fill(_LOCK, condition="profile_id = ANY (%s::uuid[]) AND state = 'active'")
_LOCK_OPEN_OF: Final = fill(_LOCK, condition="profile_id = ANY (%s::uuid[]) AND state <> 'ended'")


async def lock_active_runs_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[RunRow]:
    return await tx.fetch_all(RunRow, _LOCK_ACTIVE_OF, (organization_id, list(profile_ids)))


async def lock_open_runs_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[RunRow]:
    """Lock and return the active and parked runs of customers."""
    return await tx.fetch_all(RunRow, _LOCK_OPEN_OF, (organization_id, list(profile_ids)))


async def wake_texted_runs(tx: Tx, organization_id: UUID, texted: Sequence[tuple[UUID, str]]) -> int:
    """Make runs due now that wait for the text of the step; given as run id and step. A run that has continued to a
    later step stays as it is."""
    # All transactions lock runs in the order of their ids.
    texted = sorted(texted)
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
            "ids": [it for it, _ in texted],
            "steps": [step for _, step in texted],
            "now": tx.now,
        },
    )


async def wake_runs(tx: Tx, organization_id: UUID, run_ids: Collection[UUID], *, waits_for: str) -> int:
    """Make runs due now that wait for this event; a paused run becomes due when its journey is resumed."""
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


def _join_ids(sales: Sequence[UUID] | None) -> str | None:
    """Join the list into a string, because PostgreSQL has no arrays of arrays with different lengths."""
    return None if sales is None else ",".join(map(str, sales))


# The columns that `save_runs` assigns as they are; besides, `id` selects the row, and `seen_sales` is converted.
_SAVED: Final = Columns(
    state=Labels, step=Labels, waits_for=Labels, waiting_since=Timestamps, due_at=Timestamps, attempts=Bigints,
    outcome=Labels, reason=Labels, ended_at=Timestamps,
)  # fmt: skip
_ID_AND_SALES: Final = Columns(id=Ids, seen_sales=(Texts, _join_ids))
_SAVE_RUNS: Final[LiteralString] = (_SAVED | _ID_AND_SALES).write(
    """
    UPDATE journey_runs
    SET {saved}, held_due_at = NULL, seen_sales = string_to_array(it.seen_sales, ',')::uuid[]
    FROM {rows}
    WHERE journey_runs.organization_id = %(organization_id)s AND journey_runs.id = it.id
    """,
    saved=_SAVED.assign("it"),
)


async def save_runs(tx: Tx, organization_id: UUID, runs: Sequence[RunRow]) -> None:
    """Save the state of runs, and clear the due time that a pause stored."""
    await tx.execute(_SAVE_RUNS, {"organization_id": organization_id, **_SAVED.of(runs), **_ID_AND_SALES.of(runs)})


async def set_reason(tx: Tx, organization_id: UUID, run_id: UUID, *, reason: str) -> None:
    await tx.execute(
        "UPDATE journey_runs SET reason = %s WHERE organization_id = %s AND id = %s", (reason, organization_id, run_id)
    )


async def find_runs(tx: Tx, organization_id: UUID, run_ids: Collection[UUID]) -> list[RunRow]:
    return await tx.fetch_all(
        RunRow,
        "SELECT {columns} FROM journey_runs WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(run_ids)),
    )


async def lock_open_runs(tx: Tx, organization_id: UUID, journey_id: UUID, *, limit: int) -> list[RunRow]:
    """Lock and return the active and parked runs of a journey."""
    return await tx.fetch_all(
        RunRow,
        fill(_LOCK, condition="journey_id = %s AND state <> 'ended'") + " LIMIT %s",
        (organization_id, journey_id, limit),
    )


async def lock_run(tx: Tx, organization_id: UUID, run_id: UUID) -> RunRow | None:
    return await tx.fetch_first(RunRow, fill(_LOCK, condition="id = %s"), (organization_id, run_id))
