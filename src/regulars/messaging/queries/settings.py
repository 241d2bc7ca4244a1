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
