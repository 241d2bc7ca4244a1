"""Read the consent of phone numbers for the code that sends texts, with the lock that a withdrawal takes: a lock on the
number's row of `subscriptions`, which is called its head.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from regulars.consent.model import Status
from regulars.consent.queries import LedgerHead, find_heads, lock_available_heads, lock_heads
from regulars.kit.arrays import Blobs, Ids
from regulars.kit.db import Tx


@dataclass(frozen=True, slots=True)
class NumberConsent:
    is_subscribed: bool
    # The profile that the number is linked to; None also for a number that was erased.
    profile_id: UUID | None
    # When the person of this number was erased, if they were.
    erased_at: datetime | None = None
    # The store where consent was given.
    store_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class TextNumber:
    """The number on which a customer is texted."""

    phone_number: str
    number_hash: bytes


async def lock_consents(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> dict[bytes, NumberConsent]:
    """Lock the heads of the numbers in the order of their hash, as every withdrawal does, and read their consent.

    A withdrawal that arrives meanwhile waits for this transaction, so its response comes after the decision made here;
    an earlier withdrawal is visible. A number without any consent event is not in the result.
    """
    return _consents(await lock_heads(tx, organization_id, number_hashes))


async def lock_available_consents(
    tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]
) -> tuple[dict[bytes, NumberConsent], set[bytes]]:
    """Like `lock_consents`, but skip numbers that another transaction has locked; also return the skipped hashes."""
    heads = await lock_available_heads(tx, organization_id, number_hashes)
    not_locked = set(number_hashes) - {head.number_hash for head in heads}
    # A number without a head has no consent event, and is not locked by another transaction either.
    if not not_locked:
        return _consents(heads), set()
    locked_elsewhere = await tx.fetch_column(
        """
        SELECT given.number_hash
        FROM unnest(%s::bytea[]) AS given (number_hash)
        WHERE EXISTS (SELECT FROM subscriptions WHERE organization_id = %s AND number_hash = given.number_hash)
        """,
        (Blobs(not_locked), organization_id),
    )
    return _consents(heads), set(locked_elsewhere)


async def find_consents(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> dict[bytes, NumberConsent]:
    """Like `lock_consents` without a lock, for estimates."""
    return _consents(await find_heads(tx, organization_id, number_hashes))


def _consents(heads: Iterable[LedgerHead]) -> dict[bytes, NumberConsent]:
    return {
        head.number_hash: NumberConsent(
            head.state.status is Status.SUBSCRIBED,
            head.state.profile_id,
            head.state.latest_opt_out_at if head.state.is_erased else None,
            head.state.store_id,
        )
        for head in heads
        if head.state is not None
    }


async def find_text_numbers(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> dict[UUID, TextNumber]:
    """The number on which each profile is texted: of its subscribed numbers, the one with the latest consent."""
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
        {"organization_id": organization_id, "ids": Ids(sorted(set(profile_ids), key=attrgetter("bytes")))},
    )
    return {profile_id: TextNumber(number, number_hash) for profile_id, number, number_hash in rows}


async def list_subscribed_profiles(tx: Tx, organization_id: UUID, *, after: UUID, limit: int) -> list[UUID]:
    """Profiles with a subscribed number, in the order of their ids."""
    return await tx.fetch_column(
        """
        SELECT DISTINCT profile_id FROM subscriptions
        WHERE organization_id = %s AND profile_id > %s AND status = 'SUBSCRIBED'
        ORDER BY profile_id
        LIMIT %s
        """,
        (organization_id, after, limit),
    )


async def was_withdrawn_by_text(tx: Tx, organization_id: UUID, number_hash: bytes) -> bool:
    """Whether the number once had consent and its last withdrawal came by text: only then may START subscribe it again.

    The withdrawal that arrived last decides, even if the number was unsubscribed already.
    """
    was_withdrawn = await tx.fetch_value(
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
    return bool(was_withdrawn)


async def find_subscription_ids(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> dict[bytes, UUID]:
    if not number_hashes:
        return {}
    return await tx.fetch_map(
        """
        SELECT found.number_hash, found.id FROM unnest(%s::bytea[]) AS wanted (number_hash)
        CROSS JOIN LATERAL (
            SELECT number_hash, id FROM subscriptions
            WHERE organization_id = %s AND number_hash = wanted.number_hash LIMIT 1
        ) AS found
        """,
        (Blobs(number_hashes), organization_id),
    )


async def find_number_hashes(tx: Tx, organization_id: UUID, subscription_ids: Collection[UUID]) -> list[bytes]:
    """The number hashes of subscriptions; a hash remains stored after its number is erased."""
    if not subscription_ids:
        return []
    return await tx.fetch_column(
        "SELECT number_hash FROM subscriptions WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(subscription_ids)),
    )
