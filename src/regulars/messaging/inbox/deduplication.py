"""Find inbound messages that were received before: among the stored replies, and by keyed hashes of erased replies.

A provider delivers a message several times: by a callback, by repeated callbacks, and in its list of inbound messages.
Callers drop duplicates before they lock a phone number.
"""

import hmac
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.messaging.queries import replies

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
        stored_ids = await replies.find_stored_ids(tx, organization_id, provider, provider_ids)
        received |= {(provider, provider_id) for provider_id in stored_ids}
    hashes = {hash_message(secret, key): key for key in keys if key not in received}
    if hashes:
        erased_hashes = await replies.find_erased_hashes(tx, organization_id, hashes)
        received |= {hashes[message_hash] for message_hash in erased_hashes}
    return received


async def sweep_hashes(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        await replies.delete_old_hashes(tx, organization_id, before=tx.now - HASH_RETENTION)


async def erase_replies(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes], secret: bytes
) -> None:
    """Delete the replies of erased people. Keyed hashes of the provider's message ids are stored for 30 days, because
    the provider's list still contains the messages."""
    deleted = await replies.delete_replies_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    if deleted:
        await replies.insert_erased_hashes(tx, organization_id, {hash_message(secret, key) for key in deleted})
