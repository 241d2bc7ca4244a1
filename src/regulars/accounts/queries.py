"""The SQL on `users` and `memberships`, which belong to no single organization."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.accounts.model import Account, Member, Membership
from regulars.kit.db import Tx
from regulars.web.access import Role

_SELECT_ACCOUNT = (
    "SELECT id, email, name, locale, created_at, disabled_at, password_hash IS NOT NULL, totp_enabled_at IS NOT NULL"
    " FROM users"
)


async def find_account(tx: Tx, user_id: UUID) -> Account | None:
    rows = await tx.fetch(_SELECT_ACCOUNT + " WHERE id = %s", (user_id,))
    return Account(*rows[0]) if rows else None


async def find_account_by_email(tx: Tx, email: str) -> Account | None:
    rows = await tx.fetch(_SELECT_ACCOUNT + " WHERE email = %s", (email,))
    return Account(*rows[0]) if rows else None


async def find_emails(tx: Tx, user_ids: Collection[UUID]) -> dict[UUID, str]:
    return await tx.fetch_map("SELECT id, email FROM users WHERE id = ANY (%s::uuid[])", (list(user_ids),))


async def has_users(tx: Tx) -> bool:
    return bool(await tx.fetch("SELECT 1 FROM users LIMIT 1"))


async def upsert_membership(tx: Tx, organization_id: UUID, user_id: UUID, role: Role) -> None:
    await tx.execute(
        "INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role",
        (organization_id, user_id, role.value, tx.now),
    )


async def find_memberships(tx: Tx, user_id: UUID) -> list[Membership]:
    rows = await tx.fetch(
        "SELECT o.id, s.slug, o.name, m.role FROM memberships m"
        " JOIN organizations o ON o.id = m.organization_id"
        " JOIN organization_slugs s ON s.organization_id = o.id AND s.is_current"
        " WHERE m.user_id = %s ORDER BY o.name",
        (user_id,),
    )
    return [Membership(row[0], row[1], row[2], Role(row[3])) for row in rows]


async def list_members(tx: Tx, organization_id: UUID, *, user_id: UUID | None = None) -> list[Member]:
    """List all members, or only the one with `user_id`."""
    rows = await tx.fetch(
        "SELECT u.id, u.email, u.name, m.role, m.created_at, u.disabled_at, u.totp_enabled_at IS NOT NULL,"
        " (SELECT max(s.last_seen_at) FROM sessions s WHERE s.user_id = u.id)"
        " FROM memberships m JOIN users u ON u.id = m.user_id"
        " WHERE m.organization_id = %s AND (%s::uuid IS NULL OR m.user_id = %s::uuid) ORDER BY u.name, u.id LIMIT 1000",
        (organization_id, user_id, user_id),
    )
    return [Member(row[0], row[1], row[2], Role(row[3]), row[4], row[5], row[6], row[7]) for row in rows]


async def find_emails_by_name(tx: Tx, organization_id: UUID, names: Collection[str]) -> list[tuple[str, str]]:
    """The name and the email address of the members with one of these names; members may share a name."""
    return await tx.fetch(
        "SELECT u.name, u.email FROM memberships m JOIN users u ON u.id = m.user_id"
        " WHERE m.organization_id = %s AND u.name = ANY (%s::text[])",
        (organization_id, list(names)),
    )


class StoredPassword(NamedTuple):
    user_id: UUID
    password_hash: str | None


async def find_password(tx: Tx, email: str) -> StoredPassword | None:
    """Find the password hash of a user who is not disabled."""
    rows = await tx.fetch("SELECT id, password_hash FROM users WHERE email = %s AND disabled_at IS NULL", (email,))
    return StoredPassword(*rows[0]) if rows else None


async def lock_password(tx: Tx, email: str) -> StoredPassword | None:
    """Like `find_password`; locks the user's row until the transaction ends."""
    rows = await tx.fetch(
        "SELECT id, password_hash FROM users WHERE email = %s AND disabled_at IS NULL FOR NO KEY UPDATE", (email,)
    )
    return StoredPassword(*rows[0]) if rows else None


async def set_password(tx: Tx, user_id: UUID, password_hash: str | None) -> None:
    await tx.execute("UPDATE users SET password_hash = %s WHERE id = %s", (password_hash, user_id))


async def set_disabled(tx: Tx, user_id: UUID, disabled_at: datetime | None) -> None:
    await tx.execute("UPDATE users SET disabled_at = %s WHERE id = %s", (disabled_at, user_id))


async def set_name_and_locale(tx: Tx, user_id: UUID, *, name: str, locale: str | None) -> None:
    await tx.execute("UPDATE users SET name = %s, locale = %s WHERE id = %s", (name, locale, user_id))
