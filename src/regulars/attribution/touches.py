"""The touches of customers: texts that left, and clicks of people on the links of their own texts."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from regulars.attribution.model import Touch, TouchKind
from regulars.attribution.queries import TOUCHES_BACK, find_deliveries
from regulars.kit.db import Tx
from regulars.messaging.links.counts import find_touches as find_clicks


async def load_touches(tx: Tx, organization_id: UUID, customers: Mapping[UUID, datetime]) -> dict[UUID, list[Touch]]:
    """Of the texts that each customer got in the 90 days before a moment. A customer without any is absent."""
    touches = await find_deliveries(tx, organization_id, customers)
    texts = {touch.text_id: touch for some in touches.values() for touch in some}
    if texts:
        since = min(customers.values()) - TOUCHES_BACK
        # The clock of a server may be ahead.
        until = tx.now + timedelta(days=1)
        for click in await find_clicks(tx, organization_id, touches.keys(), since=since, until=until):
            text = texts.get(click.text_id)
            if text is not None:
                # Of a click only the minute is known.
                at = max(click.at, text.sent_at)
                touches[click.profile_id].append(text._replace(at=at, kind=TouchKind.CLICK))
    return touches
