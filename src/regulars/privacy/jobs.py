"""Listeners that finish an erasure: the worker calls them with the facts (events in the outbox) that it recorded."""

import math
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from regulars.idempotency.records import COMMIT_TIME_MAX, erase_bodies
from regulars.kit.db import Tx
from regulars.privacy.erase import erase_responses, search_keys_of
from regulars.privacy.facts import ProfileErased, StoredResponsesRemain
from regulars.privacy.personal import MODULES
from regulars.work.personal import ErasedPeople

# How long one call searches stored API responses.
CONTINUE_S_MAX = 5.0


async def anonymise_stragglers(tx: Tx, organization_id: UUID, facts: Sequence[ProfileErased]) -> None:
    """Erase people from rows that were being written during the erasure (stragglers): sales, and the API responses to
    them that are stored for retries.

    The statement that inserts sales reads the profile without a lock and has no foreign key to it, so an erasure may
    commit between the read and the insert. When this function runs, every statement that ran during the erasure has
    ended. It searches responses only for the profile's id: every other write about a person locks the profile or the
    number, so the erasure itself has searched the response to that write.
    """
    people = ErasedPeople(profile_ids=[fact.profile_id for fact in facts])
    for module in MODULES.values():
        erase = module.erase_late_rows or module.erase
        if erase is not None:
            await erase(tx, organization_id, people)
    keys = search_keys_of(people.profile_ids)
    await erase_bodies(tx, organization_id, keys, since=_search_from(facts), seconds_max=math.inf)


async def continue_erasing_responses(tx: Tx, organization_id: UUID, facts: Sequence[StoredResponsesRemain]) -> None:
    """Search, for a few seconds, the stored API responses that an erasure had no time for. If some responses remain,
    `erase_responses` records a new fact, and the worker calls this function again."""
    for fact in facts:
        await erase_responses(
            tx,
            organization_id,
            fact.profile_ids,
            fact.subscription_ids,
            until=fact.until,
            seconds_max=CONTINUE_S_MAX,
        )


def _search_from(facts: Sequence[ProfileErased]) -> datetime | None:
    """The time of the first erasure minus a minute, which is longer than a transaction; None (search all responses) if
    the time of an erasure is unknown."""
    times = [fact.erased_at for fact in facts if fact.erased_at is not None]
    return min(times) - COMMIT_TIME_MAX if len(times) == len(facts) else None
