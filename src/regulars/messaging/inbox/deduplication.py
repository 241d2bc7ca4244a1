"""Which messages of a provider were received before: by their stored replies, and by a keyed hash after an erasure.

A provider delivers a message several times: by its callback, when it repeats the callback, and in its list of inbound
messages. Duplicates are dropped before any number is locked.
"""

import hmac
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.messaging.queries import replies

# Longer than the provider's list is ever read back.
HASH_RETENTION: Final = timedelta(days=30)
_MESSAGE_DOMAIN: Final = b"regulars inbound message\0"

# The provider's name, and its id of the message.
MessageKey = tuple[str, str]


def hash_message(secret: bytes, key: MessageKey) -> bytes:
    return hmac.digest(secret, _MESSAGE_DOMAIN + "\0".join(key).encode(), "sha256")


async def find_received(
    tx: Tx, organization_id: UUID, keys: Collection[MessageKey], *, secret: bytes
) -> set[MessageKey]:
    received: set[MessageKey] = set()
    for provider in sorted({provider for provider, _ in keys}):
        own = [provider_id for named, provider_id in keys if named == provider]
        received |= {(provider, it) for it in await replies.find_stored_ids(tx, organization_id, provider, own)}
    hashes = {hash_message(secret, key): key for key in keys if key not in received}
    if hashes:
        received |= {hashes[it] for it in await replies.find_erased_hashes(tx, organization_id, hashes)}
    return received


async def sweep_hashes(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        await replies.delete_old_hashes(tx, organization_id, before=tx.now - HASH_RETENTION)


async def erase_replies(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes], secret: bytes
) -> None:
    """Keyed hashes of the provider's ids stay for a time, since the provider's list still has the messages."""
    deleted = await replies.delete_replies_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    if deleted:
        await replies.insert_erased_hashes(tx, organization_id, {hash_message(secret, key) for key in deleted})
