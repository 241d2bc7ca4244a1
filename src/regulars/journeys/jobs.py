"""What the worker tells journeys: sales and consents that bring customers in, end runs or wake them."""

from collections.abc import Sequence
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys.runs import enter, hear
from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.sales.facts import SalesRecorded


async def hear_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    await hear.hear_sales(tx, organization_id, facts)


async def enter_by_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    await enter.enter_by_sales(tx, organization_id, facts)


async def hear_consents(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    await hear.hear_consents(tx, organization_id, facts)


async def enter_by_consents(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    await enter.enter_by_consents(tx, organization_id, facts)


async def hear_messages(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    await hear.hear_messages(tx, organization_id, facts)
