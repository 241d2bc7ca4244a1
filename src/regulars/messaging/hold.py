"""Stop and start all texts of an organization."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging import queries
from regulars.messaging.send import LOOK_WHILE_HELD
from regulars.messaging.settings import store
from regulars.messaging.settings.store import Texting, save_texting


async def hold(tx: Tx, organization_id: UUID, texting: Texting, *, reason: str) -> Texting:
    """Nothing leaves from this commit on but what was claimed before it."""
    if texting.is_held:
        return texting
    held = replace(texting, held_since=tx.now, held_reason=reason)
    await save_texting(tx, organization_id, held)
    return held


async def release(tx: Tx, organization_id: UUID, texting: Texting) -> Texting:
    """What waited and is not too old goes through the gate now."""
    released = replace(texting, held_since=None, held_reason=None)
    await save_texting(tx, organization_id, released)
    await queries.make_due(tx, organization_id, not_after=tx.now + LOOK_WHILE_HELD + timedelta(minutes=1))
    tx.touched.add(("texts", organization_id))
    return released


async def hold_everybody(tx: Tx, *, reason: str) -> int:
    """After a restore: what the backup does not know to be sent must not be sent again."""
    return await store.hold_everybody(tx, reason=reason)
