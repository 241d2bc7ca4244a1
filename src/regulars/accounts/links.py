"""One-time links: an invitation, a new password, the first owner. No email is sent; the maker passes the link on.

If a member made a link, it stores that member as its maker, and the organization: `link_use` checks both again when the
link is used. A link of the operator has no maker, and a password link of the operator has no organization.

A link is ended by setting its expiry to its creation time. So it has expired for every transaction, even for one that
began before the change.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from psycopg.rows import TupleRow

from regulars.accounts.errors import LinkUnusable
from regulars.accounts.model import hash_token, new_token
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid
from regulars.web.access import Role

LINK_LIFE: Final = timedelta(hours=48)
FIRST_OWNER_LIFE: Final = timedelta(hours=24)
# Expired links are deleted after this time, when the next link is made.
STALE_AFTER: Final = timedelta(days=30)
LINK_PATH: Final = "/link"
_SELECT: Final = (
    "SELECT l.id, l.purpose, l.email, l.organization_id, o.name, l.role, l.created_by, u.email,"
    " l.created_at, l.expires_at"
    " FROM sign_in_links l LEFT JOIN organizations o ON o.id = l.organization_id"
    " LEFT JOIN users u ON u.id = l.created_by"
)
_END: Final = "UPDATE sign_in_links SET expires_at = created_at WHERE used_at IS NULL AND expires_at > %s"


class Purpose(StrEnum):
    INVITATION = "invitation"
    PASSWORD = "password"  # noqa: S105  # what the link is for
    FIRST_OWNER = "first_owner"


@dataclass(frozen=True, slots=True)
class Link:
    id: UUID
    purpose: Purpose
    email: str | None
    organization_id: UUID | None
    organization_name: str | None
    role: Role | None
    # The id and the email address of the member who made the link; None if the operator or the server made it.
    maker_id: UUID | None
    maker: str | None
    created_at: datetime
    expires_at: datetime


async def make_link(
    tx: Tx,
    purpose: Purpose,
    *,
    email: str | None = None,
    organization_id: UUID | None = None,
    role: Role | None = None,
    created_by: UUID | None = None,
) -> str:
    """Make a link and return its token, which is not stored. It ends an older link for the same person and purpose."""
    await tx.execute("DELETE FROM sign_in_links WHERE expires_at < %s", (tx.now - STALE_AFTER,))
    if purpose is Purpose.PASSWORD and email is not None:
        await end_password_links(tx, email)
    else:
        await tx.execute(
            _END + " AND purpose = %s AND email IS NOT DISTINCT FROM %s AND organization_id IS NOT DISTINCT FROM %s",
            (tx.now, purpose.value, email, organization_id),
        )
    token = new_token()
    expires_at = tx.now + (FIRST_OWNER_LIFE if purpose is Purpose.FIRST_OWNER else LINK_LIFE)
    role_name = role.value if role else None
    await tx.execute(
        "INSERT INTO sign_in_links"
        " (token_hash, id, purpose, email, organization_id, role, created_by, created_at, expires_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(hash_token(token), new_uuid(), purpose.value, email, organization_id, role_name),
            *(created_by, tx.now, expires_at),
        ),
    )
    return token


async def find_link(tx: Tx, token: str) -> Link:
    """Load a link without using it: mail scanners and previews open links too."""
    rows = await tx.fetch(
        _SELECT + " WHERE l.token_hash = %s AND l.used_at IS NULL AND l.expires_at > %s", (hash_token(token), tx.now)
    )
    if not rows:
        raise LinkUnusable
    return _to_link(rows[0])


async def use_link(tx: Tx, token: str) -> Link:
    """Mark a link as used. If two callers use it at the same time, one succeeds; if the transaction fails, the link can
    be used again."""
    count = await tx.execute(
        "UPDATE sign_in_links SET used_at = %s WHERE token_hash = %s AND used_at IS NULL AND expires_at > %s",
        (tx.now, hash_token(token), tx.now),
    )
    if count != 1:
        raise LinkUnusable
    [row] = await tx.fetch(_SELECT + " WHERE l.token_hash = %s", (hash_token(token),))
    return _to_link(row)


async def list_links(tx: Tx, organization_id: UUID) -> list[Link]:
    """Return the links of this organization that can still be used, made by its members or by the operator."""
    rows = await tx.fetch(
        _SELECT + " WHERE l.organization_id = %s AND l.used_at IS NULL AND l.expires_at > %s"
        " ORDER BY l.created_at DESC LIMIT 200",
        (organization_id, tx.now),
    )
    return [_to_link(row) for row in rows]


async def end_link(tx: Tx, organization_id: UUID, link_id: UUID) -> tuple[Purpose, str] | None:
    """End a link; return its purpose and email address, or None if it could not be used any more."""
    rows = await tx.fetch(
        _END + " AND organization_id = %s AND id = %s RETURNING purpose, email", (tx.now, organization_id, link_id)
    )
    return (Purpose(rows[0][0]), rows[0][1]) if rows else None


async def end_password_links(tx: Tx, email: str) -> None:
    """End the password links of an account after its password has changed, so that no older link changes it again."""
    await tx.execute(_END + " AND purpose = 'password' AND email = %s", (tx.now, email))


async def end_password_links_of_organizations(tx: Tx, email: str) -> None:
    """End password links that members made, when the account joins another organization: then only the operator may
    make them."""
    await tx.execute(_END + " AND purpose = 'password' AND email = %s AND organization_id IS NOT NULL", (tx.now, email))


async def end_links_of_member(tx: Tx, organization_id: UUID, *, user_id: UUID, email: str) -> None:
    """End the links that a member made here, and those made for them, when their role changes or they leave."""
    await tx.execute(
        _END + " AND organization_id = %s AND (created_by = %s OR email = %s)",
        (tx.now, organization_id, user_id, email),
    )


async def end_links_of_user(tx: Tx, *, user_id: UUID, email: str) -> None:
    """End the links that a disabled user made and those made for them, in all organizations."""
    await tx.execute(_END + " AND (created_by = %s OR email = %s)", (tx.now, user_id, email))


async def end_all_links(tx: Tx) -> None:
    """End all links after a restore, which brings back links that were used or ended since the backup."""
    await tx.execute(_END, (tx.now,))


def _to_link(row: TupleRow) -> Link:
    identifier, purpose, email, organization_id, organization_name, role, *rest = row
    return Link(
        identifier, Purpose(purpose), email, organization_id, organization_name, Role(role) if role else None, *rest
    )
