"""The hash chain of an organization's audit log: what a row commits to, and how rows hang together."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.commitments import commit

_GENESIS_DOMAIN: Final = b"regulars audit log\0"


@dataclass(frozen=True, slots=True)
class Content:
    """What a row says of people. Each field is bytes under its own commitment, so that one can be deleted alone."""

    address: bytes
    actor: bytes
    subject: bytes

    @classmethod
    def of(  # the columns of a row
        cls,
        *,
        address: str | None,
        actor_id: UUID | None,
        actor: str,
        subject: str,
        before: str | None,
        after: str | None,
    ) -> "Content":
        """`before` and `after` are JSON texts, as they are stored."""
        return cls(
            address=msgspec.json.encode([address]),
            actor=msgspec.json.encode([None if actor_id is None else str(actor_id), actor]),
            subject=msgspec.json.encode([subject, before, after]),
        )

    def commitments(self, *, address_salt: bytes, actor_salt: bytes, subject_salt: bytes) -> bytes:
        """The three, one after the other."""
        return commit(address_salt, self.address) + commit(actor_salt, self.actor) + commit(subject_salt, self.subject)


def genesis(organization_id: UUID) -> bytes:
    """What the first row is chained to: rows cannot be moved to another organization."""
    return hashlib.sha256(_GENESIS_DOMAIN + organization_id.bytes).digest()


def hash_row(previous: bytes, *, sequence: int, identifier: UUID, at: datetime, act: str, commitments: bytes) -> bytes:
    """Everything a row says, written in one way only, so that no column can be changed unseen."""
    text = msgspec.json.encode(
        [previous.hex(), sequence, str(identifier), format_timestamp(at), act, commitments.hex()]
    )
    return hashlib.sha256(text).digest()
