"""Registers an interest in the facts (events of other packages) that journeys need while a journey is live or a run is
open. Without an interest, facts are not recorded.

A transaction registers the interest under a shared advisory lock. The worker withdraws the interest in a separate
transaction under the exclusive lock, which it only tries to take: while another transaction registers, it does nothing.
If the worker dies before the withdrawal, facts are recorded until its next attempt; nothing is lost.
"""

from typing import Final
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys.runs.lists import is_any_run_open
from regulars.kit.db import Database, Tx
from regulars.texts.facts import MessagesChanged
from regulars.work.facts import Fact
from regulars.work.outbox import register_interest, withdraw_interest

NEEDED_BY: Final = "journeys"
NEEDED_FACTS: Final[tuple[type[Fact], ...]] = (SubscriptionsChanged, MessagesChanged)


async def start_recording_facts(tx: Tx, organization_id: UUID) -> None:
    """Register the interest, in a transaction that makes a journey live, or that starts or resumes a run."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock_shared(hashtextextended('journeys ' || %s::text, 0))", (organization_id,)
    )
    for fact in NEEDED_FACTS:
        await register_interest(tx, organization_id, fact, needed_by=NEEDED_BY)


async def stop_recording_unneeded_facts(database: Database, organization_id: UUID) -> None:
    """Withdraw the interest if no journey is live and no run is open, unless another transaction is registering it."""
    async with database.reading() as tx:
        if await _is_needed(tx, organization_id):
            return
    async with database.transaction() as tx:
        is_locked = await tx.fetch_value(
            "SELECT pg_try_advisory_xact_lock(hashtextextended('journeys ' || %s::text, 0))", (organization_id,)
        )
        if is_locked and not await _is_needed(tx, organization_id):
            for fact in NEEDED_FACTS:
                await withdraw_interest(tx, organization_id, fact, needed_by=NEEDED_BY)


async def _is_needed(tx: Tx, organization_id: UUID) -> bool:
    is_any_live = await tx.fetch_value(
        "SELECT EXISTS (SELECT 1 FROM journeys WHERE organization_id = %s AND state = 'live')", (organization_id,)
    )
    return bool(is_any_live) or await is_any_run_open(tx, organization_id)
