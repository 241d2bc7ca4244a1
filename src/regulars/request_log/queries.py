"""The SQL of the request log: entries of API responses, and counts per hour and API key."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.kit.arrays import Bigints, Ids, JsonTexts, Labels, Texts, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.request_log.model import Counts, RequestLogEntry

_ENTRIES: Final = Columns(
    id=Ids, api_key_id=Ids, answered_at=Timestamps, method=Labels, target=Texts, status=Bigints, code=Labels,
    duration_us=Bigints, request_id=Texts, profile_id=Ids, problem=JsonTexts,
)  # fmt: skip
_INSERT_ENTRIES: Final = _ENTRIES.write(
    "INSERT INTO request_log (organization_id, {columns}) SELECT %(organization_id)s, it.* FROM {rows}"
)


async def insert_entries(tx: Tx, organization_id: UUID, entries: Sequence[RequestLogEntry]) -> None:
    await tx.execute(_INSERT_ENTRIES, {"organization_id": organization_id, **_ENTRIES.of(entries)})


_COUNTS: Final = Columns(api_key_id=Ids, answers=Bigints, refusals=Bigints)
_ADD_COUNTS: Final = _COUNTS.write(
    """
    INSERT INTO request_counts (organization_id, hour, {columns})
    SELECT %(organization_id)s, %(hour)s, it.* FROM {rows}
    ON CONFLICT (organization_id, hour, api_key_id) DO UPDATE
    SET answers = request_counts.answers + excluded.answers, refusals = request_counts.refusals + excluded.refusals
    """
)


async def add_counts(tx: Tx, organization_id: UUID, counts: Mapping[UUID, Counts], *, hour: datetime) -> None:
    """Add to the counts of the hour, in the order of API keys, so that two processes do not deadlock."""
    rows = [(api_key_id, count.responses, count.refusals) for api_key_id, count in sorted(counts.items())]
    await tx.execute(_ADD_COUNTS, {"organization_id": organization_id, "hour": hour, **_COUNTS.of_tuples(rows)})


async def count_refusals(tx: Tx, organization_id: UUID, *, since: datetime) -> int:
    return await tx.fetch_count(
        "SELECT sum(refusals)::bigint FROM request_counts WHERE organization_id = %s AND hour > %s",
        (organization_id, since),
    )


async def delete_all_but_last(tx: Tx, organization_id: UUID, api_key_id: UUID, *, limit: int) -> None:
    await tx.execute(
        """
        DELETE FROM request_log
        WHERE organization_id = %(organization_id)s AND api_key_id = %(api_key_id)s AND id <= (
            SELECT id FROM request_log
            WHERE organization_id = %(organization_id)s AND api_key_id = %(api_key_id)s
            ORDER BY id DESC OFFSET %(limit)s LIMIT 1
        )
        """,
        {"organization_id": organization_id, "api_key_id": api_key_id, "limit": limit},
    )


async def delete_entries_before(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    """Delete the oldest entries up to this time; return how many."""
    return await tx.execute(
        """
        DELETE FROM request_log
        WHERE organization_id = %(organization_id)s AND answered_at < %(before)s AND id = ANY (ARRAY(
            SELECT id FROM request_log WHERE organization_id = %(organization_id)s
            ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
        ))
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )


async def delete_counts_before(tx: Tx, organization_id: UUID, *, before: datetime) -> None:
    await tx.execute(
        """
        DELETE FROM request_counts WHERE organization_id = %(organization_id)s AND ctid = ANY (ARRAY(
            SELECT ctid FROM request_counts WHERE organization_id = %(organization_id)s AND hour < %(before)s
            FOR UPDATE SKIP LOCKED
        ))
        """,
        {"organization_id": organization_id, "before": before},
    )
