"""What webhooks hold about people: what was sent, and what a receiver answered."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.webhooks import queries
from regulars.work.personal import ErasedPeople, PersonalData


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    """Cancel what still waits to be sent about these people, and blank what was said and answered.

    That they were erased is sent all the same: such messages hold their ids only.
    """
    messages = await queries.blank_messages(
        tx, organization_id, profile_ids=people.profile_ids, subscription_ids=people.subscription_ids
    )
    if messages:
        await queries.cancel_deliveries(tx, organization_id, messages)
        await queries.blank_answers(tx, organization_id, messages)


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "webhook_messages.body",
        "webhook_attempts.answer",
    ),
    harmless={
        "webhook_messages.profile_id": "a canonical id, which leads to nobody once the person is erased",
        "webhook_attempts.error": "our own words about a connection",
        "webhook_messages.type": "the name of a kind of event",
        "webhook_deliveries": "ids and times",
        "webhook_endpoints": "about the retailer's systems",
    },
    erase=_erase,
)
