"""Records the passes of customers through a journey's holdout split, and whether each customer is held out from texts
(`journey_holdouts`).

Attribution compares the two groups of customers who passed a split in the same month. Only the first pass of a customer
in a month counts, because a purchase that a text caused may let the customer enter again.
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.experiments.facts import HoldoutMonthBegun
from regulars.kit.arrays import Bigints, Booleans, Ids, Labels
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.work import outbox


class HoldoutPassRow(NamedTuple):
    journey_id: UUID
    step: str
    # The first day of the month.
    month: date
    profile_id: UUID
    # The first day on which purchases count.
    first_day: date
    # The percentage of customers who are held out.
    percent: int
    is_held_out: bool


def first_counted_day(today: date, trigger_day: date | None) -> date:
    """The first day on which purchases count for a customer who passes the split today: tomorrow, if the purchase that
    started the run was today, because that purchase would make every customer a buyer."""
    return today + timedelta(days=1) if trigger_day == today else today


_PASSES: Final = Columns(
    journey_id=Ids, step=Labels, month=(Labels, date.isoformat), profile_id=Ids, first_day=(Labels, date.isoformat),
    percent=Bigints, is_held_out=Booleans,
)  # fmt: skip
_INSERT: Final = _PASSES.write(
    """
    INSERT INTO journey_holdouts (organization_id, passed_at, {columns})
    SELECT %(organization_id)s, %(now)s, it.journey_id, it.step, it.month::date, it.profile_id, it.first_day::date,
           it.percent, it.is_held_out
    FROM {rows}
    ON CONFLICT (organization_id, journey_id, step, month, profile_id) DO NOTHING
    """
)


async def record_passes(
    tx: Tx, organization_id: UUID, passes: Sequence[HoldoutPassRow], months: Collection[HoldoutMonthBegun]
) -> None:
    """Store the passes. For each of `months` of which no pass is stored yet, record the event for listeners in other
    packages. Rows are written in the order of their keys, so that two transactions never deadlock."""
    if passes:
        begun = [it for it in months if not await _is_any_stored(tx, organization_id, it)]
        await outbox.record(tx, organization_id, begun)
        await tx.execute(_INSERT, {"organization_id": organization_id, "now": tx.now, **_PASSES.of(sorted(passes))})


async def _is_any_stored(tx: Tx, organization_id: UUID, month: HoldoutMonthBegun) -> bool:
    stored = await tx.fetch_value(
        """
        SELECT 1 FROM journey_holdouts
        WHERE organization_id = %s AND journey_id = %s AND step = %s AND month = %s
        LIMIT 1
        """,
        (organization_id, month.journey_id, month.step, month.month),
    )
    return stored is not None


async def read_holdout_groups(
    tx: Tx, organization_id: UUID, journey_id: UUID, step: str, month: date
) -> dict[bool, tuple[bytes, bytes]]:
    """For each group (true: held out) the ids of the customers, 16 bytes each, and the first day on which purchases of
    each customer count, in days since 1970, four bytes each. If the percentage of the split changes during a month,
    customers who pass with the new percentage are omitted until the next month."""
    rows = await tx.fetch(
        """
        SELECT is_held_out, string_agg(uuid_send(profile_id), ''::bytea ORDER BY profile_id),
               array_agg(first_day - '1970-01-01'::date ORDER BY profile_id)
        FROM journey_holdouts
        WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND step = %(step)s
          AND month = %(month)s AND percent = (
            SELECT percent FROM journey_holdouts
            WHERE organization_id = %(organization_id)s AND journey_id = %(journey_id)s AND step = %(step)s
              AND month = %(month)s
            ORDER BY passed_at
            LIMIT 1
          )
        GROUP BY is_held_out
        """,
        {"organization_id": organization_id, "journey_id": journey_id, "step": step, "month": month},
    )
    return {row[0]: (bytes(row[1]), b"".join(day.to_bytes(4, "little") for day in row[2])) for row in rows}


async def delete_holdout_passes_of(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    await tx.execute(
        "DELETE FROM journey_holdouts WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])",
        (organization_id, list(profile_ids)),
    )


async def delete_old_holdout_passes(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await tx.execute(
        """
        DELETE FROM journey_holdouts
        WHERE organization_id = %(organization_id)s AND (journey_id, step, month, profile_id) IN (
            SELECT journey_id, step, month, profile_id FROM journey_holdouts
            WHERE organization_id = %(organization_id)s AND passed_at < %(before)s
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        )
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
