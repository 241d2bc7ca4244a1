"""Which facts journeys need from the rooms below, while any is live or any run is on its way."""

from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys import queries
from regulars.journeys.runs.find import is_any_run_active
from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.work.interest import register_interest, withdraw_interest

NEEDED_BY = "journeys"


async def settle_interest(tx: Tx, organization_id: UUID) -> None:
    """Called in every transaction that makes a journey live, pauses it, or ends the last of its runs."""
    await queries.lock_interest(tx, organization_id)
    is_needed = await queries.is_any_live(tx, organization_id) or await is_any_run_active(tx, organization_id)
    for fact in (SubscriptionsChanged, MessagesChanged):
        if is_needed:
            await register_interest(tx, organization_id, fact, needed_by=NEEDED_BY)
        else:
            await withdraw_interest(tx, organization_id, fact, needed_by=NEEDED_BY)
