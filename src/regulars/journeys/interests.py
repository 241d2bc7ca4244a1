"""Registers which facts (events recorded by other packages) journeys need while a journey is live or a run is open.

A transaction that begins to need them registers the interest under a shared advisory lock. The queue of runs withdraws
it in a separate transaction under the exclusive lock, which it only tries to take: it does not wait for other
transactions, and does nothing while another one registers. If the worker dies before, facts are recorded until the next
pass of the queue; nothing is lost.
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


async def require_facts(tx: Tx, organization_id: UUID) -> None:
    """Called in every transaction that makes a journey live, or starts a run while no journey is live."""
    await queries.share_interest(tx, organization_id)
    for fact in NEEDED:
        await register_interest(tx, organization_id, fact, needed_by=NEEDED_BY)


async def withdraw_if_unneeded(database: Database, organization_id: UUID) -> None:
    """Withdraw if no journey is live and no run is open, unless another transaction is just registering."""
    async with database.reading() as tx:
        if await _is_needed(tx, organization_id):
            return
    async with database.transaction() as tx:
        if await queries.try_lock_interest(tx, organization_id) and not await _is_needed(tx, organization_id):
            for fact in NEEDED:
                await withdraw_interest(tx, organization_id, fact, needed_by=NEEDED_BY)


async def _is_needed(tx: Tx, organization_id: UUID) -> bool:
    return await queries.is_any_live(tx, organization_id) or await is_any_run_open(tx, organization_id)
