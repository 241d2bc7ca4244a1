"""Find erased people in the stored idempotent answers, by ids that tell nothing about them."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from regulars.idempotency.erase import erase_answers
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, SUBSCRIPTION
from regulars.privacy.facts import AnswersUnread
from regulars.work import outbox


def needles_of(profile_ids: Collection[UUID], subscription_ids: Collection[UUID] = ()) -> list[bytes]:
    """What gives away, in the bytes of a stored answer, that it speaks of one of these people.

    Every answer that shows a profile's external_id or fields shows its canonical id beside them, and every answer that
    shows the number of a consent shows the id of the subscription. The texts themselves are no needles. A bare `"1"`
    as an external_id would blank the answers of a store or a line, and a number that two profiles share the answers
    about the other one; and they would have to wait in the outbox for whoever reads on.
    """
    profiles = [PROFILE.encode(identifier).encode() for identifier in profile_ids]
    return profiles + [SUBSCRIPTION.encode(identifier).encode() for identifier in subscription_ids]


async def read_answers(
    tx: Tx,
    organization_id: UUID,
    profile_ids: Collection[UUID],
    subscription_ids: Collection[UUID],
    *,
    until: datetime | None = None,
    seconds_max: float,
) -> None:
    """Blank the answers about these people, and leave to the worker what there is no time for."""
    needles = needles_of(profile_ids, subscription_ids)
    unread = await erase_answers(tx, organization_id, needles, until=until, seconds_max=seconds_max)
    if unread is not None:
        fact = AnswersUnread(until=unread, profile_ids=tuple(profile_ids), subscription_ids=tuple(subscription_ids))
        await outbox.record(tx, organization_id, [fact])
