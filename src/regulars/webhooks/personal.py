"""What webhooks hold about people: what was sent, and what a receiver answered."""

from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.webhooks.erase import erase_messages
from regulars.work.personal import ErasedPeople, PersonalData


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    await erase_messages(tx, organization_id, profile_ids=people.profile_ids, subscription_ids=people.subscription_ids)


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
