"""Converts the number that a user clicks in analytics to conditions, which select the customers counted in it.

A user can create a segment from the conditions of an RFM group (recency, frequency, money), of a cohort (customers who
first bought in the same month) and of a product.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date
from uuid import UUID

from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import RFM_DAYS, RfmGroup
from regulars.conditions import tree
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT, STORE
from regulars.sales.model import Currency
from regulars.segments.audience import resolve_audience
from regulars.segments.saved.resolve import query_of, resolve


async def resolve_members(tx: Tx, organization_id: UUID, segment_id: UUID | None) -> SegmentQuery:
    """Build the query for the members of a segment, or for all customers without a segment. Raises `AudienceRefused` if
    the segment was deleted or has a fault."""
    if segment_id is None:
        return query_of(await resolve(tx, organization_id, tree.All()), is_faulty=False)
    return await resolve_audience(tx, organization_id, include=[segment_id])


def rfm_conditions(
    group: RfmGroup, currency: Currency, *, segment_id: UUID | None, store_ids: Sequence[UUID] | None
) -> tree.All:
    """The conditions of an RFM group, with the thresholds of today. Each evaluation counts days back from its own
    day."""
    stores, window = _encode_stores(store_ids), tree.Window(last_days=RFM_DAYS)
    recency, days, net = group.recency_days, group.purchase_days, group.net
    conditions: list[tree.Condition] = []
    if recency.high is not None:
        # A purchase `high` days ago is in the last `high + 1` days, since today counts.
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
    return _add_segment(conditions, segment_id)


def cohort_conditions(
    first: date, month: int, *, up_to: bool = False, segment_id: UUID | None, store_ids: Sequence[UUID] | None
) -> tree.All:
    """The conditions of customers who first bought in the month that begins at `first`, and again `month` months later;
    with `up_to`, in any month after the first up to that month. With month 0, a second purchase is not required."""
    stores = _encode_stores(store_ids)
    start, end = _days_of_month_after(first, 0)
    when = tree.When(comparison="between", from_=start, to=end)
    conditions: list[tree.Condition] = [tree.FirstPurchase(when=when)]
    # The first purchase is that at all stores. With a choice of stores, a purchase there in month 0 is required too.
    if stores:
        conditions.append(tree.Bought(window=tree.Window(from_=start, to=end), stores=stores))
    if month:
        start, end = _days_of_month_after(first, 1 if up_to else month)[0], _days_of_month_after(first, month)[1]
        conditions.append(tree.Bought(window=tree.Window(from_=start, to=end), stores=stores))
    return _add_segment(conditions, segment_id)


def product_conditions(
    code: str,
    currency: Currency | None,
    *,
    first: date,
    last: date,
    segment_id: UUID | None,
    store_ids: Sequence[UUID] | None,
) -> tree.All:
    """The conditions of customers who bought a product in a period. With a currency, the product must cost 0 or more on
    at least one ticket in that currency."""
    window, stores, products = tree.Window(from_=first, to=last), _encode_stores(store_ids), (code,)
    bought: tree.Condition = tree.Bought(products=products, window=window, stores=stores)
    if currency is not None:
        bought = tree.TicketValue(currency=currency, at_least_cents=0, products=products, window=window, stores=stores)
    return _add_segment([bought], segment_id)


def _encode_stores(store_ids: Sequence[UUID] | None) -> tuple[str, ...]:
    return () if store_ids is None else tuple(map(STORE.encode, store_ids))


def _add_segment(conditions: Sequence[tree.Condition], segment_id: UUID | None) -> tree.All:
    segment = () if segment_id is None else (tree.InSegment(id=SEGMENT.encode(segment_id)),)
    return tree.All(of=(*segment, *conditions))


def _days_of_month_after(first: date, months: int) -> tuple[date, date]:
    years, month = divmod(first.month - 1 + months, 12)
    start = date(first.year + years, month + 1, 1)
    return start, start.replace(day=monthrange(start.year, start.month)[1])
