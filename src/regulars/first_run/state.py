"""How many of the four first steps an organization has done (key, store, ticket, consent), and its last API
requests."""

import json
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from regulars.first_run import queries
from regulars.first_run.queries import FirstTicket
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
    return FirstRunState(
        key=keys[0] if keys else None,
        store=stores[0] if stores else None,
        ticket=await queries.find_first_ticket(tx, organization_id),
        has_consent=await queries.has_consent(tx, organization_id),
        requests=[
            ReceivedRequest(entry, reason_of(entry))
            for entry in await list_responses(tx, organization_id, PageRequest(REQUESTS_SHOWN))
        ],
    )


def reason_of(entry: RequestLogEntry) -> str:
    """The error message of the response, which never contains a value that was sent."""
    return "" if entry.problem is None else str(json.loads(entry.problem).get("detail", ""))
