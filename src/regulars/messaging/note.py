"""Telling the rest of the house what became of texts, and counting it: totals outlive the texts themselves."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.messaging.keep.texts import add_totals
from regulars.work import outbox


class Changed(Protocol):
    """A text as it stands after the change."""

    @property
    def id(self) -> UUID: ...
    @property
    def origin_kind(self) -> str: ...
    @property
    def origin_id(self) -> UUID: ...
    @property
    def step(self) -> str: ...
    @property
    def profile_id(self) -> UUID | None: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def parts(self) -> int: ...


async def note_changes(tx: Tx, organization_id: UUID, changed: Sequence[Changed]) -> None:
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
            "text", text.id, text.origin_kind, text.origin_id, text.step, text.profile_id, text.state, text.reason
        )
        for text in changed
    ]
    await outbox.record(tx, organization_id, facts)


async def note_suppression(tx: Tx, organization_id: UUID, number_hash: bytes, *, profile_id: UUID | None) -> None:
    """A number was suppressed or released."""
    fact = MessagesChanged("suppression", profile_id=profile_id, number_hash=number_hash)
    await outbox.record(tx, organization_id, [fact])
