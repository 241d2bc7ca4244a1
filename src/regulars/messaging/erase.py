"""Forget a person's texts and replies; the totals stay."""

from collections.abc import Collection
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.messaging.inbox.known import forget_replies
from regulars.messaging.keep.retention import find_text_ids, forget_texts
from regulars.messaging.providers.simulator import forget_simulated
from regulars.messaging.settings.store import load_texting
from regulars.work.erase import rewrite_waiting_facts


async def forget_changes(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes] = ()
) -> None:
    """Take the people out of what was told about their texts and nobody has heard yet. Before their texts and runs are
    touched: listeners that are at it hold such facts, and look for runs."""
    texts = await find_text_ids(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    gone = {*profile_ids, *texts}

    def without(fact: MessagesChanged) -> MessagesChanged | None:
        return None if gone & {fact.profile_id, fact.text_id} or fact.number_hash in number_hashes else fact

    await rewrite_waiting_facts(tx, organization_id, MessagesChanged, gone, without)


async def erase_texts(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes] = ()
) -> None:
    """Called under the locks of the person's numbers. A text that is being sent at this moment keeps only its state,
    and goes when its sender has ended."""
    gone = await forget_texts(tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes)
    await forget_simulated(tx, organization_id, gone)
    texting = await load_texting(tx, organization_id)
    if texting is not None:
        await forget_replies(
            tx, organization_id, profile_ids=profile_ids, number_hashes=number_hashes, secret=texting.secret
        )
