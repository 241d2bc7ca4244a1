"""Read texts: lists for people, and a conversation with one number."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.kit.db import Tx
from regulars.messaging import queries
from regulars.messaging.inbox.model import ReplyRow
from regulars.messaging.model import OriginKind, TextRow


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a conversation, ours or theirs."""

    at: datetime
    text: TextRow | None = None
    reply: ReplyRow | None = None


async def find_text(tx: Tx, organization_id: UUID, text_id: UUID) -> TextRow | None:
    return await queries.find_text(tx, organization_id, text_id)


async def find_texts(tx: Tx, organization_id: UUID, text_ids: Collection[UUID]) -> dict[UUID, TextRow]:
    return {text.id: text for text in await queries.find_texts(tx, organization_id, text_ids)}


async def list_texts(
    tx: Tx,
    organization_id: UUID,
    *,
    secret: bytes,
    phone_number: str | None = None,
    profile_id: UUID | None = None,
    state: str | None = None,
    limit: int,
) -> Sequence[TextRow]:
    """The newest first."""
    return await queries.list_texts(
        tx,
        organization_id,
        number_hash=None if phone_number is None else hash_number(secret, phone_number),
        profile_id=profile_id,
        state=state,
        limit=limit,
    )


async def list_texts_of(tx: Tx, organization_id: UUID, origin_kind: OriginKind, origin_id: UUID) -> Sequence[TextRow]:
    """What one origin asked for: a run, a campaign's customer, a person."""
    return await queries.list_texts_of(tx, organization_id, origin_kind.value, origin_id)
