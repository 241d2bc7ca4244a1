"""Which facts journeys need from the rooms below, while any is live or any run has not ended.

Whoever begins to need them registers, in the same transaction, sharing a lock with all others who do. The end of the
need is looked for by the queue of runs, in a transaction of its own that takes the lock for itself: it withdraws only
where nobody registers at the same time, holds nothing else, and waits for nobody. If the worker dies between the end of
the last run and that look, the facts are still recorded until the queue's next turn; nothing is lost by that.
"""

from typing import Final
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys import queries
from regulars.journeys.runs.lists import is_any_run_open
from regulars.kit.db import Database, Tx
from regulars.messaging.facts import MessagesChanged
from regulars.work.facts import Fact
from regulars.work.outbox import register_interest, withdraw_interest

NEEDED_BY: Final = "journeys"
NEEDED: Final[tuple[type[Fact], ...]] = (SubscriptionsChanged, MessagesChanged)


async def need_facts(tx: Tx, organization_id: UUID) -> None:
    """Called in every transaction that makes a journey live, or a run where none is."""
    await queries.share_interest(tx, organization_id)
    for fact in NEEDED:
        await register_interest(tx, organization_id, fact, needed_by=NEEDED_BY)


async def end_need(database: Database, organization_id: UUID) -> None:
    """Withdraw if nothing is live and nobody is on the way; if somebody registers at this moment, they need it."""
    async with database.reading() as tx:
        if await _is_needed(tx, organization_id):
            return
    async with database.transaction() as tx:
        if await queries.try_lock_interest(tx, organization_id) and not await _is_needed(tx, organization_id):
            for fact in NEEDED:
                await withdraw_interest(tx, organization_id, fact, needed_by=NEEDED_BY)


async def _is_needed(tx: Tx, organization_id: UUID) -> bool:
    return await queries.is_any_live(tx, organization_id) or await is_any_run_open(tx, organization_id)
