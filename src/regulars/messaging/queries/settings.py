"""The SQL of the text settings of organizations, in the table `sms_settings`: one row for each organization, which is
due when the provider's list of replies is to be read. `organizations` is only read, for the name and the secret."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class SettingsRow(NamedTuple):
    organization_name: str
    # The key of the organization's hashes, plain, encrypted, or both.
    secret: bytes | None
    sealed_secret: bytes | None
    is_demo: bool
    provider: str | None
    settings: str | None
    # The encrypted token of the provider account.
    credentials: bytes | None
    held_since: datetime | None
    held_reason: str | None
    # How far the provider's list of replies was read, as JSON.
    inbound: str | None


async def find_settings(tx: Tx, organization_id: UUID) -> SettingsRow | None:
    rows = await tx.fetch(
        """
        SELECT organizations.name, organizations.secret, organizations.sealed_secret, organizations.is_demo,
               sms_settings.provider, sms_settings.settings::text, sms_settings.credentials, sms_settings.held_since,
               sms_settings.held_reason, sms_settings.inbound::text
        FROM organizations
        LEFT JOIN sms_settings ON sms_settings.organization_id = organizations.id
        WHERE organizations.id = %s
        """,
        (organization_id,),
    )
    return SettingsRow(*rows[0]) if rows else None


async def upsert_settings(
    tx: Tx,
    organization_id: UUID,
    *,
    provider: str,
    settings: str,
    credentials: bytes | None,
    held_since: datetime | None,
    held_reason: str | None,
    due_at: datetime | None,
) -> None:
    await tx.execute(
        """
        INSERT INTO sms_settings
            (organization_id, provider, settings, credentials, held_since, held_reason, due_at, updated_at)
        VALUES (%(organization_id)s, %(provider)s, %(settings)s::json, %(credentials)s, %(held_since)s,
                %(held_reason)s, %(due_at)s, %(now)s)
        ON CONFLICT (organization_id) DO UPDATE
        SET provider = EXCLUDED.provider, settings = EXCLUDED.settings, credentials = EXCLUDED.credentials,
            held_since = EXCLUDED.held_since, held_reason = EXCLUDED.held_reason, due_at = EXCLUDED.due_at,
            updated_at = EXCLUDED.updated_at
        """,
        {
            "organization_id": organization_id,
            "provider": provider,
            "settings": settings,
            "credentials": credentials,
            "held_since": held_since,
            "held_reason": held_reason,
            "due_at": due_at,
            "now": tx.now,
        },
    )


async def list_encrypted_tokens(tx: Tx) -> list[tuple[UUID, bytes]]:
    rows = await tx.fetch("SELECT organization_id, credentials FROM sms_settings WHERE credentials IS NOT NULL")
    return [(row[0], bytes(row[1])) for row in rows]


async def replace_encrypted_token(tx: Tx, organization_id: UUID, token: bytes) -> None:
    await tx.execute("UPDATE sms_settings SET credentials = %s WHERE organization_id = %s", (token, organization_id))


async def hold_all_organizations(tx: Tx, *, reason: str) -> int:
    """Hold the texts of all organizations, so that a restored backup does not send texts again."""
    return await tx.execute(
        """
        UPDATE sms_settings SET held_since = COALESCE(held_since, %(now)s), held_reason = %(reason)s
        WHERE organization_id IS NOT NULL
        """,
        {"now": tx.now, "reason": reason},
    )


async def set_next_poll(tx: Tx, organization_id: UUID, *, due_at: datetime | None) -> None:
    """Set when the provider's list of replies is read next."""
    await tx.execute("UPDATE sms_settings SET due_at = %s WHERE organization_id = %s", (due_at, organization_id))


async def save_inbound_progress(tx: Tx, organization_id: UUID, progress: str, *, due_at: datetime) -> None:
    """Store how far the provider's list of replies was read, as JSON, and when it is read again."""
    await tx.execute(
        "UPDATE sms_settings SET inbound = %s::json, due_at = %s WHERE organization_id = %s AND provider = 'twilio'",
        (progress, due_at, organization_id),
    )


async def take_due_settings(tx: Tx, organization_id: UUID) -> bool:
    """Lock the row if the provider's list of replies is due to be read; False if it is not, or is locked already."""
    rows = await tx.fetch(
        "SELECT 1 FROM sms_settings WHERE organization_id = %s AND due_at <= %s FOR UPDATE SKIP LOCKED",
        (organization_id, tx.now),
    )
    return bool(rows)


async def lock_settings(tx: Tx, organization_id: UUID) -> None:
    """Take an advisory lock on the organization's id, which also works if there is no row yet."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('sms_settings ' || %(organization_id)s::text, 0))",
        {"organization_id": organization_id},
    )


async def lock_settings_shared(tx: Tx, organization_id: UUID) -> None:
    """Take the lock of `lock_settings` in shared mode."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock_shared(hashtextextended('sms_settings ' || %(organization_id)s::text, 0))",
        {"organization_id": organization_id},
    )
