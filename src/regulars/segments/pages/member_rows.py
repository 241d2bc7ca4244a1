"""Loads members as the pages of segments show them: name, purchases by month, net spend, and consent state."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from regulars.conditions.loading import find_states
from regulars.conditions.tree import ConsentState
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.model import Profile
from regulars.profiles.search import find_profiles_by_ids
from regulars.sales.purchase_history import LIST_MONTHS, History, read_history
from regulars.sales.tickets import list_tickets_of_customers
from regulars.web.visit import Visit


class MemberRow(NamedTuple):
    """A customer in a list of members; `state` is the consent state, `public_id` the API's id, with a prefix."""

    profile: Profile
    state: ConsentState
    history: History

    @property
    def public_id(self) -> str:
        return PROFILE.encode(self.profile.id)


async def find_members(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[tuple[Profile, ConsentState]]:
    """Find customers, in the order of the ids; erased customers are omitted."""
    profiles = {profile.id: profile for profile in await find_profiles_by_ids(tx, organization_id, ids)}
    states = await find_states(tx, organization_id, list(profiles))
    return [
        (profiles[profile_id], states[profile_id])
        for profile_id in ids
        if profile_id in profiles and profile_id in states
    ]


async def load_member_rows(tx: Tx, visit: Visit, ids: Sequence[UUID]) -> list[MemberRow]:
    """Find members with their purchase history, which is slow to load and which CSV files do not need."""
    members = await find_members(tx, visit.organization_id, ids)
    tickets = await list_tickets_of_customers(tx, visit.organization_id, [profile.id for profile, _ in members])
    zone = visit.format.zone
    return [
        MemberRow(profile, state, read_history(tickets[profile.id], now=visit.now, zone=zone, months=LIST_MONTHS))
        for profile, state in members
    ]
