"""Read, expire and erase entries of the request log (API responses)."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.kit.keyset import PageRequest, PageRows
from regulars.request_log import model, queries
from regulars.work.personal import ErasedPeople, PersonalData

COUNTED_HOURS = 24
ENTRIES_PER_TRANSACTION_MAX = 5_000
_STATUS_MIN = {
    model.ResponseFilter.ALL: 0,
    model.ResponseFilter.REFUSED: model.REFUSED_STATUS_MIN,
    model.ResponseFilter.FAILED: model.FAILED_STATUS_MIN,
}


async def list_responses(
    tx: Tx,
    organization_id: UUID,
    page: PageRequest,
    *,
    kind: model.ResponseFilter = model.ResponseFilter.ALL,
    api_key_id: UUID | None = None,
) -> PageRows[model.RequestLogEntry]:
    """List the responses to one API key or to all keys, newest first."""
    return await queries.list_entries(tx, organization_id, page, api_key_id=api_key_id, status_min=_STATUS_MIN[kind])


async def find_response(tx: Tx, organization_id: UUID, entry_id: UUID) -> model.RequestLogEntry | None:
    return await queries.find_entry(tx, organization_id, entry_id)


async def count_responses(tx: Tx, organization_id: UUID) -> dict[UUID, model.Counts]:
    """Count the responses to each API key in the last 24 hours, the current hour included."""
    return await queries.sum_counts_by_key(tx, organization_id, since=tx.now - timedelta(hours=COUNTED_HOURS))


async def sweep(database: Database, organization_id: UUID) -> int:
    """Delete entries and counts whose retention has ended; return the number of entries."""
    swept = 0
    while True:
        async with database.transaction() as tx:
            until = tx.now - model.RETENTION
            deleted = await queries.delete_entries_before(
                tx, organization_id, until=until, rows_max=ENTRIES_PER_TRANSACTION_MAX
            )
            await queries.delete_counts_before(tx, organization_id, until=until)
        swept += deleted
        if deleted < ENTRIES_PER_TRANSACTION_MAX:
            return swept


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Delete the entries whose path names these customers."""
    await queries.delete_entries_of_profiles(tx, organization_id, people.profile_ids)


PERSONAL_DATA: Final = PersonalData(
    columns=("request_log.profile_id", "request_log.problem"),
    not_personal={
        "request_log.target": "a path in which customers are named by canonical id only",
        "request_log.method": "a method of HTTP",
        "request_log.code": "the code of a refusal",
        "request_log.request_id": "made by us, or by the caller to trace a request",
        "request_counts": "counts",
    },
    erase=_erase,
)
