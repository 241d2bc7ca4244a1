"""The hashes of the ledger: numbers, commitments to payloads, and the chain that runs over the commitments.

A commitment is an HMAC of the payload with a random salt as its key, a new one for each payload. Once payload and salt
are deleted, the commitment reveals nothing about the person, and the chain over it still verifies.
"""

import hashlib
import hmac
from datetime import datetime
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp

_NUMBER_DOMAIN = b"regulars consent number\0"
_GENESIS_DOMAIN = b"regulars consent ledger\0"


class ChainLink(msgspec.Struct, frozen=True):
    """The part of a ledger entry that its hash covers."""

    sequence: int
    kind: str
    outcome: str
    effective_at: datetime
    claimed_at: datetime | None
    received_at: datetime
    commitment: bytes
    previous_hash: bytes


def hash_number(secret: bytes, phone_number: str) -> bytes:
    """The hash by which a number is stored in one organization. It needs the organization's secret, so that the number
    cannot be found by hashing all possible numbers."""
    return hmac.digest(secret, _NUMBER_DOMAIN + phone_number.encode(), "sha256")


def genesis(organization_id: UUID, subscription_id: UUID) -> bytes:
    """The previous hash of the first entry; entries cannot be moved to another subscription or organization."""
    return hashlib.sha256(_GENESIS_DOMAIN + organization_id.bytes + subscription_id.bytes).digest()


def hash_link(link: ChainLink) -> bytes:
    """The hash of an entry in its canonical form, so that a change of any column is detected."""
    text = msgspec.json.encode(
        [
            link.previous_hash.hex(),
            link.sequence,
            link.kind,
            link.outcome,
            format_timestamp(link.effective_at),
            None if link.claimed_at is None else format_timestamp(link.claimed_at),
            format_timestamp(link.received_at),
            link.commitment.hex(),
        ]
    )
    return hashlib.sha256(text).digest()
