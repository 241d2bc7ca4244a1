"""Store the final states of texts, such as sent, failed or skipped, and publish the changes."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts import text_rows as texts
from regulars.texts.facts import publish_text_changes
from regulars.texts.model import SkipReason, TextState
from regulars.texts.queries import claims, replies

# States in which the provider has accepted a text.
_ACCEPTED: Final = frozenset({TextState.SENT.value, TextState.DELIVERED.value})


async def end_texts(
    tx: Tx,
    organization_id: UUID,
    ended: Sequence[claims.EndedText],
    *,
    previous_state: str,
    owner: UUID | None = None,
) -> None:
    """Store and publish the final states of texts that the caller has locked, and decide the replies that they answer.
    With an owner (a worker), only texts that this worker still claims for sending are changed.

    A text whose customer was erased during sending is counted, and deleted with the copy that the simulator stored. Its
    reason is not published, since the provider's message may contain the number.
    """
    if not ended:
        return
    changed = await claims.end_texts(tx, organization_id, ended, owner=owner)
    erased = [row.id for row in changed if row.phone_number is None]
    if erased:
        await texts.delete_texts(tx, organization_id, erased)
        await texts.delete_simulator_texts(tx, organization_id, erased)
    published = [row if row.phone_number is not None else row._replace(reason=None) for row in changed]
    await publish_text_changes(tx, organization_id, published, previous_state=previous_state)
    answered = {row.origin_id for row in changed if row.origin_kind == OriginKind.ANSWER and row.state in _ACCEPTED}
    if answered:
        await replies.decide_answered(tx, organization_id, answered)
    if previous_state in _ACCEPTED:
        failed = {row.origin_id for row in changed if row.origin_kind == OriginKind.ANSWER} - answered
        await replies.reopen_unanswered(tx, organization_id, failed)


async def skip_texts(tx: Tx, organization_id: UUID, text_ids: Collection[UUID], reason: SkipReason) -> None:
    """Skip queued texts."""
    skipped = [claims.EndedText(text_id, TextState.SKIPPED.value, reason.value) for text_id in text_ids]
    await end_texts(tx, organization_id, skipped, previous_state=TextState.QUEUED.value)
