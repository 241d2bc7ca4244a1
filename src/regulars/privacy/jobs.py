"""Functions that the worker calls after an erasure, to finish it."""

import math
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.idempotency.records import FIRST_RANGE, erase_bodies
from regulars.kit.db import Tx
from regulars.privacy.erase import erase_responses, search_keys_of
from regulars.privacy.facts import ProfileErased, StoredResponsesRemain
from regulars.privacy.personal import MODULES
from regulars.work.personal import ErasedPeople

# How long one call searches stored responses.
CONTINUE_S_MAX = 5.0


async def anonymise_stragglers(tx: Tx, organization_id: UUID, facts: Sequence[ProfileErased]) -> None:
    """Erase people from rows that were being written during the erasure (stragglers): sales, and their stored
    responses.

    The fast path of sales neither locks the profile nor has a foreign key to it, so an erasure may commit between its
    read and its insert. When this runs, every statement that ran during the erasure has ended. It searches responses
    only for the profile's id: every other write about a person locks the profile or the number, so the erasure itself
    has searched its response.
    """
    people = ErasedPeople(profile_ids=[fact.profile_id for fact in facts])
    for module in MODULES.values():
        erase = module.erase_late_rows or module.erase
        if erase is not None:
            await erase(tx, organization_id, people)
    keys = search_keys_of(people.profile_ids)
    await erase_bodies(tx, organization_id, keys, since=_start_of(facts), seconds_max=math.inf)


async def continue_erasing_responses(tx: Tx, organization_id: UUID, facts: Sequence[StoredResponsesRemain]) -> None:
    """Search stored responses that an erasure had no time for, for a few seconds; if some remain, `erase_responses`
    records a new fact, and the worker calls this again."""
    for fact in facts:
        await erase_responses(
            tx,
            organization_id,
            fact.profile_ids,
            fact.subscription_ids,
            until=fact.until,
            seconds_max=CONTINUE_S_MAX,
        )


def _start_of(facts: Sequence[ProfileErased]) -> datetime | None:
    """The time of the first erasure minus the longest time of a transaction; None if an erasure has no known time."""
    times = [fact.erased_at for fact in facts if fact.erased_at is not None]
    return min(times) - FIRST_RANGE if len(times) == len(facts) else None
