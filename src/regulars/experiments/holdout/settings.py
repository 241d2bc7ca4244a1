"""Read and change the global holdout of an organization: how many percent of its customers get no campaign texts."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.experiments.facts import HoldoutQuarterChanged
from regulars.experiments.holdout import queries
from regulars.experiments.holdout.draw import QUEUE
from regulars.experiments.holdout.model import QuarterRow, check_percent
from regulars.kit.db import Tx
from regulars.texts.text_rows import load_zone
from regulars.work import outbox


@dataclass(frozen=True, slots=True)
class GlobalHoldout:
    """The current setting, and the draw of each quarter, which chose the customers, newest first. `due_at` is when the
    next draw begins."""

    percent: int = 0
    # Whether these customers get no texts of journeys either.
    with_journeys: bool = False
    due_at: datetime | None = None
    quarters: tuple[QuarterRow, ...] = ()

    @property
    def running(self) -> QuarterRow | None:
        """The draw that is in effect, or in progress."""
        newest = next(iter(self.quarters), None)
        return None if newest is None or newest.stopped_at is not None else newest

    def as_data(self) -> dict[str, Any]:
        """The setting as it is written to the audit log."""
        return {"percent": self.percent, "with_journeys": self.with_journeys}


async def load_holdout(tx: Tx, organization_id: UUID) -> GlobalHoldout:
    row = await queries.find_holdout(tx, organization_id)
    if row is None:
        return GlobalHoldout()
    quarters = await queries.list_quarters(tx, organization_id)
    return GlobalHoldout(row.percent, row.with_journeys, row.due_at, tuple(quarters))


async def change_holdout(
    tx: Tx, organization_id: UUID, *, percent: int, with_journeys: bool, by: str | None
) -> GlobalHoldout:
    """Change the setting, or raise `SettingRefused`. The first draw starts at once. A changed percentage applies from
    the next quarter, while `with_journeys` applies at once. 0 percent ends the current quarter at once, and this
    quarter is not drawn again."""
    check_percent(percent)
    # The setting is due now, so that the worker draws customers or deletes them.
    await tx.execute(
        """
        INSERT INTO holdouts (organization_id, percent, with_journeys, changed_at, changed_by, due_at)
        VALUES (%s, %s, %s, %s, %s, %s)
        ON CONFLICT (organization_id)
        DO UPDATE SET percent = EXCLUDED.percent, with_journeys = EXCLUDED.with_journeys,
                      changed_at = EXCLUDED.changed_at, changed_by = EXCLUDED.changed_by, due_at = EXCLUDED.due_at,
                      attempts = 0
        """,
        (organization_id, percent, with_journeys, tx.now, by, tx.now),
    )
    if not percent:
        await _end_quarter(tx, organization_id)
    # After the commit, the process wakes a worker for this queue.
    tx.queues_to_wake.add((QUEUE, organization_id))
    return await load_holdout(tx, organization_id)


async def _end_quarter(tx: Tx, organization_id: UUID) -> None:
    """End the current quarter; its comparison ends with yesterday."""
    today = day_of(tx.now, await load_zone(tx, organization_id))
    # The draws that are in effect or in progress.
    stopped = await tx.fetch_all(
        QuarterRow,
        """
        UPDATE holdout_quarters SET stopped_at = %s WHERE organization_id = %s AND stopped_at IS NULL
        RETURNING {columns}
        """,
        (tx.now, organization_id),
    )
    ended = [quarter for quarter in stopped if quarter.drawn_at and quarter.ends_on >= today]
    last_day = today - timedelta(days=1)
    facts = [HoldoutQuarterChanged(quarter.quarter, quarter.percent, quarter.begins_on, last_day) for quarter in ended]
    await outbox.record(tx, organization_id, facts)


async def is_holdout_being_drawn(tx: Tx, organization_id: UUID) -> bool:
    """Whether a draw is due or in progress; a campaign that starts now would use the draw of the last quarter."""
    row = await queries.find_holdout(tx, organization_id)
    return row is not None and row.percent > 0 and row.due_at is not None and row.due_at <= tx.now
