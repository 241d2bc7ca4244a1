"""Texts that go: a person's, with the person; everybody's, after the time they are kept. And what stays of them."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.keep import queries


async def forget_texts(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> list[UUID]:
    gone = await queries.delete_texts_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    await queries.blank_texts_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    return gone


async def forget_old_texts(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> list[UUID]:
    return await queries.delete_old_texts(tx, organization_id, before=before, limit=limit)


async def add_totals(tx: Tx, organization_id: UUID, counts: Sequence[tuple[str, int, int]]) -> None:
    """State, texts and parts of what just changed."""
    await queries.add_totals(tx, organization_id, counts)
