"""Ask about customers: whether they are in a segment, and why."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import All, Group, InSegment
from regulars.segments.explain.evaluate import Judge
from regulars.segments.explain.look import look
from regulars.segments.explain.model import Customer, Explained
from regulars.segments.kept.resolve import Other, Resolved, resolve


@dataclass(frozen=True, slots=True)
class Why:
    """A customer in or out. With a fault in the segment nobody is in it, whatever the conditions say."""

    is_in: bool
    customer: Customer
    tree: Explained
    resolved: Resolved


@dataclass(frozen=True, slots=True)
class Memberships:
    """Which customers are in which segments, by the ids that were asked for; one that does not exist has nobody."""

    others: dict[str, Other]
    members: set[tuple[UUID, str]]
    judge: Judge | None = None
    customers: Mapping[UUID, Customer] = field(default_factory=dict)

    def is_in(self, profile_id: UUID, segment_id: str) -> bool:
        return (profile_id, segment_id) in self.members

    def with_attributes(self, profile_id: UUID, attributes: Mapping[str, str]) -> "Memberships":
        """Of this customer, if they had these attributes."""
        customer = self.customers.get(profile_id)
        if self.judge is None or customer is None:
            return self
        return replace(self, members=_find(self.judge, self.others, [replace(customer, attributes=attributes)]))


async def explain(tx: Tx, organization_id: UUID, match: Group, profile_id: UUID) -> Why | None:
    """None: there is no such customer."""
    resolved = await resolve(tx, organization_id, match)
    customers = await look(tx, organization_id, resolved, [profile_id], with_consent=True)
    if profile_id not in customers:
        return None
    judge, customer = Judge(resolved), customers[profile_id]
    return Why(judge.is_in(customer), customer, judge.explain(customer), resolved)


async def find_members(tx: Tx, organization_id: UUID, match: Group, profile_ids: Collection[UUID]) -> set[UUID]:
    """Those among the customers who are in it."""
    resolved = await resolve(tx, organization_id, match)
    judge = Judge(resolved)
    customers = await look(tx, organization_id, resolved, set(profile_ids))
    return {customer.id for customer in customers.values() if judge.is_in(customer)}


async def find_memberships(
    tx: Tx, organization_id: UUID, segment_ids: Collection[str], profile_ids: Collection[UUID]
) -> Memberships:
    """Of several customers in several segments, with one look for all of them."""
    wanted = sorted({segment_id for segment_id in segment_ids if SEGMENT.decode(segment_id) is not None})
    if not wanted or not profile_ids:
        return Memberships({}, set())
    resolved = await resolve(tx, organization_id, All(of=tuple(InSegment(id=it) for it in wanted)))
    judge = Judge(resolved)
    customers = await look(tx, organization_id, resolved, set(profile_ids))
    others = dict(resolved.others)
    return Memberships(others, _find(judge, others, customers.values()), judge, customers)


def _find(judge: Judge, segment_ids: Collection[str], customers: Collection[Customer]) -> set[tuple[UUID, str]]:
    return {
        (customer.id, segment_id)
        for customer in customers
        for segment_id in segment_ids
        if judge.is_in_other(segment_id, customer)
    }
