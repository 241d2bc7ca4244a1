"""The lock on the text settings of an organization, and when they were saved. The lock is an advisory lock on the id of
the organization, which also works if the table `sms_settings` has no row of it yet."""

from datetime import datetime
from uuid import UUID

from regulars.kit.db import Tx


async def lock_settings(tx: Tx, organization_id: UUID) -> None:
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


async def find_change_time(tx: Tx, organization_id: UUID) -> datetime | None:
    """When the text settings were last saved; None if the defaults apply."""
    changed_at: datetime | None = await tx.fetch_value(
        "SELECT updated_at FROM sms_settings WHERE organization_id = %s", (organization_id,)
    )
    return changed_at
