"""Retention of texts: a person's go with the person, all go after 25 months, in batches; the totals stay."""

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.db import Database, Tx
from regulars.messaging.inbox.known import forget_old_replies
from regulars.messaging.keep import queries
from regulars.messaging.model import State
from regulars.messaging.providers.simulator import forget_simulated

# 25 months.
KEPT_FOR: Final = timedelta(days=762)
_BATCH_ROWS: Final = 1_000


async def find_text_ids(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> list[UUID]:
    return await queries.find_texts_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)


async def lock_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """Hold several texts, in the one order in which everybody does."""
    await queries.lock_texts(tx, organization_id, ids)


async def forget_texts(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> list[UUID]:
    """Those of a person: deleted, or blank while they are being sent."""
    found = await queries.find_texts_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    locked = await queries.lock_texts(tx, organization_id, found) if found else []
    leaving = [identifier for identifier, state in locked if state == State.SENDING]
    if leaving:
        await queries.blank_texts(tx, organization_id, leaving)
    await forget_ended(tx, organization_id, [identifier for identifier, state in locked if state != State.SENDING])
    return [identifier for identifier, _ in locked]


async def forget_ended(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    if ids:
        await queries.delete_texts(tx, organization_id, ids)


async def forget_old_texts(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> list[UUID]:
    return await queries.delete_old_texts(tx, organization_id, before=before, limit=limit)


async def read_day(tx: Tx, organization_id: UUID, day: date) -> dict[str, int]:
    """How many texts reached each state on a day of the organization."""
    return {state: texts for state, texts, _ in await queries.list_totals(tx, organization_id, day)}


async def add_totals(tx: Tx, organization_id: UUID, counts: Sequence[tuple[str, int, int]]) -> None:
    """State, texts and parts of what just changed, on the organization's own day."""
    zone = ZoneInfo(await queries.find_zone(tx, organization_id))
    await queries.add_totals(tx, organization_id, tx.now.astimezone(zone).date(), counts)


async def sweep_texts(database: Database, organization_id: UUID) -> None:
    gone = _BATCH_ROWS
    while gone == _BATCH_ROWS:
        async with database.transaction() as tx:
            ids = await forget_old_texts(tx, organization_id, before=tx.now - KEPT_FOR, limit=_BATCH_ROWS)
            await forget_simulated(tx, organization_id, ids)
        gone = len(ids)


async def sweep_replies(database: Database, organization_id: UUID) -> None:
    gone = _BATCH_ROWS
    while gone == _BATCH_ROWS:
        async with database.transaction() as tx:
            gone = await forget_old_replies(tx, organization_id, before=tx.now - KEPT_FOR, limit=_BATCH_ROWS)
