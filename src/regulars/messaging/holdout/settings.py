"""Read and change the global holdout of an organization."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.kit.db import Tx
from regulars.messaging.facts import HoldoutQuarterChanged
from regulars.messaging.holdout import queries
from regulars.messaging.holdout.draw import QUEUE, load_zone
from regulars.messaging.holdout.model import QuarterRow, check_percent
from regulars.work import outbox


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
        await _stop(tx, organization_id)
    tx.touched.add((QUEUE, organization_id))
    return await load_holdout(tx, organization_id)


async def _stop(tx: Tx, organization_id: UUID) -> None:
    """What was measured until yesterday stays measured."""
    today = day_of(tx.now, await load_zone(tx, organization_id))
    ended = [it for it in await queries.stop_quarters(tx, organization_id) if it.drawn_at and it.ends_on >= today]
    last_day = today - timedelta(days=1)
    facts = [HoldoutQuarterChanged(it.quarter, it.percent, it.begins_on, last_day) for it in ended]
    await outbox.record(tx, organization_id, facts)


async def is_holdout_being_drawn(tx: Tx, organization_id: UUID) -> bool:
    """Whether a campaign that starts now would find the groups of the last quarter."""
    row = await queries.find_holdout(tx, organization_id)
    return row is not None and row.percent > 0 and row.due_at is not None and row.due_at <= tx.now
