"""The statements behind the list of customers; each reads a stretch of an index, whatever the organization's size."""

from typing import Final
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows
from regulars.profiles.model import Profile
from regulars.profiles.queries import profile_in

# Behind every character, so that a beginning and this close a stretch.
_LAST_CHARACTER = "\U0010ffff"


# Either order of the names has an index of its own.
_BY_NAME: Final = Keyset({"folded": str, "id": UUID})
_NEWEST: Final = Keyset({"id": UUID}, is_descending=True)


async def fold_name(tx: Tx, text: str) -> str:
    """The text as names are indexed: whoever asks and whoever is found are folded by the same function."""
    rows = await tx.fetch("SELECT folded_name(%s, NULL)", (text,))
    return str(rows[0][0])


async def list_profiles_by_name(
    tx: Tx, organization_id: UUID, beginning: str, page: PageRequest
) -> PageRows[tuple[str, Profile]]:
    """Profiles of which either name, or both in either order, begin so; each once.

    The walk has one beginning and one end. With two conditions for its beginning PostgreSQL takes the wider one,
    and reads all the names before.
    """
    first, last = beginning, beginning + _LAST_CHARACTER
    if page.is_backward:
        first, last = last, first
    return await _BY_NAME.fetch(
        tx,
        SQL(
            """
            SELECT folded, id, external_id, phone_number, phone_reachable, first_name, last_name, attributes,
                   created_at, updated_at
            FROM (
                (
                    SELECT folded_name(first_name, last_name) COLLATE "C" AS folded, id, external_id, phone_number,
                           phone_reachable, first_name, last_name, attributes, created_at, updated_at
                    FROM profiles
                    WHERE organization_id = %(organization_id)s
                      AND (first_name IS NOT NULL OR last_name IS NOT NULL)
                      AND (folded_name(first_name, last_name) COLLATE "C", id) {than} (%(position_0)s, %(position_1)s)
                      AND folded_name(first_name, last_name) COLLATE "C" {within} %(bound)s
                    ORDER BY folded_name(first_name, last_name) COLLATE "C" {direction}, id {direction}
                    LIMIT %(limit)s
                )
                UNION ALL
                (
                    SELECT folded_name(last_name, first_name) COLLATE "C" AS folded, id, external_id, phone_number,
                           phone_reachable, first_name, last_name, attributes, created_at, updated_at
                    FROM profiles
                    WHERE organization_id = %(organization_id)s
                      AND first_name IS NOT NULL AND last_name IS NOT NULL
                      AND (folded_name(last_name, first_name) COLLATE "C", id) {than} (%(position_0)s, %(position_1)s)
                      AND folded_name(last_name, first_name) COLLATE "C" {within} %(bound)s
                      -- Who is found by the first name is in the other half already.
                      AND NOT starts_with(folded_name(first_name, last_name), %(beginning)s)
                    ORDER BY folded_name(last_name, first_name) COLLATE "C" {direction}, id {direction}
                    LIMIT %(limit)s
                )
            ) AS found
            ORDER BY {ordered}
            LIMIT %(limit)s
            """
        ),
        page if page.position is not None else page._replace(position=(first, str(UUID(int=0)))),
        {"organization_id": organization_id, "beginning": beginning, "bound": last},
        make=lambda folded, *row: (folded, profile_in(row)),
        within=SQL(">=" if page.is_backward else "<"),
    )


async def list_profiles_by_age(tx: Tx, organization_id: UUID, page: PageRequest) -> PageRows[Profile]:
    """The newest first."""
    return await _NEWEST.fetch(
        tx,
        SQL(
            """
            SELECT id, external_id, phone_number, phone_reachable, first_name, last_name, attributes, created_at,
                   updated_at
            FROM profiles
            WHERE organization_id = %(organization_id)s {beyond}
            ORDER BY {ordered}
            LIMIT %(limit)s
            """
        ),
        page,
        {"organization_id": organization_id},
        make=lambda *row: profile_in(row),
    )


async def list_profiles_by_number(tx: Tx, organization_id: UUID, number: str, *, limit: int) -> list[Profile]:
    rows = await tx.fetch(
        """
        SELECT id, external_id, phone_number, phone_reachable, first_name, last_name, attributes, created_at, updated_at
        FROM profiles
        WHERE organization_id = %(organization_id)s
          AND left(phone_number, 64) = left(%(number)s::text, 64) AND phone_number = %(number)s
        ORDER BY id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "number": number, "limit": limit},
    )
    return [profile_in(row) for row in rows]


async def count_profiles(tx: Tx, organization_id: UUID, *, most: int) -> int:
    # In the order of an index: without one the planner may read through the rows of other organizations first.
    rows = await tx.fetch(
        "SELECT count(*) FROM (SELECT FROM profiles WHERE organization_id = %s ORDER BY id LIMIT %s) AS counted",
        (organization_id, most),
    )
    return int(rows[0][0])
