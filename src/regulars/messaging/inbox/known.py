"""Which messages of a provider were taken before: by their replies, and by a keyed hash where an erasure deleted them.

A provider brings a message several times: by its call, when it repeats the call, and in the list of inbound messages
that is read as well. What is known is dropped before any number is locked. Replies are deleted here too, since their
hashes stay.
"""

import hmac
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.kit.db import Database, Tx
from regulars.messaging.inbox import queries

# Longer than the provider's list is ever read back.
HASHES_KEPT_FOR: Final = timedelta(days=30)
_MESSAGE_DOMAIN: Final = b"regulars inbound message\0"

# The provider's name, and its id of the message.
MessageName = tuple[str, str]


def hash_message(secret: bytes, name: MessageName) -> bytes:
    return hmac.digest(secret, _MESSAGE_DOMAIN + "\0".join(name).encode(), "sha256")


async def find_known(
    tx: Tx, organization_id: UUID, names: Collection[MessageName], *, secret: bytes
) -> set[MessageName]:
    known: set[MessageName] = set()
    for provider in sorted({provider for provider, _ in names}):
        own = [provider_id for named, provider_id in names if named == provider]
        known |= {(provider, it) for it in await queries.find_known_ids(tx, organization_id, provider, own)}
    hashes = {hash_message(secret, name): name for name in names if name not in known}
    if hashes:
        known |= {hashes[it] for it in await queries.find_erased_hashes(tx, organization_id, hashes)}
    return known


async def remember_erased(tx: Tx, organization_id: UUID, names: Collection[MessageName], *, secret: bytes) -> None:
    if names:
        hashes = {hash_message(secret, name) for name in names}
        await queries.insert_erased_hashes(tx, organization_id, hashes)


async def sweep_hashes(database: Database, organization_id: UUID) -> None:
    async with database.transaction() as tx:
        await queries.delete_old_hashes(tx, organization_id, before=tx.now - HASHES_KEPT_FOR)


async def forget_replies(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes], secret: bytes
) -> None:
    """Keyed hashes of the provider's ids stay for a time: its own list still has the messages."""
    gone = await queries.delete_replies_of(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    await remember_erased(tx, organization_id, gone, secret=secret)


async def forget_old_replies(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> int:
    return await queries.delete_old_replies(tx, organization_id, before=before, limit=limit)
