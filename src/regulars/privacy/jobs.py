"""What the worker does after an erasure."""

import math
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.idempotency.erase import FIRST_STRETCH, erase_answers
from regulars.kit.db import Tx
from regulars.privacy.answers import needles_of, read_answers
from regulars.privacy.facts import AnswersUnread, ProfileErased
from regulars.privacy.rooms import ROOMS
from regulars.work.personal import ErasedPeople

READ_ON_S_MAX = 5.0


async def anonymise_stragglers(tx: Tx, organization_id: UUID, facts: Sequence[ProfileErased]) -> None:
    """Take a person out of what was being written about them while they were erased: sales, and their stored answers.

    The hot path of sales neither locks the profile nor has a foreign key to it, so an erasure may commit between its
    look and its insert. By the time this runs every statement of that moment has ended. The profile's id is enough to
    find the answers: all else that shows a person locks the profile or the number, and the erasure has read it.
    """
    people = ErasedPeople(profile_ids=[fact.profile_id for fact in facts])
    for room in ROOMS.values():
        erase = room.erase_stragglers or room.erase
        if erase is not None:
            await erase(tx, organization_id, people)
    needles = needles_of(people.profile_ids)
    await erase_answers(tx, organization_id, needles, since=_start_of(facts), seconds_max=math.inf)


async def read_on(tx: Tx, organization_id: UUID, facts: Sequence[AnswersUnread]) -> None:
    """Read stored answers that an erasure had no time for; a few seconds, and what is left after them later."""
    for fact in facts:
        await read_answers(
            tx,
            organization_id,
            fact.profile_ids,
            fact.subscription_ids,
            until=fact.until,
            seconds_max=READ_ON_S_MAX,
        )


def _start_of(facts: Sequence[ProfileErased]) -> datetime | None:
    """Before the first of the erasures by more than any transaction lasts; None if that is not known."""
    times = [fact.erased_at for fact in facts if fact.erased_at is not None]
    return min(times) - FIRST_STRETCH if len(times) == len(facts) else None
