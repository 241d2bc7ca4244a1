"""How far an organization is: what it has of what the first steps ask for."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.first_run import queries
from regulars.first_run.queries import FirstTicket
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.organizations.manage import list_keys
from regulars.organizations.model import ApiKey
from regulars.request_log.model import Entry
from regulars.request_log.read import list_answers
from regulars.stores.find import list_stores
from regulars.stores.model import Store

ANSWERS_SHOWN: Final = 5
STEPS: Final = 4


@dataclass(frozen=True, slots=True)
class State:
    key: ApiKey | None
    store: Store | None
    ticket: FirstTicket | None
    has_consent: bool
    answers: list[Entry]

    @property
    def done(self) -> int:
        return sum([self.key is not None, self.store is not None, self.ticket is not None, self.has_consent])


async def look(tx: Tx, organization_id: UUID) -> State:
    keys = [key for key in await list_keys(tx.connection, organization_id) if key.revoked_at is None]
    stores = await list_stores(tx, organization_id, after=None, limit=1)
    return State(
        key=keys[0] if keys else None,
        store=stores[0] if stores else None,
        ticket=await queries.find_first_ticket(tx, organization_id),
        has_consent=await queries.has_consent(tx, organization_id),
        answers=await list_answers(tx, organization_id, PageRequest(ANSWERS_SHOWN)),
    )


async def first_ticket(tx: Tx, organization_id: UUID) -> FirstTicket | None:
    return await queries.find_first_ticket(tx, organization_id)
