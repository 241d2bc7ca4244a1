"""Adds the webhook endpoint of the demo, with the deliveries of its last day.

The receiver moved: its last response was 410 Gone, which disabled the endpoint. It is the demo's one fault to repair,
with a new address. The deliveries are written as the queue writes them, and no connection is made.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit.db import Database, Tx
from regulars.kit.ids import ByExternalId
from regulars.kit.metrics import Metrics
from regulars.kit.ssrf import AddressPolicy
from regulars.kit.vault import Vault
from regulars.sales.encode import encode_sale
from regulars.sales.listing import find_sales
from regulars.sales.model import Sale, StoredSale
from regulars.webhooks.delivery.metrics import DeliveryMetrics
from regulars.webhooks.delivery.queue import DeliveryQueue
from regulars.webhooks.delivery.schedule import GONE, AttemptOutcome
from regulars.webhooks.delivery.send import Sender
from regulars.webhooks.events import WebhookEvent, post_events
from regulars.webhooks.manage import create_endpoint, list_endpoints

URL: Final = "https://hooks.maison-corvelle.example/regulars"
DESCRIPTION: Final = "Sample endpoint: its receiver has moved. Give it a new address, then enable it."
EVENT_TYPES: Final = ("sales_event.*",)
DELIVERIES: Final = 24
# The endpoint was created this long before its first delivery.
CREATED_BEFORE: Final = timedelta(days=2)
# How long after a ticket its event is posted, and how long after a failed attempt the next one is made.
POSTED_AFTER: Final = timedelta(seconds=1)
RETRIED_AFTER: Final = timedelta(seconds=10)
# One of this many deliveries succeeds only at the second attempt.
BUSY_EVERY: Final = 9
BUSY: Final = AttemptOutcome("The response was 503.", 503, 38, "try again")
MOVED: Final = AttemptOutcome(f"The response was {GONE}.", GONE, 41, "this receiver has moved")


async def add_endpoint(database: Database, organization_id: UUID, tickets: Sequence[Sale], *, vault: Vault) -> None:
    """Add the endpoint, unless the organization has one; these tickets are its last events."""
    async with database.transaction() as tx:
        if await list_endpoints(tx, organization_id):
            return
        references = [ByExternalId(ticket.external_id) for ticket in tickets[-DELIVERIES:]]
        found = await find_sales(tx, organization_id, references)
        sales = sorted(found.values(), key=lambda sale: sale.ticket.occurred_at)
        if not sales:
            return
        created = replace(tx, now=sales[0].ticket.occurred_at - CREATED_BEFORE)
        await create_endpoint(
            created,
            organization_id,
            url=URL,
            description=DESCRIPTION,
            event_types=EVENT_TYPES,
            policy=AddressPolicy(),
            vault=vault,
        )
        queue = DeliveryQueue(Sender(AddressPolicy()), vault, DeliveryMetrics(Metrics()))
        for number, sale in enumerate(sales, start=1):
            posted = replace(tx, now=sale.ticket.occurred_at + POSTED_AFTER)
            await post_events(posted, organization_id, [_event_of(sale, at=posted.now)])
            for wait, outcome in _outcomes(number, is_last=number == len(sales)):
                await _attempt(replace(tx, now=posted.now + wait), organization_id, queue, outcome)


def _event_of(sale: StoredSale, *, at: datetime) -> WebhookEvent:
    """The event of a sale that was received at this time, and not when the demo was loaded."""
    data = encode_sale(msgspec.structs.replace(sale, created_at=at))
    profile_id = None if sale.profile is None else sale.profile.id
    return WebhookEvent("sales_event.recorded", at, data, profile_id=profile_id)


def _outcomes(number: int, *, is_last: bool) -> list[tuple[timedelta, AttemptOutcome]]:
    """The attempts at a delivery: how long after its event each was made, and its outcome."""
    if is_last:
        return [(timedelta(0), MOVED)]
    # Between 35 and 95 ms.
    delivered = AttemptOutcome(None, HTTPStatus.OK, 35 + number * 37 % 61)
    if number % BUSY_EVERY == 0:
        return [(timedelta(0), BUSY), (RETRIED_AFTER, delivered)]
    return [(timedelta(0), delivered)]


async def _attempt(tx: Tx, organization_id: UUID, queue: DeliveryQueue, outcome: AttemptOutcome) -> None:
    """Claim the due delivery and store the outcome of an attempt."""
    until = tx.now + queue.claim_for
    claims = await queue.claim(tx, organization_id, limit=1, lowest=0, owner=queue.owner, until=until)
    await queue.complete(tx, organization_id, [(claim, outcome) for claim in claims])
