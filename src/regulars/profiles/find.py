"""Find profiles by their ids or phone numbers, list them, and lock them."""

from collections.abc import Collection, Sequence
from typing import Final, LiteralString
from uuid import UUID

from regulars.kit.changes import ChangePosition
from regulars.kit.db import Tx
from regulars.kit.ids import Reference
from regulars.kit.keyset import reading_in_index_order
from regulars.profiles import queries
from regulars.profiles.model import Profile, ProfileRef

# Smaller than every UUIDv7: a list without a cursor begins after this id.
_BEFORE_ALL: Final = UUID(int=0)
# The index has the first 64 characters.
_OF_NUMBER: Final = "left(phone_number, 64) = left(%(phone_number)s::text, 64) AND phone_number = %(phone_number)s"
_LIST: Final = "SELECT {columns} FROM profiles WHERE organization_id = %(organization_id)s AND "


async def find_profiles(
    tx: Tx, organization_id: UUID, references: Collection[Reference]
) -> dict[Reference, ProfileRef]:
    """Return the profiles that the references name; a reference without a profile is not in the result."""
    return await queries.REFS.find(tx, organization_id, references)


async def find_profiles_by_phone(
    tx: Tx, organization_id: UUID, numbers: Collection[str]
) -> dict[str, list[ProfileRef]]:
    """Return the profiles with these E.164 numbers, oldest first; a number without a profile is not in the result."""
    profiles: dict[str, list[ProfileRef]] = {}
    if numbers:
        rows = await tx.fetch(
            """
            SELECT requested.number, found.id, found.external_id
            FROM unnest(%s::text[]) AS requested (number)
            CROSS JOIN LATERAL (
                SELECT id, external_id
                FROM profiles
                -- The index has the first 64 characters; a number in E.164 is shorter. OFFSET keeps one look-up per
                -- number.
                WHERE organization_id = %s AND left(phone_number, 64) = requested.number AND phone_reachable
                OFFSET 0
            ) AS found
            ORDER BY found.id
            """,
            (sorted(set(numbers)), organization_id),
        )
        for number, identifier, external_id in rows:
            profiles.setdefault(number, []).append(ProfileRef(identifier, external_id))
    return profiles


async def lock_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> set[UUID]:
    """Lock the profiles against deletion until the transaction ends, in the order of their ids; returns those that
    still exist.

    A transaction calls this before it writes a profile's id into another table: an erasure then waits, and finds the
    row that was written. Other transactions may refer to the same profile, or change its fields, at the same time.
    """
    if not ids:
        return set()
    locked = await tx.fetch_column(
        """
        SELECT locked.id
        FROM (SELECT id FROM unnest(%s::uuid[]) AS requested_ids (id) ORDER BY id) AS requested
        CROSS JOIN LATERAL (
            SELECT id FROM profiles WHERE organization_id = %s AND id = requested.id FOR KEY SHARE
        ) AS locked
        """,
        (sorted(set(ids)), organization_id),
    )
    return set(locked)


async def try_lock_profiles(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> set[UUID]:
    """Lock the profiles against changes without waiting; returns those that another transaction has locked."""
    existing = await queries.find_existing(tx, organization_id, sorted(set(ids)))
    return existing - await queries.lock_free_profiles(tx, organization_id, sorted(existing))


async def find_profile(tx: Tx, organization_id: UUID, reference: Reference) -> Profile | None:
    return (await read_profiles(tx, organization_id, [reference])).get(reference)


async def read_profiles(tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, Profile]:
    """Like `find_profiles`, but with all fields of the profiles."""
    return await queries.PROFILES.find(tx, organization_id, references)


async def list_profiles(
    tx: Tx,
    organization_id: UUID,
    *,
    external_id: str | None,
    phone_number: str | None,
    after: UUID | None = None,
    since: ChangePosition | None = None,
    limit: int,
) -> list[Profile]:
    """Return the profiles after the id `after`, in the order of creation; with `since`, the profiles that changed since
    then, in the order of their last change."""
    if "\0" in (external_id or "") or "\0" in (phone_number or ""):
        return []
    conditions: list[LiteralString] = []
    if external_id is not None:
        conditions.append("external_id = %(external_id)s")
    if phone_number is not None:
        conditions.append(_OF_NUMBER)
    order: LiteralString = " ORDER BY id LIMIT %(limit)s"
    if since is None:
        conditions.append("id > %(after)s")
    else:
        # All changes before the horizon are committed; a later change may still be invisible.
        conditions.append("(updated_at, id) > (%(time)s, %(id)s) AND updated_at < %(horizon)s")
        order = " ORDER BY updated_at, id LIMIT %(limit)s"
    statement: LiteralString = _LIST + " AND ".join(conditions) + order
    values = {
        **({} if since is None else since._asdict()),
        "organization_id": organization_id,
        "after": after or _BEFORE_ALL,
        "external_id": external_id,
        "phone_number": phone_number,
        "limit": limit,
    }
    if external_id is not None or phone_number is not None:
        # Few profiles, which are sorted.
        return await tx.fetch_all(Profile, statement, values)
    async with reading_in_index_order(tx, is_whole=True):
        return await tx.fetch_all(Profile, statement, values)


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
