"""Look up the records of a batch, and store those of the writes that ran."""

from collections.abc import Collection, Sequence
from uuid import UUID

from regulars.idempotency import queries
from regulars.idempotency.model import RETENTION, Record
from regulars.kit.db import Tx


async def recall(tx: Tx, organization_id: UUID, keys: Collection[str]) -> dict[str, Record]:
    """The records that still hold. Those that expired but were not swept yet make room for their successors."""
    if not keys:
        return {}
    records = await queries.find_records(tx, organization_id, keys)
    expired = [record.key for record in records if record.is_expired(tx.now)]
    if expired:
        await queries.delete_records(tx, organization_id, expired, until=tx.now - RETENTION)
    return {record.key: record for record in records if not record.is_expired(tx.now)}


async def store(tx: Tx, organization_id: UUID, records: Sequence[Record]) -> None:
    """Insert in key order, so that two batches that share keys cannot deadlock on them."""
    if records:
        await queries.insert_records(tx, organization_id, sorted(records, key=lambda record: record.key))
