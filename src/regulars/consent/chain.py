"""Compute the hashes of the consent ledger: of phone numbers, and of entries, whose hash includes the previous hash.

An entry's hash covers its payload only through a commitment: an HMAC of the payload under a random salt. Once payload
and salt are deleted, the commitment reveals nothing about the person, and the chain of hashes still verifies.
"""

import hashlib
import hmac
from datetime import datetime
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp

# Prefixes, so that the hash of one kind of input is never the hash of another kind.
_NUMBER_DOMAIN = b"regulars consent number\0"
_GENESIS_DOMAIN = b"regulars consent ledger\0"


class LedgerEvent(msgspec.Struct, frozen=True):
    """An event of the ledger: its position, what happened, and when."""

    sequence: int
    kind: str
    outcome: str
    # The time by which events are ordered.
    effective_at: datetime
    # The time that the API caller stated, if there is one.
    claimed_at: datetime | None
    received_at: datetime


class ChainLink(LedgerEvent, frozen=True):
    """The part of a ledger entry that its hash covers: the event, and the hash before it."""

    commitment: bytes
    previous_hash: bytes


def hash_number(secret: bytes, phone_number: str) -> bytes:
    """The hash under which an organization stores a number. It is keyed with the organization's secret, so that hashing
    all possible numbers does not reveal the number."""
    return hmac.digest(secret, _NUMBER_DOMAIN + phone_number.encode(), "sha256")


def genesis_hash(organization_id: UUID, subscription_id: UUID) -> bytes:
    """The `previous_hash` of a subscription's first entry. It contains both ids, so that a ledger that is copied to
    another subscription or organization does not verify."""
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
