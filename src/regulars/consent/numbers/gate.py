"""What the sender of texts asks of consent: the state of numbers at this moment, under the lock a withdrawal takes."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent.model import Status
from regulars.consent.numbers import queries
from regulars.consent.queries import HeadRow, find_existing_heads, lock_free_heads, lock_heads
from regulars.kit.db import Tx


@dataclass(frozen=True, slots=True)
class NumberConsent:
    """`profile_id` is whom the number is linked to; it is None, too, for a number that was erased."""

    is_subscribed: bool
    profile_id: UUID | None
    # When its person was erased, if that is how it stands.
    erased_at: datetime | None = None
    # Where consent was given.
    store_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class TextNumber:
    phone_number: str
    number_hash: bytes


async def lock_consents(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> dict[bytes, NumberConsent]:
    """Lock the heads of the numbers in the order of their hash, as every withdrawal does, and say how they stand.

    Whoever withdraws meanwhile waits for this transaction, and its answer comes after what is decided here; whoever
    withdrew before is seen. A number that nobody ever asked is absent.
    """
    return _consents(await lock_heads(tx, organization_id, number_hashes))


async def lock_free_consents(
    tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]
) -> tuple[dict[bytes, NumberConsent], set[bytes]]:
    """The same without waiting; and the numbers that another transaction has locked, which are not judged now."""
    heads = await lock_free_heads(tx, organization_id, number_hashes)
    unlocked = set(number_hashes) - {head.number_hash for head in heads}
    # Looked for after the locks: a number without a head was never asked, and has nothing to lock.
    held = await find_existing_heads(tx, organization_id, unlocked) if unlocked else set()
    return _consents(heads), held


def _consents(heads: Iterable[HeadRow]) -> dict[bytes, NumberConsent]:
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
    """The number each profile is texted on: of its subscribed ones, the one consented to last."""
    rows = await queries.find_subscribed_numbers(tx, organization_id, sorted(set(profile_ids)))
    return {profile_id: TextNumber(number, number_hash) for profile_id, number, number_hash in rows}


async def was_withdrawn_by_text(tx: Tx, organization_id: UUID, number_hash: bytes) -> bool:
    """Whether the number had consented and its last withdrawal came as a text: only then may START revive it."""
    return await queries.was_last_withdrawn_by_message(tx, organization_id, number_hash)


async def find_subscription_ids(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes]) -> dict[bytes, UUID]:
    return await queries.find_subscription_ids(tx, organization_id, number_hashes) if number_hashes else {}


async def find_number_hashes(tx: Tx, organization_id: UUID, subscription_ids: Collection[UUID]) -> list[bytes]:
    """What the numbers of subscriptions are known by; this stays when the numbers themselves are erased."""
    return await queries.find_number_hashes(tx, organization_id, subscription_ids) if subscription_ids else []
