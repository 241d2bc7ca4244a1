"""Interest is a row: a room that begins to need a fact registers, and the room below records it from then on.

Writers ask in SQL, in the statement that records, and never from memory: whoever writes after an interest was
committed records. `needed_by` tells apart rooms, or things of one room, that need the same topic.
"""

from uuid import UUID

from regulars.kit.db import Tx
from regulars.work import queries
from regulars.work.facts import Fact


async def register_interest(tx: Tx, organization_id: UUID, fact: type[Fact], *, needed_by: str) -> None:
    """Have the fact recorded from this commit on; registering twice is the same as once."""
    await queries.insert_interest_if_new(tx, organization_id, topic=fact.topic, needed_by=needed_by)


async def withdraw_interest(tx: Tx, organization_id: UUID, fact: type[Fact], *, needed_by: str) -> None:
    """Facts that were recorded already still reach their listeners."""
    await queries.delete_interest(tx, organization_id, topic=fact.topic, needed_by=needed_by)
