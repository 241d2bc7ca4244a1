"""Find consent requests that an earlier import of the same file has recorded."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx


async def find_recorded_requests(
    tx: Tx,
    organization_id: UUID,
    request_ids: Collection[str],
    *,
    number_hashes: Collection[bytes],
    profile_ids: Collection[UUID],
) -> set[str]:
    """Return the given request ids that are in the consent ledger of these phone numbers and profiles."""
    rows = await tx.fetch(
        "SELECT p.payload ->> 'request_id' FROM consent_payloads p"
        " JOIN subscriptions s ON s.organization_id = p.organization_id AND s.id = p.subscription_id"
        " WHERE p.organization_id = %(organization_id)s AND s.number_hash = ANY(%(number_hashes)s)"
        " AND p.payload ->> 'request_id' = ANY(%(request_ids)s)"
        " UNION SELECT p.payload ->> 'request_id' FROM consent_payloads p"
        " WHERE p.organization_id = %(organization_id)s AND p.profile_id = ANY(%(profile_ids)s)"
        " AND p.payload ->> 'request_id' = ANY(%(request_ids)s)",
        {
            "organization_id": organization_id,
            "request_ids": list(request_ids),
            "number_hashes": list(number_hashes),
            "profile_ids": list(profile_ids),
        },
    )
    return {row[0] for row in rows}
