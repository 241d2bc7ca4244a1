"""Texts that go: a person's, with the person; everybody's, after the time they are kept. And what stays of them."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.db import Tx
from regulars.messaging.keep import queries
from regulars.messaging.model import State


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
