"""Publish changes of texts, replies, suppressed numbers, clicks and the global holdout to listeners in other packages.

A change is recorded as a fact, in the transaction that makes it. A change of a text is also counted in the daily
totals, which remain when the text is deleted.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.texts import text_rows as texts
from regulars.texts.model import ReplyRow, TextRow
from regulars.work import outbox
from regulars.work.facts import Fact


class MessagesChanged(Fact, frozen=True, omit_defaults=True):
    """A text changed its state (kind `text`), a number was suppressed or released (`suppression`), or a reply was
    received (`reply`, with the id of the reply in `text_id`)."""

    topic: ClassVar[str] = "messaging.messages_changed"
    on_interest: ClassVar[bool] = True

    kind: str
    text_id: UUID | None = None
    # What requested the text, such as a run of a journey or a campaign. `step` tells its texts apart: the id of a
    # journey's step, or of a campaign's recipient.
    origin_kind: str | None = None
    origin_id: UUID | None = None
    step: str | None = None
    profile_id: UUID | None = None
    state: str | None = None
    reason: str | None = None
    number_hash: bytes | msgspec.UnsetType = msgspec.UNSET
    # The time of the change; None in facts of earlier releases.
    at: datetime | None = None
    # The state before the change, so that listeners can update totals by the difference; `queued` for a text that was
    # skipped when it was requested. None in facts of earlier releases.
    previous_state: str | None = None


async def publish_text_changes(
    tx: Tx, organization_id: UUID, changed: Sequence[TextRow], *, previous_state: str
) -> None:
    """Publish and count texts that changed their state from `previous_state`; `changed` has their new rows."""
    if not changed:
        return
    counts: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for text in changed:
        counts[text.state] += 1
        parts[text.state] += text.parts
    zone = await texts.load_zone(tx, organization_id)
    totals = [(state, counts[state], parts[state]) for state in sorted(counts)]
    await texts.add_totals(tx, organization_id, tx.now.astimezone(zone).date(), totals)
    await publish_queue_changes(tx, organization_id, changed, previous_state=previous_state)


async def publish_queue_changes(
    tx: Tx, organization_id: UUID, changed: Sequence[TextRow], *, previous_state: str
) -> None:
    """Publish changes of texts without counting them in the daily totals, for texts that returned to the queue or were
    deleted from it."""
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
            previous_state=previous_state,
        )
        for text in changed
    ]
    await outbox.record(tx, organization_id, facts)


async def publish_suppression(tx: Tx, organization_id: UUID, number_hash: bytes, *, profile_id: UUID | None) -> None:
    """Publish that a number was suppressed, or that its suppression has ended."""
    fact = MessagesChanged("suppression", profile_id=profile_id, number_hash=number_hash)
    await outbox.record(tx, organization_id, [fact])


async def publish_reply(tx: Tx, organization_id: UUID, reply: ReplyRow) -> None:
    fact = MessagesChanged("reply", reply.id, profile_id=reply.profile_id, number_hash=reply.number_hash, at=tx.now)
    await outbox.record(tx, organization_id, [fact])
