"""Prove an audit log: no row was changed, removed or put in between."""

import hmac
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.accounts.audit import chain, queries
from regulars.kit.commitments import commit
from regulars.kit.db import Database

PAGE_ROWS: Final = 1000
COMMITMENT_BYTES: Final = 32


@dataclass(slots=True)
class AuditProof:
    """What was read of an organization's log. `fault` is None when everything holds; otherwise a sentence."""

    rows: int = 0
    # Rows from before the chain began, or written by an older release that still ran.
    rows_outside: int = 0
    # Addresses go when their time is over; whatever is deleted takes its salt along.
    addresses_deleted: int = 0
    others_deleted: int = 0
    # The end of the chain; stored elsewhere, it shows later that nothing up to it was changed.
    head: bytes = b""
    fault: str | None = None


async def verify_log(database: Database, organization_id: UUID) -> AuditProof:
    """Walk the chain from its beginning to the head as it is now; rows that come meanwhile are beyond it."""
    proof = AuditProof(head=chain.genesis(organization_id))
    async with database.reading() as tx:
        proof.rows_outside = await queries.count_rows_outside(tx, organization_id)
        end, head = await queries.find_head(tx, organization_id) or (0, proof.head)
    while proof.rows < end and proof.fault is None:
        async with database.reading() as tx:
            page = await queries.list_chained_rows(tx, organization_id, after=proof.rows, until=end, limit=PAGE_ROWS)
        if not page:
            proof.fault = f"rows are missing after row {proof.rows}"
        for row in page:
            fault = _check(proof, row)
            if fault is not None:
                proof.fault = f"row {row.sequence}: {fault}"
                break
    if proof.fault is None and not hmac.compare_digest(proof.head, head):
        proof.fault = "the end of the chain is another one"
    return proof


def _check(proof: AuditProof, row: queries.ChainedRow) -> str | None:
    """Take one row, or say what is wrong with it."""
    if row.sequence != proof.rows + 1:
        return "a row before this one is missing"
    expected = chain.hash_row(
        proof.head, sequence=row.sequence, identifier=row.id, at=row.at, act=row.act, commitments=row.commitments
    )
    if not hmac.compare_digest(expected, row.hash):
        return "its hash is not the hash of what it says"
    content = chain.Content.of(
        address=row.address,
        actor_id=row.actor_id,
        actor=row.actor,
        subject=row.subject,
        before=row.before,
        after=row.after,
    )
    fields = (
        ("address", content.address, row.address_salt, row.address is None),
        ("actor", content.actor, row.actor_salt, not row.actor and row.actor_id is None),
        ("subject", content.subject, row.subject_salt, not row.subject and row.before is None and row.after is None),
    )
    for number, (name, said, salt, is_empty) in enumerate(fields):
        committed = row.commitments[number * COMMITMENT_BYTES : (number + 1) * COMMITMENT_BYTES]
        if not (is_empty if salt is None else hmac.compare_digest(commit(salt, said), committed)):
            return f"its {name} is not the one it commits to"
    proof.addresses_deleted += row.address_salt is None
    proof.others_deleted += row.actor_salt is None or row.subject_salt is None
    proof.rows, proof.head = row.sequence, row.hash
    return None
