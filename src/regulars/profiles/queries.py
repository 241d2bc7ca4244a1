"""The SQL of profiles."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.kit.arrays import Booleans, Jsonbs, Texts
from regulars.kit.columns import Columns, names_of
from regulars.kit.db import Tx
from regulars.kit.referenced_table import ReferencedTable, ReferenceLookup, select_each
from regulars.profiles.model import Profile, ProfileRef

PROFILES: Final = ReferencedTable(
    "profiles",
    names_of(Profile),
    Profile,
    changeable=Columns(
        phone_number=Texts, phone_reachable=Booleans, first_name=Texts, last_name=Texts, attributes=Jsonbs
    ),
)
REFS: Final = ReferenceLookup(select_each("profiles", "id, external_id"), ProfileRef)


async def find_existing(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    existing = await tx.fetch_column(
        "SELECT id FROM profiles WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, list(ids))
    )
    return set(existing)


async def lock_free_profiles(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Lock those profiles that no other transaction has locked; returns their ids."""
    locked = await tx.fetch_column(
        """
        SELECT id FROM profiles
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
        """,
        (organization_id, list(ids)),
    )
    return set(locked)


async def delete_profiles(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM profiles WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, list(ids))
    )
