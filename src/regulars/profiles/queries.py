"""The SQL of profiles.

Several ids are looked up one by one, through LATERAL. With `= ANY`, the planner may read all rows of the organization:
before the first ANALYZE it expects few rows, and it caches that plan.
"""

from collections.abc import Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

import msgspec
from psycopg.rows import TupleRow

from regulars.kit.arrays import Booleans, Ids, Jsonbs, Texts, Timestamps
from regulars.kit.changes import ChangePosition
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx
from regulars.profiles.model import Profile, ProfileRef

# Smaller than every UUIDv7: a list without a cursor begins after this id.
_BEFORE_ALL = UUID(int=0)
_NAMES: Final = names_of(Profile)
_LIST = fill("SELECT {names} FROM profiles WHERE organization_id = %(organization_id)s AND ", names=_NAMES)
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


def profile_from_row(row: TupleRow) -> Profile:
    return Profile(
        id=row[0],
        external_id=row[1],
        phone_number=row[2],
        phone_reachable=row[3],
        first_name=row[4],
        last_name=row[5],
        attributes=row[6],
        created_at=row[7],
        updated_at=row[8],
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


async def find_profile_refs_by_phone(
    tx: Tx, organization_id: UUID, numbers: Sequence[str]
) -> list[tuple[str, ProfileRef]]:
    rows = await tx.fetch(
        """
        SELECT requested.number, found.id, found.external_id
        FROM unnest(%s::text[]) AS requested (number)
        CROSS JOIN LATERAL (
            SELECT id, external_id
            FROM profiles
            -- The index has the first 64 characters; a number in E.164 is shorter. OFFSET keeps one look-up per number.
            WHERE organization_id = %s AND left(phone_number, 64) = requested.number AND phone_reachable
            OFFSET 0
        ) AS found
        ORDER BY found.id
        """,
        (list(numbers), organization_id),
    )
    return [(number, ProfileRef(identifier, external_id)) for number, identifier, external_id in rows]


async def find_profiles_by_id(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[Profile]:
    return [profile_from_row(row) for row in await tx.fetch(_BY_ID, (Ids(ids), organization_id))]


async def find_profiles_by_external_id(tx: Tx, organization_id: UUID, external_ids: Sequence[str]) -> list[Profile]:
    return [profile_from_row(row) for row in await tx.fetch(_BY_EXTERNAL_ID, (list(external_ids), organization_id))]


async def list_profiles(
    tx: Tx,
    organization_id: UUID,
    *,
    external_id: str | None,
    phone_number: str | None,
    after: UUID | None,
    since: ChangePosition | None,
    limit: int,
) -> list[Profile]:
    conditions: list[LiteralString] = []
    if external_id is not None:
        conditions.append("external_id = %(external_id)s")
    if phone_number is not None:
        conditions.append(
            "left(phone_number, 64) = left(%(phone_number)s::text, 64) AND phone_number = %(phone_number)s"
        )
    order: LiteralString = " ORDER BY id LIMIT %(limit)s"
    if since is None:
        conditions.append("id > %(after)s")
    else:
        # All changes before the horizon are committed; a later change may still be invisible.
        conditions.append("(updated_at, id) > (%(moment)s, %(after)s) AND updated_at < %(horizon)s")
        order = " ORDER BY updated_at, id LIMIT %(limit)s"
    where: LiteralString = " AND ".join(conditions)
    rows = await tx.fetch(
        _LIST + where + order,
        {
            "organization_id": organization_id,
            "after": (after or _BEFORE_ALL) if since is None else since.id,
            "moment": None if since is None else since.time,
            "horizon": None if since is None else since.horizon,
            "external_id": external_id,
            "phone_number": phone_number,
            "limit": limit,
        },
    )
    return [profile_from_row(row) for row in rows]


async def lock_against_deletion(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Lock profiles against deletion, in the order of the ids; other transactions may still change their fields."""
    rows = await tx.fetch(
        """
        SELECT locked.id
        FROM (SELECT id FROM unnest(%s::uuid[]) AS requested_ids (id) ORDER BY id) AS requested
        CROSS JOIN LATERAL (
            SELECT id FROM profiles WHERE organization_id = %s AND id = requested.id FOR KEY SHARE
        ) AS locked
        """,
        (list(ids), organization_id),
    )
    return {row[0] for row in rows}


async def lock_profiles_to_change(
    tx: Tx, organization_id: UUID, *, ids: Sequence[UUID], external_ids: Sequence[str]
) -> list[Profile]:
    # NO KEY UPDATE: the ids do not change, so transactions that only refer to the profile need not wait.
    rows = await tx.fetch(_LOCK + "FOR NO KEY UPDATE) AS locked", _lock_parameters(organization_id, ids, external_ids))
    return [profile_from_row(row) for row in rows]


async def lock_profiles_to_delete(
    tx: Tx, organization_id: UUID, *, ids: Sequence[UUID], external_ids: Sequence[str]
) -> list[Profile]:
    rows = await tx.fetch(_LOCK + "FOR UPDATE) AS locked", _lock_parameters(organization_id, ids, external_ids))
    return [profile_from_row(row) for row in rows]


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


async def find_values_in_use(tx: Tx, organization_id: UUID, values: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the attributes, as (key, value), that at least one profile has; each scan ends at the first profile."""
    rows = await tx.fetch(
        """
        SELECT it.key, it.value
        FROM unnest(%(keys)s::text[], %(values)s::text[]) AS it (key, value)
        CROSS JOIN LATERAL (
            SELECT 1 FROM profiles
            WHERE organization_id = %(organization_id)s AND attributes ->> it.key = it.value
            LIMIT 1
        ) AS used
        """,
        {
            "organization_id": organization_id,
            "keys": [key for key, _ in values],
            "values": [value for _, value in values],
        },
    )
    return {(row[0], row[1]) for row in rows}
