"""The lock on the text settings of an organization: an advisory lock on its id, which also works if the table
`sms_settings` has no row of the organization yet."""

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
