"""Write the consent ledger: its heads (the rows of `subscriptions`), entries and payloads, a batch per statement.

A batch is passed as one array for each column.
"""

from collections.abc import Sequence
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.consent.chain import ChainLink
from regulars.consent.model import Proof, SubscriptionState
from regulars.consent.queries import LedgerHead
from regulars.kit.arrays import Bigints, BinaryArray, Blobs, Ids, Jsons, Labels, Texts, Timestamps
from regulars.kit.columns import Columns
from regulars.kit.db import Tx

_NO_PROOF = Proof()
_NO_STATE = SubscriptionState(phone_number=None)
_HEAD_COLUMNS: Final = Columns(
    id=Ids, number_hash=Blobs, created_at=Timestamps, entry_count=Bigints, last_hash=Blobs, updated_at=Timestamps,
    status=Labels,
)  # fmt: skip
_STATE_COLUMNS: Final = Columns(
    phone_number=Texts, profile_id=Ids, store_id=Ids, consent_source=(Labels, "source"),
    consented_at=Timestamps, latest_opt_in_at=Timestamps, latest_opt_out_at=Timestamps,
)  # fmt: skip
_PROOF_COLUMNS: Final = Columns(terms_url=Labels, terms_version=Labels, source_text=Labels)
_SUBSCRIPTION_COLUMNS: Final = _HEAD_COLUMNS | _STATE_COLUMNS | _PROOF_COLUMNS
_INSERT_HEADS: Final[LiteralString] = _SUBSCRIPTION_COLUMNS.write("""
INSERT INTO subscriptions (organization_id, {columns})
SELECT %(organization_id)s, it.* FROM {rows}
""")


class NewEntry(NamedTuple):
    subscription_id: UUID
    link: ChainLink
    hash: bytes


class NewPayload(NamedTuple):
    subscription_id: UUID
    sequence: int
    profile_id: UUID | None
    salt: bytes
    payload: bytes


async def insert_heads_if_new(tx: Tx, organization_id: UUID, heads: Sequence[LedgerHead]) -> set[bytes]:
    """Insert the heads that do not exist, in the order of their hash; returns the hashes of the inserted heads."""
    rows = await tx.fetch(
        _INSERT_HEADS + " ORDER BY it.number_hash ON CONFLICT (organization_id, number_hash) DO NOTHING"
        " RETURNING number_hash",
        {"organization_id": organization_id, **_arrays_of_heads(heads)},
    )
    return {row[0] for row in rows}


_LINK_COLUMNS: Final = Columns(
    sequence=Bigints, kind=Labels, outcome=Labels, effective_at=Timestamps, claimed_at=Timestamps,
    received_at=Timestamps, commitment=Blobs, previous_hash=Blobs,
)  # fmt: skip
_ENTRY_COLUMNS: Final = Columns(subscription_id=Ids, hash=Blobs)
_INSERT_ENTRIES: Final = (_LINK_COLUMNS | _ENTRY_COLUMNS).write("""
INSERT INTO consent_ledger (organization_id, {columns})
SELECT %(organization_id)s, it.* FROM {rows}
""")


async def insert_entries(tx: Tx, organization_id: UUID, entries: Sequence[NewEntry]) -> None:
    links = [entry.link for entry in entries]
    await tx.execute(
        _INSERT_ENTRIES, {"organization_id": organization_id, **_LINK_COLUMNS.of(links), **_ENTRY_COLUMNS.of(entries)}
    )


_PAYLOAD_COLUMNS: Final = Columns(subscription_id=Ids, sequence=Bigints, profile_id=Ids, salt=Blobs, payload=Jsons)
_INSERT_PAYLOADS: Final = _PAYLOAD_COLUMNS.write("""
INSERT INTO consent_payloads (organization_id, {columns})
SELECT %(organization_id)s, it.* FROM {rows}
""")


async def insert_payloads(tx: Tx, organization_id: UUID, payloads: Sequence[NewPayload]) -> None:
    await tx.execute(_INSERT_PAYLOADS, {"organization_id": organization_id, **_PAYLOAD_COLUMNS.of(payloads)})


_UPDATE_HEADS: Final[LiteralString] = (
    _INSERT_HEADS
    + " ON CONFLICT (organization_id, number_hash) DO UPDATE SET "
    + _SUBSCRIPTION_COLUMNS.assign("excluded", without=("id", "number_hash", "created_at"))
)


async def update_heads(tx: Tx, organization_id: UUID, heads: Sequence[LedgerHead]) -> None:
    """Update heads that this transaction has locked. The statement is an upsert that never inserts: ON CONFLICT finds
    each row by its unique key, while an UPDATE that is joined with the arrays might read all rows of the
    organization."""
    await tx.execute(_UPDATE_HEADS, {"organization_id": organization_id, **_arrays_of_heads(heads)})


def _arrays_of_heads(heads: Sequence[LedgerHead]) -> dict[str, BinaryArray]:
    states = [head.state or _NO_STATE for head in heads]
    proofs = [state.proof or _NO_PROOF for state in states]
    return {**_HEAD_COLUMNS.of(heads), **_STATE_COLUMNS.of(states), **_PROOF_COLUMNS.of(proofs)}
