"""The statements that write the ledger. Batches travel as one array for each column."""

from collections.abc import Sequence
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.consent.chain import Link
from regulars.consent.model import Proof, State
from regulars.consent.queries import HeadRow
from regulars.kit.arrays import Bigints, BinaryArray, Blobs, Jsons, Labels, Texts, Timestamps, Uuids
from regulars.kit.db import Tx

_NO_PROOF = Proof()
_NO_STATE = State(phone_number=None)
_INSERT_HEADS: Final[LiteralString] = """
INSERT INTO subscriptions (
    organization_id, id, number_hash, created_at, entry_count, last_hash, updated_at, status, phone_number,
    profile_id, store_id, consent_source, consented_at, terms_url, terms_version, source_text, latest_opt_in_at,
    latest_opt_out_at
)
SELECT %s, it.*
FROM unnest(%s::uuid[], %s::bytea[], %s::timestamptz[], %s::bigint[], %s::bytea[], %s::timestamptz[],
            %s::text[], %s::text[], %s::uuid[], %s::uuid[], %s::text[], %s::timestamptz[], %s::text[],
            %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[])
    AS it (id, number_hash, created_at, entry_count, last_hash, updated_at, status, phone_number, profile_id, store_id,
           consent_source, consented_at, terms_url, terms_version, source_text, latest_opt_in_at, latest_opt_out_at)
"""


class NewEntry(NamedTuple):
    subscription_id: UUID
    link: Link
    hash: bytes


class NewPayload(NamedTuple):
    subscription_id: UUID
    sequence: int
    profile_id: UUID | None
    salt: bytes
    payload: bytes


async def insert_heads_if_new(tx: Tx, organization_id: UUID, heads: Sequence[HeadRow]) -> set[bytes]:
    """Insert heads in the order of their hash; gives the hashes of those that no other transaction inserted first."""
    rows = await tx.fetch(
        _INSERT_HEADS + " ORDER BY it.number_hash ON CONFLICT (organization_id, number_hash) DO NOTHING"
        " RETURNING number_hash",
        (organization_id, *_columns_of_heads(heads)),
    )
    return {row[0] for row in rows}


async def insert_entries(tx: Tx, organization_id: UUID, entries: Sequence[NewEntry]) -> None:
    await tx.execute(
        """
        INSERT INTO consent_ledger
            (organization_id, subscription_id, sequence, kind, outcome, effective_at, claimed_at, received_at,
             commitment, previous_hash, hash)
        SELECT %s, it.*
        FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[],
                    %s::timestamptz[], %s::bytea[], %s::bytea[], %s::bytea[]) AS it
        """,
        (
            organization_id,
            Uuids([it.subscription_id.bytes for it in entries]),
            Bigints([it.link.sequence for it in entries]),
            Labels([it.link.kind for it in entries]),
            Labels([it.link.outcome for it in entries]),
            Timestamps([it.link.effective_at for it in entries]),
            Timestamps([it.link.claimed_at for it in entries]),
            Timestamps([it.link.received_at for it in entries]),
            Blobs([it.link.commitment for it in entries]),
            Blobs([it.link.previous_hash for it in entries]),
            Blobs([it.hash for it in entries]),
        ),
    )


async def insert_payloads(tx: Tx, organization_id: UUID, payloads: Sequence[NewPayload]) -> None:
    await tx.execute(
        """
        INSERT INTO consent_payloads (organization_id, subscription_id, sequence, profile_id, salt, payload)
        SELECT %s, it.*
        FROM unnest(%s::uuid[], %s::bigint[], %s::uuid[], %s::bytea[], %s::json[]) AS it
        """,
        (
            organization_id,
            Uuids([it.subscription_id.bytes for it in payloads]),
            Bigints([it.sequence for it in payloads]),
            Uuids([_bytes(it.profile_id) for it in payloads]),
            Blobs([it.salt for it in payloads]),
            Jsons([it.payload for it in payloads]),
        ),
    )


async def update_heads(tx: Tx, organization_id: UUID, heads: Sequence[HeadRow]) -> None:
    """Write heads that this transaction holds locked. None is inserted: the conflict leads to each row by its key,
    where an UPDATE that is joined with the list may be planned to read the whole organization."""
    await tx.execute(
        _INSERT_HEADS
        + """
        ON CONFLICT (organization_id, number_hash) DO UPDATE
        SET entry_count = excluded.entry_count, last_hash = excluded.last_hash, updated_at = excluded.updated_at,
            status = excluded.status, phone_number = excluded.phone_number, profile_id = excluded.profile_id,
            store_id = excluded.store_id, consent_source = excluded.consent_source,
            consented_at = excluded.consented_at, terms_url = excluded.terms_url,
            terms_version = excluded.terms_version, source_text = excluded.source_text,
            latest_opt_in_at = excluded.latest_opt_in_at, latest_opt_out_at = excluded.latest_opt_out_at
        """,
        (organization_id, *_columns_of_heads(heads)),
    )


def _columns_of_heads(heads: Sequence[HeadRow]) -> tuple[BinaryArray, ...]:
    states = [head.state or _NO_STATE for head in heads]
    proofs = [state.proof or _NO_PROOF for state in states]
    return (
        Uuids([head.id.bytes for head in heads]),
        Blobs([head.number_hash for head in heads]),
        Timestamps([head.created_at for head in heads]),
        Bigints([head.entry_count for head in heads]),
        Blobs([head.last_hash for head in heads]),
        Timestamps([head.updated_at for head in heads]),
        Labels([head.status for head in heads]),
        Texts([state.phone_number for state in states]),
        Uuids([_bytes(state.profile_id) for state in states]),
        Uuids([_bytes(state.store_id) for state in states]),
        Labels([state.source for state in states]),
        Timestamps([state.consented_at for state in states]),
        Labels([proof.terms_url for proof in proofs]),
        Labels([proof.terms_version for proof in proofs]),
        Labels([proof.source_text for proof in proofs]),
        Timestamps([state.latest_opt_in_at for state in states]),
        Timestamps([state.latest_opt_out_at for state in states]),
    )


def _bytes(identifier: UUID | None) -> bytes | None:
    return None if identifier is None else identifier.bytes
