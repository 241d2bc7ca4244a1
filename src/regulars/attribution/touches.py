"""The touches of customers: texts that were sent to them, and their own clicks (not those of machines) on the links of
these texts."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from regulars.attribution.model import Touch, TouchKind
from regulars.attribution.queries import TOUCHES_BACK, find_deliveries
from regulars.kit.db import Tx
from regulars.links.counts import find_creditable_clicks


async def load_touches(tx: Tx, organization_id: UUID, customers: Mapping[UUID, datetime]) -> dict[UUID, list[Touch]]:
    """Load the touches by texts sent since 90 days before the time given for each customer, such as the time of
    a sale. A customer without touches is absent."""
    touches = await find_deliveries(tx, organization_id, customers)
    texts = {touch.text_id: touch for of_customer in touches.values() for touch in of_customer}
    if texts:
        since = min(customers.values()) - TOUCHES_BACK
        # The clock of the server that recorded a click may be ahead.
        until = tx.now + timedelta(days=1)
        for click in await find_creditable_clicks(tx, organization_id, touches.keys(), since=since, until=until):
            text = texts.get(click.text_id)
            if text is not None:
                # The time of a click is rounded down to the minute, so it may seem to be before the text.
                at = max(click.at, text.sent_at)
                touches[click.profile_id].append(text._replace(at=at, kind=TouchKind.CLICK))
    return touches
