"""Read and change the global holdout of an organization."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.holdout import queries
from regulars.messaging.holdout.draw import QUEUE
from regulars.messaging.holdout.model import QuarterRow, check_percent


@dataclass(frozen=True, slots=True)
class GlobalHoldout:
    """The setting of now, and the draws, the newest first. `due_at` is when the next one begins."""

    percent: int = 0
    with_journeys: bool = False
    due_at: datetime | None = None
    quarters: tuple[QuarterRow, ...] = ()

    @property
    def running(self) -> QuarterRow | None:
        """The draw that counts, or that is being made."""
        newest = next(iter(self.quarters), None)
        return None if newest is None or newest.stopped_at is not None else newest

    def as_data(self) -> dict[str, Any]:
        """The setting, as the audit log has it."""
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
    """Raises `SettingRefused`. The first draw of a quarter is made at once. Another share counts from the next quarter
    on, and journeys count at once. No share ends the running quarter at once, and it is not drawn again."""
    check_percent(percent)
    await queries.upsert_holdout(tx, organization_id, percent=percent, with_journeys=with_journeys, changed_by=by)
    if not percent:
        await queries.stop_quarters(tx, organization_id)
    tx.touched.add((QUEUE, organization_id))
    return await load_holdout(tx, organization_id)


async def is_holdout_being_drawn(tx: Tx, organization_id: UUID) -> bool:
    """Whether a campaign that starts now would find the groups of the last quarter."""
    row = await queries.find_holdout(tx, organization_id)
    return row is not None and row.percent > 0 and row.due_at is not None and row.due_at <= tx.now
