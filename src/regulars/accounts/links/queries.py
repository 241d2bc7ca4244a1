"""The statements on `sign_in_links`.

A link that is ended gets the time of its creation as its end: a transaction that began before, and whose own time is
therefore earlier than the end of the link, finds it over as well.
"""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx

_LINK = (
    "SELECT l.id, l.purpose, l.email, l.organization_id, o.name, l.role, l.created_by, u.email,"
    " l.created_at, l.expires_at"
    " FROM sign_in_links l LEFT JOIN organizations o ON o.id = l.organization_id"
    " LEFT JOIN users u ON u.id = l.created_by"
)


class LinkRow(NamedTuple):
    id: UUID
    purpose: str
    email: str | None
    organization_id: UUID | None
    organization_name: str | None
    role: str | None
    maker_id: UUID | None
    maker: str | None
    created_at: datetime
    expires_at: datetime


async def insert_link(tx: Tx, **link: Any) -> None:
    await tx.execute(
        "INSERT INTO sign_in_links"
        " (token_hash, id, purpose, email, organization_id, role, created_by, created_at, expires_at)"
        " VALUES (%(token_hash)s, %(identifier)s, %(purpose)s, %(email)s, %(organization_id)s, %(role)s,"
        " %(created_by)s, %(now)s, %(expires_at)s)",
        {"now": tx.now, **link},
    )


async def expire_links(tx: Tx, purpose: str, *, email: str | None, organization_id: UUID | None) -> None:
    await tx.execute(
        "UPDATE sign_in_links SET expires_at = created_at WHERE purpose = %s AND used_at IS NULL AND expires_at > %s"
        " AND email IS NOT DISTINCT FROM %s AND organization_id IS NOT DISTINCT FROM %s",
        (purpose, tx.now, email, organization_id),
    )


async def expire_password_links(tx: Tx, email: str) -> None:
    await tx.execute(
        "UPDATE sign_in_links SET expires_at = created_at WHERE purpose = 'password' AND used_at IS NULL"
        " AND expires_at > %s AND email = %s",
        (tx.now, email),
    )


async def expire_password_links_of_organizations(tx: Tx, email: str) -> None:
    await tx.execute(
        "UPDATE sign_in_links SET expires_at = created_at WHERE purpose = 'password' AND used_at IS NULL"
        " AND expires_at > %s AND email = %s AND organization_id IS NOT NULL",
        (tx.now, email),
    )


async def expire_links_of_member(tx: Tx, organization_id: UUID, *, user_id: UUID, email: str) -> None:
    """Those that a member made in this organization, and those that it made for them."""
    await tx.execute(
        "UPDATE sign_in_links SET expires_at = created_at WHERE organization_id = %s AND used_at IS NULL"
        " AND expires_at > %s AND (created_by = %s OR email = %s)",
        (organization_id, tx.now, user_id, email),
    )


async def expire_links_of_user(tx: Tx, *, user_id: UUID, email: str) -> None:
    """Everywhere."""
    await tx.execute(
        "UPDATE sign_in_links SET expires_at = created_at WHERE used_at IS NULL AND expires_at > %s"
        " AND (created_by = %s OR email = %s)",
        (tx.now, user_id, email),
    )


async def delete_stale_links(tx: Tx, *, before: datetime) -> None:
    """Used ones and those whose time is over, a while after."""
    await tx.execute("DELETE FROM sign_in_links WHERE expires_at < %s", (before,))


async def find_link(tx: Tx, token_hash: bytes) -> LinkRow | None:
    rows = await tx.fetch(
        _LINK + " WHERE l.token_hash = %s AND l.used_at IS NULL AND l.expires_at > %s", (token_hash, tx.now)
    )
    return LinkRow(*rows[0]) if rows else None


async def mark_used(tx: Tx, token_hash: bytes) -> bool:
    count = await tx.execute(
        "UPDATE sign_in_links SET used_at = %s WHERE token_hash = %s AND used_at IS NULL AND expires_at > %s",
        (tx.now, token_hash, tx.now),
    )
    return count == 1


async def find_used_link(tx: Tx, token_hash: bytes) -> LinkRow | None:
    rows = await tx.fetch(_LINK + " WHERE l.token_hash = %s", (token_hash,))
    return LinkRow(*rows[0]) if rows else None


async def list_open_links(tx: Tx, organization_id: UUID) -> list[LinkRow]:
    rows = await tx.fetch(
        _LINK + " WHERE l.organization_id = %s AND l.used_at IS NULL AND l.expires_at > %s"
        " ORDER BY l.created_at DESC LIMIT 200",
        (organization_id, tx.now),
    )
    return [LinkRow(*row) for row in rows]


async def withdraw_link(tx: Tx, organization_id: UUID, link_id: UUID) -> tuple[str, str] | None:
    """Its purpose and the address it was for."""
    rows = await tx.fetch(
        "UPDATE sign_in_links SET expires_at = created_at WHERE organization_id = %s AND id = %s AND used_at IS NULL"
        " AND expires_at > %s RETURNING purpose, email",
        (organization_id, link_id, tx.now),
    )
    return (rows[0][0], rows[0][1]) if rows else None


async def expire_all_links(tx: Tx) -> None:
    await tx.execute(
        "UPDATE sign_in_links SET expires_at = created_at WHERE used_at IS NULL AND expires_at > %s", (tx.now,)
    )
