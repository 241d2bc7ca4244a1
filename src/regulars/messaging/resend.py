"""Send a text again that may or may not have left: only because a person says so."""

from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging import queries
from regulars.messaging.errors import NotUnknown, TextNotFound
from regulars.messaging.model import EXEMPT, EXPIRES_AFTER, OriginKind, State

_AGAIN = frozenset({State.UNKNOWN.value, State.FAILED.value})


async def resend(tx: Tx, organization_id: UUID, text_id: UUID) -> None:
    """Back into the queue and through the gate; the customer may get it twice."""
    row = await queries.lock_text(tx, organization_id, text_id)
    if row is None:
        raise TextNotFound("There is no text with this id.")
    if row.state not in _AGAIN:
        raise NotUnknown(f"This text is {row.state}; only one that is unknown or failed can be sent again.")
    if OriginKind(row.origin_kind) in EXEMPT:
        raise NotUnknown("An answer to STOP or HELP is sent within five minutes or never.")
    await queries.requeue_text(tx, organization_id, text_id, expires_at=tx.now + EXPIRES_AFTER)
    tx.touched.add(("texts", organization_id))
