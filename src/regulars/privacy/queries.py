"""The SQL of erasures, and of replaying them after a backup is restored."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from regulars.kit.arrays import Blobs
from regulars.kit.db import Tx
from regulars.privacy.erasure_log import Erasure


async def insert_erasure_if_new(tx: Tx, organization_id: UUID, erasure: Erasure) -> None:
    await tx.execute(
        "INSERT INTO erasures (organization_id, profile_id, number_hashes, erased_at) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (organization_id, erasure.profile_id, Blobs(erasure.number_hashes), erasure.erased_at),
    )


async def is_erased(tx: Tx, organization_id: UUID, profile_id: UUID) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM erasures WHERE organization_id = %s AND profile_id = %s", (organization_id, profile_id)
    )
    return bool(rows)


async def delete_erasures_in_backup(tx: Tx, organization_id: UUID) -> int:
    """Delete the erasures to replay that the backup has already; returns how many."""
    return await tx.execute(
        "DELETE FROM erasures_to_replay r USING erasures e"
        " WHERE r.organization_id = %s AND e.organization_id = %s AND e.profile_id = r.profile_id",
        (organization_id, organization_id),
    )


async def list_erasures_to_replay(tx: Tx, *, limit: int) -> list[Erasure]:
    """The oldest erasures that are to be replayed after a restore, of all organizations. Nothing is locked here."""
    rows = await tx.fetch(
        "SELECT organization_id, profile_id, number_hashes, erased_at, is_certain FROM erasures_to_replay"
        " ORDER BY erased_at, organization_id, profile_id LIMIT %s",
        (limit,),
    )
    return [Erasure(row[0], row[1], tuple(row[2]), row[3], row[4]) for row in rows]


async def delete_erasure_to_replay(tx: Tx, organization_id: UUID, profile_id: UUID) -> bool:
    """Returns whether the row still existed: another server may have replayed the erasure while this one waited for the
    lock."""
    deleted = await tx.execute(
        "DELETE FROM erasures_to_replay WHERE organization_id = %s AND profile_id = %s", (organization_id, profile_id)
    )
    return deleted == 1


class RestoreMarker(NamedTuple):
    """The row that exists while the work after a restore is not finished: which API keys must be revoked again."""

    revoked_keys: Sequence[UUID]
    revokes_all_keys: bool


async def find_marker(tx: Tx) -> RestoreMarker | None:
    return await tx.fetch_first(RestoreMarker, "SELECT {columns} FROM restore_marker")


async def delete_marker(tx: Tx) -> None:
    """Record that the work after the restore is finished."""
    await tx.execute("DELETE FROM restore_marker")


async def has_table(tx: Tx, name: str) -> bool:
    """Whether the table exists: a backup of an older release may not have it."""
    return await tx.fetch("SELECT to_regclass(%s) IS NOT NULL", (name,)) == [(True,)]
