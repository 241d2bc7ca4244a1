"""The SQL on `users`, `memberships` and `sessions`, which belong to no single organization."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from psycopg.rows import TupleRow

from regulars.accounts.model import Account, Member, Membership, Session
from regulars.kit.db import Tx
from regulars.web.access import Role

_SELECT_ACCOUNT = (
    "SELECT id, email, name, locale, created_at, disabled_at, password_hash IS NOT NULL, totp_enabled_at IS NOT NULL"
    " FROM users"
)
# `confirmed_at` is when the user last entered the password again.
_SELECT_SESSION = (
    "SELECT id, user_id, created_at, last_seen_at, idle_s, ends_at, coalesce(confirmed_at, created_at), address, agent"
    " FROM sessions"
)


async def insert_user_if_new(
    tx: Tx, *, identifier: UUID, email: str, name: str, password_hash: str | None = None
) -> bool:
    count = await tx.execute(
        "INSERT INTO users (id, email, name, password_hash, created_at) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (email) DO NOTHING",
        (identifier, email, name, password_hash, tx.now),
    )
    return count == 1


async def find_account(tx: Tx, user_id: UUID) -> Account | None:
    rows = await tx.fetch(_SELECT_ACCOUNT + " WHERE id = %s", (user_id,))
    return Account(*rows[0]) if rows else None


async def find_account_by_email(tx: Tx, email: str) -> Account | None:
    rows = await tx.fetch(_SELECT_ACCOUNT + " WHERE email = %s", (email,))
    return Account(*rows[0]) if rows else None


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


async def insert_session(tx: Tx, session: Session, *, token_hash: bytes) -> None:
    await tx.execute(
        "INSERT INTO sessions (token_hash, id, user_id, created_at, last_seen_at, idle_s, ends_at, address, agent)"
        " VALUES (%(token_hash)s, %(id)s, %(user_id)s, %(created_at)s, %(last_seen_at)s, %(idle_s)s, %(ends_at)s,"
        " %(address)s, %(agent)s)",
        {**asdict(session), "token_hash": token_hash, "idle_s": int(session.idle.total_seconds())},
    )


async def find_session(tx: Tx, token_hash: bytes) -> tuple[Session, Account] | None:
    rows = await tx.fetch(
        "SELECT s.id, s.user_id, s.created_at, s.last_seen_at, s.idle_s, s.ends_at,"
        " coalesce(s.confirmed_at, s.created_at), s.address, s.agent,"
        " u.id, u.email, u.name, u.locale, u.created_at, u.disabled_at, u.password_hash IS NOT NULL,"
        " u.totp_enabled_at IS NOT NULL"
        " FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token_hash = %s",
        (token_hash,),
    )
    return (_to_session(rows[0][:9]), Account(*rows[0][9:])) if rows else None


async def list_sessions(tx: Tx, user_id: UUID) -> list[Session]:
    rows = await tx.fetch(_SELECT_SESSION + " WHERE user_id = %s ORDER BY last_seen_at DESC LIMIT 200", (user_id,))
    return [_to_session(row) for row in rows]


async def record_password_confirmation(tx: Tx, session_id: UUID) -> None:
    await tx.execute("UPDATE sessions SET confirmed_at = %s WHERE id = %s", (tx.now, session_id))


async def update_last_seen(tx: Tx, session_id: UUID, now: datetime) -> None:
    await tx.execute("UPDATE sessions SET last_seen_at = greatest(last_seen_at, %s) WHERE id = %s", (now, session_id))


def _to_session(row: TupleRow) -> Session:
    identifier, user_id, created_at, last_seen_at, idle_s, *rest = row
    return Session(identifier, user_id, created_at, last_seen_at, timedelta(seconds=idle_s), *rest)


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


async def delete_membership(tx: Tx, organization_id: UUID, user_id: UUID) -> None:
    await tx.execute("DELETE FROM memberships WHERE organization_id = %s AND user_id = %s", (organization_id, user_id))


async def lock_owners(tx: Tx, organization_id: UUID) -> None:
    await tx.fetch(
        "SELECT 1 FROM memberships WHERE organization_id = %s AND role = 'owner' ORDER BY user_id FOR UPDATE",
        (organization_id,),
    )


async def has_other_owner(tx: Tx, organization_id: UUID, user_id: UUID) -> bool:
    """Return whether the organization has another owner, who is not disabled."""
    rows = await tx.fetch(
        "SELECT 1 FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.organization_id = %s"
        " AND m.role = 'owner' AND m.user_id <> %s AND u.disabled_at IS NULL LIMIT 1",
        (organization_id, user_id),
    )
    return bool(rows)


async def set_disabled(tx: Tx, user_id: UUID, disabled_at: datetime | None) -> None:
    await tx.execute("UPDATE users SET disabled_at = %s WHERE id = %s", (disabled_at, user_id))


async def set_name_and_locale(tx: Tx, user_id: UUID, *, name: str, locale: str | None) -> None:
    await tx.execute("UPDATE users SET name = %s, locale = %s WHERE id = %s", (name, locale, user_id))


async def delete_old_sessions(tx: Tx) -> int:
    return await tx.execute(
        "DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions"
        " WHERE ends_at <= %s OR last_seen_at + idle_s * interval '1 second' <= %s LIMIT 1000 FOR UPDATE SKIP LOCKED)",
        (tx.now, tx.now),
    )
