"""The SQL with which the analysis process reads columnar data, which is stored in runs (immutable chunks).

One statement reads the state and the list of runs, so that they are consistent; blobs are transferred in binary.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from regulars.columns.model import Run
from regulars.kit import arrays
from regulars.kit.connection import Prepared
from regulars.kit.db import Tx


class Snapshot(NamedTuple):
    """The state of the columns (see `columns.model.State`) and the list of their live runs."""

    # The number of the build.
    epoch: int
    state: str
    # The version of the storage format.
    format: int
    # The number that the next new customer gets.
    next_number: int
    # The number of the last run with changed customers that was merged.
    last_merged_patch: int
    # How often a consent changed.
    consents: int
    # The time of the oldest erasure that is not purged yet.
    erased_since: datetime | None
    runs: list[Run]


_runs = msgspec.json.Decoder(list[tuple[int, str, int, int, int, int, int | None, int | None]])


async def find_snapshot(tx: Tx, organization_id: UUID) -> Snapshot | None:
    rows = await tx.fetch(
        """
        SELECT epoch, state, format, next_number, folded_to, consents, erased_since,
               (
                   SELECT COALESCE(json_agg(json_build_array(
                       runs.id, runs.kind, runs.level, runs.ordinal, runs.rows, runs.bytes, runs.first_s, runs.last_s
                   ) ORDER BY runs.ordinal, runs.id), '[]')::text
                   FROM segment_runs AS runs
                   WHERE runs.organization_id = %(organization_id)s AND runs.epoch = segment_columns.epoch
                     AND runs.is_live
               )
        FROM segment_columns WHERE organization_id = %(organization_id)s
        """,
        {"organization_id": organization_id},
    )
    if not rows:
        return None
    *fields, runs = rows[0]
    return Snapshot._make([*fields, [Run(*run) for run in _runs.decode(runs)]])


_FIND_DO_NOT_CONTACT = Prepared(
    b"forbidden_numbers",
    """
    SELECT string_agg(substring(number_hash FOR 8), ''::bytea)
    FROM subscriptions
    WHERE organization_id = $1::uuid AND status = 'UNSUBSCRIBED' AND (phone_number IS NULL OR consented_at IS NULL)
    """,
)


async def find_do_not_contact_hashes(tx: Tx, organization_id: UUID) -> bytes:
    """The first eight bytes of the hash of each do-not-contact number: withdrawn, and no opt-in ever took effect."""
    [hashes] = await tx.connection.fetch_row(_FIND_DO_NOT_CONTACT, [organization_id.bytes])
    return bytes(hashes)


_FIND_BLOBS = Prepared(
    b"segment_blobs",
    """
    SELECT run_id, part, content FROM segment_blobs
    WHERE organization_id = $1::uuid AND epoch = $2::integer AND run_id = ANY ($3::bigint[])
      AND part = ANY ($4::text[])
    """,
)
_FIND_ALL_BLOBS = Prepared(
    b"all_segment_blobs",
    """
    SELECT run_id, part, content FROM segment_blobs
    WHERE organization_id = $1::uuid AND epoch = $2::integer AND run_id = ANY ($3::bigint[])
    """,
)


async def find_blobs(
    tx: Tx, organization_id: UUID, epoch: int, run_ids: Sequence[int], parts: Sequence[str] | None
) -> dict[tuple[int, str], bytes]:
    """Find the named parts of these runs, or all parts; a part that a run lacks is absent."""
    parameters: list[Any] = [organization_id.bytes, epoch.to_bytes(4, "big"), arrays.Bigints(run_ids).payload]
    if parts is not None:
        parameters.append(arrays.Texts(parts).payload)
    result = await tx.connection.run(_FIND_ALL_BLOBS if parts is None else _FIND_BLOBS, parameters)
    blobs = {}
    for row in range(result.ntuples):
        run_id = arrays.read_bigint(bytes(result.get_value(row, 0) or b""))
        part = bytes(result.get_value(row, 1) or b"").decode()
        blobs[run_id, part] = bytes(result.get_value(row, 2) or b"")
    return blobs


async def find_erased_since(tx: Tx, organization_id: UUID, epoch: int) -> tuple[datetime | None] | None:
    """The time since which erased customers wait to be purged from the blobs of a build (epoch), in a tuple; None if
    the build is gone."""
    rows = await tx.fetch(
        "SELECT erased_since FROM segment_columns WHERE organization_id = %s AND epoch = %s AND state <> 'ended'",
        (organization_id, epoch),
    )
    return (rows[0][0],) if rows else None


async def list_unfinished(tx: Tx, organization_id: UUID, epoch: int) -> list[int]:
    """The ids of runs that a process wrote and did not make live."""
    return await tx.fetch_column(
        "SELECT id FROM segment_runs WHERE organization_id = %s AND epoch = %s AND NOT is_live",
        (organization_id, epoch),
    )
