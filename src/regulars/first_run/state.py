"""How many of the four first steps an organization has done (key, store, ticket, consent), and its last API
requests."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.organizations.manage import list_keys
from regulars.organizations.model import ApiKey
from regulars.request_log.entries import list_responses
from regulars.request_log.model import REFUSED_STATUS_MIN, RequestLogEntry
from regulars.stores.find import list_stores
from regulars.stores.model import Store

REQUESTS_SHOWN: Final = 5
STEPS: Final = 4


class FirstTicket(NamedTuple):
    id: UUID
    external_id: str
    created_at: datetime
    currency: str
    total_amount_cents: int
    store: str
    customer: str | None


class ReceivedRequest(NamedTuple):
    """A request to the API and, if it was refused, the reason."""

    entry: RequestLogEntry
    reason: str

    @property
    def is_refused(self) -> bool:
        return self.entry.status >= REFUSED_STATUS_MIN


@dataclass(frozen=True, slots=True)
class FirstRunState:
    key: ApiKey | None
    store: Store | None
    ticket: FirstTicket | None
    has_consent: bool
    requests: list[ReceivedRequest]

    @property
    def done(self) -> int:
        return sum([self.key is not None, self.store is not None, self.ticket is not None, self.has_consent])

    @property
    def is_complete(self) -> bool:
        return self.done == STEPS


async def read_state(tx: Tx, organization_id: UUID) -> FirstRunState:
    """Load the progress. `tx` must read one snapshot, so that no two parts of the page contradict each other."""
    keys = [key for key in await list_keys(tx.connection, organization_id) if key.revoked_at is None]
    stores = await list_stores(tx, organization_id, after=None, limit=1)
    # ORDER BY makes the planner use the index instead of scanning the table of all organizations.
    consents = await tx.fetch(
        "SELECT id FROM subscriptions WHERE organization_id = %s ORDER BY id LIMIT 1", (organization_id,)
    )
    return FirstRunState(
        key=keys[0] if keys else None,
        store=stores[0] if stores else None,
        ticket=await _find_first_ticket(tx, organization_id),
        has_consent=bool(consents),
        requests=[
            ReceivedRequest(entry, reason_of(entry))
            for entry in await list_responses(tx, organization_id, PageRequest(REQUESTS_SHOWN))
        ],
    )


async def _find_first_ticket(tx: Tx, organization_id: UUID) -> FirstTicket | None:
    """The ticket that was received first."""
    rows = await tx.fetch(
        "SELECT e.id, e.external_id, e.created_at, e.currency, e.total_amount_cents, coalesce(s.name, s.external_id),"
        " p.external_id FROM sales_events e"
        " JOIN stores s ON s.organization_id = %(organization_id)s AND s.id = e.store_id"
        " LEFT JOIN profiles p ON p.organization_id = %(organization_id)s AND p.id = e.profile_id"
        " WHERE e.organization_id = %(organization_id)s ORDER BY e.id LIMIT 1",
        {"organization_id": organization_id},
    )
    return FirstTicket(*rows[0]) if rows else None


def reason_of(entry: RequestLogEntry) -> str:
    """The error message of the response, which never contains a value that was sent."""
    return "" if entry.problem is None else str(json.loads(entry.problem).get("detail", ""))
