"""Customers as the pages of segments show them: name, their months, net spend, and whether they may be texted."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from regulars.conditions.loading import find_states
from regulars.conditions.tree import ConsentState
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.model import Profile
from regulars.profiles.search import find_by_ids
from regulars.sales.purchase_history import LIST_MONTHS, History, read_history
from regulars.sales.tickets import list_tickets_of_customers
from regulars.web.visit import Visit


class Person(NamedTuple):
    """`state` is what the split by consent counts them as."""

    profile: Profile
    state: ConsentState
    history: History

    @property
    def canonical(self) -> str:
        return PROFILE.encode(self.profile.id)


async def find_people(tx: Tx, visit: Visit, ids: Sequence[UUID]) -> list[Person]:
    """In the order of the ids; erased customers are left out."""
    profiles = {profile.id: profile for profile in await find_by_ids(tx, visit.organization_id, ids)}
    here = [profiles[identifier] for identifier in ids if identifier in profiles]
    tickets = await list_tickets_of_customers(tx, visit.organization_id, [profile.id for profile in here])
    states = await find_states(tx, visit.organization_id, [profile.id for profile in here])
    zone = visit.format.zone
    return [
        Person(
            profile,
            states[profile.id],
            read_history(tickets[profile.id], now=visit.now, zone=zone, months=LIST_MONTHS),
        )
        for profile in here
        if profile.id in states
    ]
