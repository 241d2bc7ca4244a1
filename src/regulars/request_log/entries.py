"""Read, expire and erase entries of the request log (API responses)."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows
from regulars.request_log import model, queries
from regulars.work.personal import ErasedPeople, PersonalData
from regulars.work.queue import delete_in_batches

COUNTED_HOURS = 24
_STATUS_MIN = {
    model.ResponseFilter.ALL: 0,
    model.ResponseFilter.REFUSED: model.REFUSED_STATUS_MIN,
    model.ResponseFilter.FAILED: model.FAILED_STATUS_MIN,
}
_NEWEST: Final = Keyset({"id": UUID}, is_descending=True)
_FILTERS: Final = {"api_key_id": "api_key_id = %(api_key_id)s"}
_SELECT_ENTRIES: Final = """
SELECT id, api_key_id, answered_at, method, target, status, code, duration_us, request_id, profile_id, problem::text
FROM request_log WHERE organization_id = %(organization_id)s
"""


async def list_responses(
    tx: Tx,
    organization_id: UUID,
    page: PageRequest,
    *,
    kind: model.ResponseFilter = model.ResponseFilter.ALL,
    api_key_id: UUID | None = None,
) -> PageRows[model.RequestLogEntry]:
    """List the responses to one API key or to all keys, newest first."""
    return await _NEWEST.fetch(
        tx,
        _SELECT_ENTRIES
        + "AND status >= %(status_min)s {and_filters} {and_after_position} ORDER BY {ordered} LIMIT %(limit)s",
        page,
        {"organization_id": organization_id, "api_key_id": api_key_id, "status_min": _STATUS_MIN[kind]},
        make=model.RequestLogEntry,
        filters=_FILTERS,
    )


async def find_response(tx: Tx, organization_id: UUID, entry_id: UUID) -> model.RequestLogEntry | None:
    rows = await tx.fetch(_SELECT_ENTRIES + "AND id = %(id)s", {"organization_id": organization_id, "id": entry_id})
    return model.RequestLogEntry(*rows[0]) if rows else None


async def count_responses(tx: Tx, organization_id: UUID) -> dict[UUID, model.Counts]:
    """Count the responses to each API key in the last 24 hours, the current hour included."""
    rows = await tx.fetch(
        """
        SELECT api_key_id, sum(answers)::bigint, sum(refusals)::bigint
        FROM request_counts WHERE organization_id = %s AND hour > %s GROUP BY api_key_id
        """,
        (organization_id, tx.now - timedelta(hours=COUNTED_HOURS)),
    )
    return {api_key_id: model.Counts(responses, refusals) for api_key_id, responses, refusals in rows}


async def sweep(database: Database, organization_id: UUID) -> int:
    """Delete entries and counts whose retention has ended; return the number of entries."""
    return await delete_in_batches(database, organization_id, _delete_old, retention=model.RETENTION)


async def _delete_old(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    await queries.delete_counts_before(tx, organization_id, before=before)
    return await queries.delete_entries_before(tx, organization_id, before=before, limit=limit)


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Delete the entries whose path names these customers."""
    await tx.execute(
        "DELETE FROM request_log WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])",
        (organization_id, list(people.profile_ids)),
    )


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
