"""The SQL of profiles.

Several ids are looked up one by one, through LATERAL. With `= ANY`, the planner may read all rows of the organization:
before the first ANALYZE it expects few rows, and it caches that plan.
"""

from collections.abc import Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

import msgspec

from regulars.kit.arrays import Booleans, Ids, Jsonbs, Texts, Timestamps
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx
from regulars.profiles.model import Profile, ProfileRef

_NAMES: Final = names_of(Profile)
# Locks profiles in the order of their ids. The functions below append the lock mode and the closing bracket.
_LOCK = fill(
    """
SELECT {locked}
FROM (
    SELECT (
        SELECT id FROM profiles WHERE organization_id = %(organization_id)s AND external_id = named.external_id
    ) AS id
    FROM unnest(%(external_ids)s::text[]) AS named (external_id)
    UNION
    SELECT id FROM unnest(%(ids)s::uuid[]) AS requested_ids (id)
    ORDER BY id
) AS requested
CROSS JOIN LATERAL (
    SELECT {names}
    FROM profiles
    WHERE organization_id = %(organization_id)s AND id = requested.id
""",
    names=_NAMES,
    locked=names_of(Profile, "locked"),
)


# Looks up each key of a list; `{names}` are the selected columns.
_EACH: LiteralString = """
SELECT found.* FROM unnest(%s::{type}[]) AS requested (key)
CROSS JOIN LATERAL (SELECT {names} FROM profiles WHERE organization_id = %s AND {key} = requested.key LIMIT 1) AS found
"""
_EACH_BY_ID: Final = fill(_EACH, type="uuid", key="id")
_EACH_BY_EXTERNAL_ID: Final = fill(_EACH, type="text", key="external_id")
_REFS_BY_ID: Final = fill(_EACH_BY_ID, names="id, external_id")
_REFS_BY_EXTERNAL_ID: Final = fill(_EACH_BY_EXTERNAL_ID, names="id, external_id")
_BY_ID: Final = fill(_EACH_BY_ID, names=_NAMES)
_BY_EXTERNAL_ID: Final = fill(_EACH_BY_EXTERNAL_ID, names=_NAMES)


async def find_profile_refs_by_id(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[ProfileRef]:
    return [ProfileRef(*row) for row in await tx.fetch(_REFS_BY_ID, (list(ids), organization_id))]


async def find_profile_refs_by_external_id(
    tx: Tx, organization_id: UUID, external_ids: Sequence[str]
) -> list[ProfileRef]:
    return [ProfileRef(*row) for row in await tx.fetch(_REFS_BY_EXTERNAL_ID, (list(external_ids), organization_id))]


async def find_profiles_by_id(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[Profile]:
    return await tx.fetch_all(Profile, _BY_ID, (Ids(ids), organization_id))


async def find_profiles_by_external_id(tx: Tx, organization_id: UUID, external_ids: Sequence[str]) -> list[Profile]:
    return await tx.fetch_all(Profile, _BY_EXTERNAL_ID, (list(external_ids), organization_id))


async def lock_profiles_to_change(
    tx: Tx, organization_id: UUID, *, ids: Sequence[UUID], external_ids: Sequence[str]
) -> list[Profile]:
    # NO KEY UPDATE: the ids do not change, so transactions that only refer to the profile need not wait.
    parameters = _lock_parameters(organization_id, ids, external_ids)
    return await tx.fetch_all(Profile, _LOCK + "FOR NO KEY UPDATE) AS locked", parameters)


async def lock_profiles_to_delete(
    tx: Tx, organization_id: UUID, *, ids: Sequence[UUID], external_ids: Sequence[str]
) -> list[Profile]:
    parameters = _lock_parameters(organization_id, ids, external_ids)
    return await tx.fetch_all(Profile, _LOCK + "FOR UPDATE) AS locked", parameters)


async def find_existing(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    rows = await tx.fetch(
        "SELECT id FROM profiles WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, list(ids))
    )
    return {row[0] for row in rows}


async def lock_free_profiles(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Lock those profiles that no other transaction has locked; returns their ids."""
    rows = await tx.fetch(
        """
        SELECT id FROM profiles
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
        """,
        (organization_id, list(ids)),
    )
    return {row[0] for row in rows}


def _lock_parameters(organization_id: UUID, ids: Sequence[UUID], external_ids: Sequence[str]) -> dict[str, Any]:
    return {"organization_id": organization_id, "ids": list(ids), "external_ids": list(external_ids)}


_CHANGEABLE: Final = Columns(
    phone_number=Texts, phone_reachable=Booleans, first_name=Texts, last_name=Texts, attributes=Jsonbs
)
_INSERT: Final = (Columns(id=Ids, external_id=Texts) | _CHANGEABLE).write(
    """
    INSERT INTO profiles (organization_id, created_at, updated_at, {columns})
    SELECT %(organization_id)s, %(now)s, %(now)s, it.* FROM {records}
    ORDER BY it.external_id
    ON CONFLICT (organization_id, external_id) DO NOTHING
    RETURNING id
    """
)
_UPDATE: Final = (Columns(id=Ids, updated_at=Timestamps) | _CHANGEABLE).write(
    """
    UPDATE profiles SET updated_at = it.updated_at, {changed} FROM {records}
    WHERE profiles.organization_id = %(organization_id)s AND profiles.id = it.id
    """,
    changed=_CHANGEABLE.assign("it"),
)


async def insert_profiles_if_new(tx: Tx, organization_id: UUID, profiles: Sequence[Profile]) -> set[UUID]:
    """Insert the profiles that do not exist yet, in the order of their external_id; returns the inserted ids."""
    values = {"organization_id": organization_id, "now": tx.now, "records": _records(profiles)}
    return {row[0] for row in await tx.fetch(_INSERT, values)}


async def update_profiles(tx: Tx, organization_id: UUID, profiles: Sequence[Profile]) -> None:
    await tx.execute(_UPDATE, {"organization_id": organization_id, "records": _records(profiles)})


async def delete_profiles(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM profiles WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, list(ids))
    )


def _records(profiles: Sequence[Profile]) -> str:
    return msgspec.json.encode(profiles).decode()
