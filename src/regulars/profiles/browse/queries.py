"""The statements behind the list of customers; each reads a stretch of an index, whatever the organization's size."""

from typing import NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.db import Tx
from regulars.profiles.model import Profile
from regulars.profiles.queries import profile_in

# Behind every character, so that a beginning and this close a stretch.
_LAST_CHARACTER = "\U0010ffff"


class NamePosition(NamedTuple):
    """A place in the list by name."""

    folded: str
    id: UUID


async def fold_name(tx: Tx, text: str) -> str:
    """The text as names are indexed: whoever asks and whoever is found are folded by the same function."""
    rows = await tx.fetch("SELECT folded_name(%s, NULL)", (text,))
    return str(rows[0][0])


async def list_profiles_by_name(
    tx: Tx, organization_id: UUID, beginning: str, *, beyond: NamePosition | None, is_backward: bool, limit: int
) -> list[tuple[str, Profile]]:
    """Profiles of which either name, or both in either order, begin so, from a position on; each once.

    The walk has one beginning and one end. With two conditions for its beginning PostgreSQL takes the wider one,
    and reads all the names before.
    """
    end = beginning + _LAST_CHARACTER
    if is_backward:
        folded, within, bound = end if beyond is None else min(beyond.folded, end), SQL(">="), beginning
    else:
        folded, within, bound = beginning if beyond is None else max(beyond.folded, beginning), SQL("<"), end
    rows = await tx.fetch(
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
                      AND (folded_name(first_name, last_name) COLLATE "C", id) {beyond} (%(folded)s, %(id)s)
                      AND folded_name(first_name, last_name) COLLATE "C" {within} %(bound)s
                    ORDER BY folded_name(first_name, last_name) COLLATE "C" {order}, id {order}
                    LIMIT %(limit)s
                )
                UNION ALL
                (
                    SELECT folded_name(last_name, first_name) COLLATE "C" AS folded, id, external_id, phone_number,
                           phone_reachable, first_name, last_name, attributes, created_at, updated_at
                    FROM profiles
                    WHERE organization_id = %(organization_id)s
                      AND first_name IS NOT NULL AND last_name IS NOT NULL
                      AND (folded_name(last_name, first_name) COLLATE "C", id) {beyond} (%(folded)s, %(id)s)
                      AND folded_name(last_name, first_name) COLLATE "C" {within} %(bound)s
                      -- Who is found by the first name is in the other half already.
                      AND NOT starts_with(folded_name(first_name, last_name), %(beginning)s)
                    ORDER BY folded_name(last_name, first_name) COLLATE "C" {order}, id {order}
                    LIMIT %(limit)s
                )
            ) AS found
            ORDER BY folded {order}, id {order}
            LIMIT %(limit)s
            """
        ).format(beyond=SQL("<" if is_backward else ">"), within=within, order=SQL("DESC" if is_backward else "ASC")),
        {
            "organization_id": organization_id,
            "beginning": beginning,
            "bound": bound,
            "folded": folded,
            "id": UUID(int=0) if beyond is None else beyond.id,
            "limit": limit,
        },
    )
    return [(row[0], profile_in(row[1:])) for row in rows]


async def list_profiles_by_age(
    tx: Tx, organization_id: UUID, *, beyond: UUID | None, is_backward: bool, limit: int
) -> list[Profile]:
    """Profiles from a position on, the newest first; backward, those before it, from there on."""
    condition = SQL("") if beyond is None else SQL("AND id {} %(beyond)s").format(SQL(">" if is_backward else "<"))
    rows = await tx.fetch(
        SQL(
            """
            SELECT id, external_id, phone_number, phone_reachable, first_name, last_name, attributes, created_at,
                   updated_at
            FROM profiles
            WHERE organization_id = %(organization_id)s {condition}
            ORDER BY id {order}
            LIMIT %(limit)s
            """
        ).format(condition=condition, order=SQL("ASC" if is_backward else "DESC")),
        {"organization_id": organization_id, "beyond": beyond, "limit": limit},
    )
    return [profile_in(row) for row in rows]


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
