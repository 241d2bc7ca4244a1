"""The SQL of numbers as the sender of texts asks for them."""

from collections.abc import Collection, Sequence
from uuid import UUID

from regulars.kit.arrays import Blobs
from regulars.kit.db import Tx


async def find_subscribed_numbers(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID]
) -> list[tuple[UUID, str, bytes]]:
    """For each profile its subscribed number that was consented to last."""
    rows = await tx.fetch(
        """
        SELECT it.id, found.phone_number, found.number_hash
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT phone_number, number_hash
            FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = it.id AND status = 'SUBSCRIBED'
            ORDER BY consented_at DESC, id DESC
            LIMIT 1
        ) AS found
        """,
        {"organization_id": organization_id, "ids": list(profile_ids)},
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def was_last_withdrawn_by_message(tx: Tx, organization_id: UUID, number_hash: bytes) -> bool:
    """By the withdrawal that arrived last, whatever its outcome: one of a number that was unsubscribed counts too."""
    rows = await tx.fetch(
        """
        SELECT subscriptions.consented_at IS NOT NULL AND last.message_id IS NOT NULL
        FROM subscriptions
        CROSS JOIN LATERAL (
            SELECT consent_payloads.payload ->> 'message_id' AS message_id
            FROM consent_ledger
            LEFT JOIN consent_payloads ON consent_payloads.organization_id = %(organization_id)s
                AND consent_payloads.subscription_id = consent_ledger.subscription_id
                AND consent_payloads.sequence = consent_ledger.sequence
            WHERE consent_ledger.organization_id = %(organization_id)s
              AND consent_ledger.subscription_id = subscriptions.id AND consent_ledger.kind <> 'OPT_IN'
            ORDER BY consent_ledger.sequence DESC
            LIMIT 1
        ) AS last
        WHERE subscriptions.organization_id = %(organization_id)s AND subscriptions.number_hash = %(number_hash)s
          AND subscriptions.status = 'UNSUBSCRIBED'
        """,
        {"organization_id": organization_id, "number_hash": number_hash},
    )
    return bool(rows and rows[0][0])


async def find_subscription_ids(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> dict[bytes, UUID]:
    rows = await tx.fetch(
        """
        SELECT found.number_hash, found.id FROM unnest(%s::bytea[]) AS wanted (number_hash)
        CROSS JOIN LATERAL (
            SELECT number_hash, id FROM subscriptions
            WHERE organization_id = %s AND number_hash = wanted.number_hash LIMIT 1
        ) AS found
        """,
        (Blobs(number_hashes), organization_id),
    )
    return dict(rows)


async def find_number_hashes(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[bytes]:
    rows = await tx.fetch(
        "SELECT number_hash FROM subscriptions WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )
    return [row[0] for row in rows]
