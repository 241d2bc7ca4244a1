"""Finds out whether customers are in a segment, and why, from the tables, not from the columnar copy of customers.

First `resolve` loads the data that the conditions refer to, such as stores and other segments, and finds faults.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from regulars.conditions.check import Fault
from regulars.conditions.customers import ConditionExplanation, Customer, Subject
from regulars.conditions.evaluation import Evaluator
from regulars.conditions.loading import load_customers
from regulars.conditions.tree import All, Group, InSegment
from regulars.kit.db import Tx
from regulars.segments.saved.resolve import ResolvedSegment, resolve


@dataclass(frozen=True, slots=True)
class MembershipExplanation:
    """Whether a customer is a member, and the result of each condition. A segment with a fault has no members."""

    is_in: bool
    customer: Customer
    # The results of the conditions, nested like the conditions.
    tree: ConditionExplanation
    resolved: ResolvedSegment


async def explain(
    tx: Tx, organization_id: UUID, match: Group, profile_id: UUID, *, damage: Sequence[Fault] = ()
) -> MembershipExplanation | None:
    """Explain whether the customer is a member; None if there is no such customer. `damage` as of `resolve`."""
    resolved = await resolve(tx, organization_id, match, damage=damage)
    customers = await load_members(tx, organization_id, resolved, [profile_id], with_consent=True)
    if profile_id not in customers:
        return None
    customer = customers[profile_id]
    [(_, tree)] = evaluate_customers(resolved, [customer])
    return MembershipExplanation(tree.holds is True and not resolved.faults, customer, tree, resolved)


async def find_members(tx: Tx, organization_id: UUID, match: Group, profile_ids: Collection[UUID]) -> set[UUID]:
    """Find which of these customers are members."""
    resolved = await resolve(tx, organization_id, match)
    if resolved.faults:
        return set()
    customers = await load_members(tx, organization_id, resolved, set(profile_ids))
    return {customer.id for customer, tree in evaluate_customers(resolved, customers.values()) if tree.holds is True}


async def find_segments_of(tx: Tx, organization_id: UUID, segment_ids: Iterable[str], profile_id: UUID) -> set[str]:
    """Find which of these segments the customer is in."""
    resolved = await resolve(tx, organization_id, All(of=tuple(InSegment(id=segment_id) for segment_id in segment_ids)))
    customers = await load_members(tx, organization_id, resolved, [profile_id])
    if profile_id not in customers:
        return set()
    membership = Evaluator(resolved.context).find_segments(customers[profile_id], resolved.today)
    return {segment_id for segment_id in segment_ids if membership.get(segment_id) is True}


def evaluate_customers(
    resolved: ResolvedSegment, customers: Iterable[Customer]
) -> Iterable[tuple[Customer, ConditionExplanation]]:
    """Evaluate the conditions for each customer, ignoring faults of the definition."""
    evaluator = Evaluator(resolved.context)
    for customer in customers:
        membership = evaluator.find_segments(customer, resolved.today)
        yield customer, evaluator.explain(resolved.match, Subject(customer, resolved.today, membership))


async def load_members(
    tx: Tx, organization_id: UUID, resolved: ResolvedSegment, ids: Collection[UUID], *, with_consent: bool = False
) -> dict[UUID, Customer]:
    """Load the customers with all data that the segment and the segments it refers to need."""
    conditions = [resolved.match, *(segment.match for segment in resolved.context.segments.values())]
    zone, today = resolved.context.zone, resolved.today
    return await load_customers(tx, organization_id, conditions, ids, zone=zone, today=today, with_consent=with_consent)
