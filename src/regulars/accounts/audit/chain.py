"""The hash chain of an organization's audit log: hash rows, and verify that none was changed, removed or inserted."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.commitments import commit
from regulars.kit.db import Database, Tx

PAGE_ROWS: Final = 1000
COMMITMENT_BYTES: Final = 32
_GENESIS_DOMAIN: Final = b"regulars audit log\0"


def encode_personal_fields(
    *, address: str | None, actor_id: UUID | None, actor: str, subject: str, before: str | None, after: str | None
) -> dict[str, bytes]:
    """Encode the personal fields of a row; `before` and `after` are JSON strings, as they are stored.

    The row's hash covers a commitment (a salted hash) of each field, not its value, so that a field can be deleted and
    the chain stays valid.
    """
    return {
        "address": msgspec.json.encode([address]),
        "actor": msgspec.json.encode([actor_id, actor]),
        "subject": msgspec.json.encode([subject, before, after]),
    }


_DELETED_FIELDS: Final = encode_personal_fields(
    address=None, actor_id=None, actor="", subject="", before=None, after=None
)


def genesis(organization_id: UUID) -> bytes:
    """Return the hash before the first row. It depends on the organization, so that rows cannot be moved to another."""
    return hashlib.sha256(_GENESIS_DOMAIN + organization_id.bytes).digest()


def hash_row(previous: bytes, *, sequence: int, identifier: UUID, at: datetime, act: str, commitments: bytes) -> bytes:
    """Hash all columns of a row in one canonical form, so that no column can be changed without notice."""
    text = msgspec.json.encode(
        [previous.hex(), sequence, str(identifier), format_timestamp(at), act, commitments.hex()]
    )
    return hashlib.sha256(text).digest()


class ChainedRow(NamedTuple):
    """A row with all columns that its hash covers; `before` and `after` as the stored JSON strings."""

    sequence: int
    id: UUID
    at: datetime
    act: str
    actor_id: UUID | None
    actor: str
    address: str | None
    subject: str
    before: str | None
    after: str | None
    address_salt: bytes | None
    actor_salt: bytes | None
    subject_salt: bytes | None
    commitments: bytes
    hash: bytes


@dataclass(slots=True)
class AuditProof:
    """The result of verifying one log. `fault` is None if the log is intact, else a sentence."""

    rows: int = 0
    # Rows from before the chain existed, or written by a server of an older release.
    rows_outside: int = 0
    # Rows without their address, which is deleted after its retention time, and rows without their actor or subject.
    addresses_deleted: int = 0
    others_deleted: int = 0
    # The last hash; an operator who stores it elsewhere can show later that no earlier row was changed.
    head: bytes = b""
    fault: str | None = None


async def verify_log(database: Database, organization_id: UUID) -> AuditProof:
    """Check the chain from its first row to the current last one; rows that are added meanwhile are not checked."""
    proof = AuditProof(head=genesis(organization_id))
    async with database.reading() as tx:
        proof.rows_outside = await _count_rows_outside(tx, organization_id)
        last_sequence, last_hash = await _find_head(tx, organization_id) or (0, proof.head)
    while proof.rows < last_sequence and proof.fault is None:
        async with database.reading() as tx:
            page = await _list_rows(tx, organization_id, after=proof.rows, until=last_sequence, limit=PAGE_ROWS)
        if not page:
            proof.fault = f"rows are missing after row {proof.rows}"
        for row in page:
            fault = _check_row(proof, row)
            if fault is not None:
                proof.fault = f"row {row.sequence}: {fault}"
                break
    if proof.fault is None and not hmac.compare_digest(proof.head, last_hash):
        proof.fault = "the last row is not the one that the chain ends with"
    return proof


def _check_row(proof: AuditProof, row: ChainedRow) -> str | None:
    """Add one row to the proof, or describe its fault."""
    if row.sequence != proof.rows + 1:
        return "a row before this one is missing"
    expected = hash_row(
        proof.head, sequence=row.sequence, identifier=row.id, at=row.at, act=row.act, commitments=row.commitments
    )
    if not hmac.compare_digest(expected, row.hash):
        return "its hash is not the hash of what it says"
    contents = encode_personal_fields(
        address=row.address,
        actor_id=row.actor_id,
        actor=row.actor,
        subject=row.subject,
        before=row.before,
        after=row.after,
    )
    salts = (row.address_salt, row.actor_salt, row.subject_salt)
    for index, ((name, content), salt) in enumerate(zip(contents.items(), salts, strict=True)):
        committed = row.commitments[index * COMMITMENT_BYTES : (index + 1) * COMMITMENT_BYTES]
        is_deleted = content == _DELETED_FIELDS[name]
        if not (is_deleted if salt is None else hmac.compare_digest(commit(salt, content), committed)):
            return f"its {name} is not the one it commits to"
    proof.addresses_deleted += row.address_salt is None
    proof.others_deleted += row.actor_salt is None or row.subject_salt is None
    proof.rows, proof.head = row.sequence, row.hash
    return None


async def _list_rows(tx: Tx, organization_id: UUID, *, after: int, until: int, limit: int) -> list[ChainedRow]:
    rows = await tx.fetch(
        "SELECT sequence, id, at, act, actor_id, actor, address, subject, before::text, after::text,"
        " address_salt, actor_salt, subject_salt, commitments, hash FROM audit_log"
        " WHERE organization_id = %s AND sequence > %s AND sequence <= %s ORDER BY sequence LIMIT %s",
        (organization_id, after, until, limit),
    )
    return [ChainedRow(*row) for row in rows]


async def _count_rows_outside(tx: Tx, organization_id: UUID) -> int:
    return await tx.fetch_count(
        "SELECT count(*) FROM audit_log WHERE organization_id = %s AND sequence IS NULL", (organization_id,)
    )


async def _find_head(tx: Tx, organization_id: UUID) -> tuple[int, bytes] | None:
    rows = await tx.fetch("SELECT sequence, hash FROM audit_heads WHERE organization_id = %s", (organization_id,))
    return (rows[0][0], bytes(rows[0][1])) if rows else None
