"""Find inbound messages that were received before: among the stored replies, and by keyed hashes of erased replies.

A provider delivers a message several times: by a callback, by repeated callbacks, and in its list of inbound messages.
Callers drop duplicates before they lock a phone number.
"""

import hmac
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.arrays import Blobs, Texts
from regulars.kit.db import Database, Tx

# Longer than the seven days for which the provider's list is read.
HASH_RETENTION: Final = timedelta(days=30)
# A prefix, so that no other keyed hash of the organization equals the hash of a message.
_MESSAGE_DOMAIN: Final = b"regulars inbound message\0"

# The name of the provider, and the id that the provider gave the message.
MessageKey = tuple[str, str]


def hash_message(secret: bytes, key: MessageKey) -> bytes:
    return hmac.digest(secret, _MESSAGE_DOMAIN + "\0".join(key).encode(), "sha256")


async def find_received(
    tx: Tx, organization_id: UUID, keys: Collection[MessageKey], *, secret: bytes
) -> set[MessageKey]:
    """The messages that were received before."""
    received: set[MessageKey] = set()
    for provider in sorted({provider for provider, _ in keys}):
        provider_ids = [provider_id for name, provider_id in keys if name == provider]
        stored_ids = await tx.fetch_column(
            """
            SELECT provider_id FROM replies
            WHERE organization_id = %s AND provider = %s AND provider_id = ANY (%s::text[])
            """,
            (organization_id, provider, Texts(provider_ids)),
        )
        received |= {(provider, provider_id) for provider_id in stored_ids}
    hashes = {hash_message(secret, key): key for key in keys if key not in received}
    if hashes:
        erased_hashes = await tx.fetch_column(
            "SELECT message_hash FROM erased_replies WHERE organization_id = %s AND message_hash = ANY (%s::bytea[])",
            (organization_id, Blobs(hashes)),
        )
        received |= {hashes[message_hash] for message_hash in erased_hashes}
    return received


async def sweep_hashes(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        await tx.execute(
            """
            DELETE FROM erased_replies WHERE organization_id = %(organization_id)s AND message_hash = ANY (ARRAY(
                SELECT message_hash FROM erased_replies
                WHERE organization_id = %(organization_id)s AND erased_at < %(before)s
                FOR UPDATE SKIP LOCKED
            ))
            """,
            {"organization_id": organization_id, "before": tx.now - HASH_RETENTION},
        )


async def erase_replies(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes], secret: bytes
) -> None:
    """Delete the replies of erased people. Keyed hashes of the provider's message ids are stored for 30 days, because
    the provider's list still contains the messages."""
    deleted = await _delete_replies(tx, organization_id, profile_ids, number_hashes)
    if deleted:
        await tx.execute(
            """
            INSERT INTO erased_replies (organization_id, message_hash, erased_at)
            SELECT %s, it.message_hash, %s FROM unnest(%s::bytea[]) AS it (message_hash)
            ON CONFLICT (organization_id, message_hash) DO NOTHING
            """,
            (organization_id, tx.now, Blobs({hash_message(secret, key) for key in deleted})),
        )


async def _delete_replies(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> list[MessageKey]:
    """Delete the replies of erased people, and the suppressions of their numbers, since no user can decide about a
    deleted reply; a suppression stays if another reply from the number still waits for a decision. Returns the provider
    and the provider's id of each deleted reply."""
    rows = await tx.fetch(
        """
        DELETE FROM replies
        WHERE organization_id = %s AND (profile_id = ANY (%s::uuid[]) OR number_hash = ANY (%s::bytea[]))
        RETURNING provider, provider_id, id, number_hash
        """,
        (organization_id, list(profile_ids), list(number_hashes)),
    )
    await tx.execute(
        """
        DELETE FROM suppressions
        WHERE organization_id = %(organization_id)s AND number_hash = ANY (%(sender_hashes)s::bytea[])
          AND (number_hash = ANY (%(number_hashes)s::bytea[]) OR reply_id = ANY (%(reply_ids)s::uuid[]))
          AND NOT EXISTS (
            SELECT 1 FROM (
                SELECT decided, meaning FROM replies
                WHERE organization_id = %(organization_id)s AND number_hash = suppressions.number_hash
                OFFSET 0
            ) AS reply
            WHERE reply.decided IS NULL AND reply.meaning = 'perhaps_stop'
        )
        """,
        {
            "organization_id": organization_id,
            "number_hashes": list(number_hashes),
            "reply_ids": [row[2] for row in rows],
            # A reply suppresses the number from which it was sent.
            "sender_hashes": [*number_hashes, *(row[3] for row in rows)],
        },
    )
    return [(row[0], row[1]) for row in rows]
