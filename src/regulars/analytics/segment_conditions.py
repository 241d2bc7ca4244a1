"""The members that a question is about, and the conditions of a segment of the customers in a figure."""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date
from uuid import UUID

from regulars.conditions import tree
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT, STORE
from regulars.sales.model import Currency
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.segments.analysis.questions import RFM_DAYS, RfmGroup
from regulars.segments.audience import resolve_audience
from regulars.segments.saved.resolve import query_of, resolve


async def resolve_members(tx: Tx, organization_id: UUID, segment_id: UUID | None) -> SegmentQuery:
    """The query for the members of a segment, or for all customers. Raises `AudienceRefused` if the segment was deleted
    or has a fault."""
    if segment_id is None:
        return query_of(await resolve(tx, organization_id, tree.All()), is_faulty=False)
    return await resolve_audience(tx, organization_id, include=[segment_id])


def rfm_conditions(
    group: RfmGroup, currency: Currency, *, segment_id: UUID | None, store_ids: Sequence[UUID] | None
) -> tree.All:
    """The conditions of an RFM group, with the thresholds of today; days are counted back from the day of
    evaluation."""
    stores, window = _stores(store_ids), tree.Window(last_days=RFM_DAYS)
    recency, days, net = group.recency_days, group.purchase_days, group.net
    conditions: list[tree.Condition] = []
    if recency.high is not None:
        within = tree.When(comparison="in_last_days", days=recency.high + 1)
        conditions.append(tree.LastPurchase(when=within, stores=stores))
    if recency.low:
        before = tree.When(comparison="not_in_last_days", days=recency.low, without_value=False)
        conditions.append(tree.LastPurchase(when=before, stores=stores))
    if days.low is not None or days.high is not None:
        bought = tree.Bought(count="days", at_least=days.low, at_most=days.high, window=window, stores=stores)
        conditions.append(bought)
    if net.low is not None or net.high is not None:
        spend = tree.Spend(
            currency=currency, at_least_cents=net.low, at_most_cents=net.high, window=window, stores=stores
        )
        conditions.append(spend)
    return _of_members(conditions, segment_id)


def cohort_conditions(
    first: date, month: int, *, segment_id: UUID | None, store_ids: Sequence[UUID] | None
) -> tree.All:
    """Customers of a cohort, given by the first day of its month, who bought in a later month; month 0 means all of
    them."""
    stores = _stores(store_ids)
    start, end = _month_after(first, 0)
    when = tree.When(comparison="between", from_=start, to=end)
    conditions: list[tree.Condition] = [tree.FirstPurchase(when=when)]
    for later in {month} | ({0} if stores else set()):
        if later or stores:
            start, end = _month_after(first, later)
            conditions.append(tree.Bought(window=tree.Window(from_=start, to=end), stores=stores))
    return _of_members(conditions, segment_id)


def product_conditions(
    code: str,
    currency: Currency | None,
    *,
    first: date,
    last: date,
    segment_id: UUID | None,
    store_ids: Sequence[UUID] | None,
) -> tree.All:
    """Customers who bought a product in a period; in one of several currencies, on a ticket where it cost 0 or more."""
    window, stores, products = tree.Window(from_=first, to=last), _stores(store_ids), (code,)
    bought: tree.Condition = tree.Bought(products=products, window=window, stores=stores)
    if currency is not None:
        bought = tree.TicketValue(currency=currency, at_least_cents=0, products=products, window=window, stores=stores)
    return _of_members([bought], segment_id)


def _stores(store_ids: Sequence[UUID] | None) -> tuple[str, ...]:
    return () if store_ids is None else tuple(map(STORE.encode, store_ids))


def _of_members(conditions: Sequence[tree.Condition], segment_id: UUID | None) -> tree.All:
    segment = () if segment_id is None else (tree.InSegment(id=SEGMENT.encode(segment_id)),)
    return tree.All(of=(*segment, *conditions))


def _month_after(first: date, months: int) -> tuple[date, date]:
    years, month = divmod(first.month - 1 + months, 12)
    start = date(first.year + years, month + 1, 1)
    return start, start.replace(day=monthrange(start.year, start.month)[1])
