"""Telling the rest of the house what became of texts, and counting it: totals outlive the texts themselves."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.messaging.inbox.model import ReplyRow
from regulars.messaging.keep.retention import add_totals
from regulars.messaging.model import TextRow
from regulars.work import outbox


async def note_changes(tx: Tx, organization_id: UUID, changed: Sequence[TextRow]) -> None:
    """The texts as they stand after the change."""
    if not changed:
        return
    texts: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for text in changed:
        texts[text.state] += 1
        parts[text.state] += text.parts
    await add_totals(tx, organization_id, [(state, texts[state], parts[state]) for state in sorted(texts)])
    facts = [
        MessagesChanged(
            "text",
            text.id,
            text.origin_kind,
            text.origin_id,
            text.step,
            text.profile_id,
            text.state,
            text.reason,
            at=tx.now,
        )
        for text in changed
    ]
    await outbox.record(tx, organization_id, facts)


async def note_suppression(tx: Tx, organization_id: UUID, number_hash: bytes, *, profile_id: UUID | None) -> None:
    """A number was suppressed or released."""
    fact = MessagesChanged("suppression", profile_id=profile_id, number_hash=number_hash)
    await outbox.record(tx, organization_id, [fact])


async def note_reply(tx: Tx, organization_id: UUID, reply: ReplyRow) -> None:
    fact = MessagesChanged("reply", reply.id, profile_id=reply.profile_id, number_hash=reply.number_hash, at=tx.now)
    await outbox.record(tx, organization_id, [fact])
