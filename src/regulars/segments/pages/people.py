"""Customers as the pages of segments show them: name, last purchase, net spend, and whether they may be texted."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.consent.browse.ledger import find_statuses
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.browse.search import find_by_ids
from regulars.profiles.model import Profile
from regulars.sales.browse.tickets import list_tickets_of_customers
from regulars.sales.totals.model import add_up, one_sum


class Person(NamedTuple):
    profile: Profile
    status: str | None
    last_purchase_at: datetime | None
    net: list[tuple[str, int]]

    @property
    def canonical(self) -> str:
        return PROFILE.encode(self.profile.id)


async def find_people(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[Person]:
    """In the order of the ids; whoever is gone since is left out."""
    profiles = {profile.id: profile for profile in await find_by_ids(tx, organization_id, ids)}
    here = [profiles[identifier] for identifier in ids if identifier in profiles]
    tickets = await list_tickets_of_customers(tx, organization_id, [profile.id for profile in here])
    statuses = await find_statuses(tx, organization_id, [profile.id for profile in here])
    people = []
    for profile in here:
        total = add_up(
            (one.currency, one_sum(one.type, tickets=1, identified=1, amount_cents=one.total_amount_cents))
            for one in tickets[profile.id]
        )
        bought = [one.occurred_at for one in tickets[profile.id] if one.type == "PURCHASE"]
        net = [(currency, sums.net_cents) for currency, sums in total.by_size()]
        people.append(Person(profile, statuses.get(profile.id), max(bought, default=None), net))
    return people
