"""Credits purchases to texts: computes the credits of customers from their sales and touches (texts sent to them, and
clicks on links in these texts), and writes the rows that differ from the stored credits.

Credits depend only on the stored sales, texts and clicks, so the order in which these arrived does not matter.
The caller has locked the customers' rows in `attribution_customers`, so no other transaction computes them.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.attribution import queries
from regulars.attribution.model import Attributed, Credit, Touch, Touches, Windows, is_frozen
from regulars.attribution.month_sums import CREDITED
from regulars.attribution.touches import load_touches
from regulars.kit import failpoint
from regulars.kit.clock import in_zone
from regulars.kit.db import Tx
from regulars.sales.customer_sales import LoadedSale, find_customer_sales, match_loaded
from regulars.sales.returned_lines import RETURN_WITHIN, net_cents
from regulars.sales.totals.progress import find_time_zone


async def compute_customers(
    tx: Tx, organization_id: UUID, customers: Mapping[UUID, datetime], *, windows: Windows
) -> None:
    """Update the stored credits. `customers` maps profile ids to times: credits of texts that are 60 days old at that
    time are final (frozen) and do not change."""
    [computed] = await load_credits_by_windows(tx, organization_id, customers, [windows])
    stored = await queries.find_credits_of_customers(tx, organization_id, customers.keys())
    changeable = {it.sale_id: it for it in stored if it.profile_id and not it.is_frozen(customers[it.profile_id])}
    frozen = {it.sale_id for it in stored} - changeable.keys()
    updated = {it.sale_id: it for it in computed if it.sale_id not in frozen}
    await _save(tx, organization_id, before=changeable, after=updated)


async def load_credits_by_windows(
    tx: Tx, organization_id: UUID, customers: Mapping[UUID, datetime], versions: Sequence[Windows]
) -> list[list[Credit]]:
    """Compute the credits of customers that are not final, from their present sales, texts and clicks, once for each
    version of the attribution windows; sales and touches are read once."""
    touches = await load_touches(tx, organization_id, customers)
    since = {
        profile_id: min(touch.sent_at for touch in of_customer) - RETURN_WITHIN
        for profile_id, of_customer in touches.items()
        if any(not is_frozen(touch.sent_at, customers[profile_id]) for touch in of_customer)
    }
    if not since:
        return [[] for _ in versions]
    sales = await find_customer_sales(tx, organization_id, since)
    zone = ZoneInfo(await find_time_zone(tx, organization_id))
    return [
        [
            credit
            for profile_id, of_customer in sales.items()
            for credit in credit_sales(of_customer, touches[profile_id], windows=windows, zone=zone)
            if not is_frozen(credit.sent_at, customers[profile_id])
        ]
        for windows in versions
    ]


def credit_sales(
    sales: Sequence[LoadedSale], touches: Iterable[Touch], *, windows: Windows, zone: ZoneInfo
) -> list[Credit]:
    """The credits of one customer; sales and touches may be in any order."""
    customer_touches = Touches(touches)
    credited = {
        sale.id: (sale, touch)
        for sale in sales
        if not sale.is_return and (touch := customer_touches.choose(sale.occurred_at, windows)) is not None
    }
    if not credited:
        return []
    # Matches returns with the purchases of the returned articles.
    returns = match_loaded(sales)
    unmatched = _assign_unmatched(sales, [sale for sale, _ in credited.values()], returns.unmatched_cents)
    return [
        Credit(
            sale_id=sale.id,
            profile_id=sale.profile_id,
            text_id=touch.text_id,
            touch=touch.kind.value,
            touched_at=touch.at,
            window_hours=windows.of(touch.kind) // timedelta(hours=1),
            sent_at=touch.sent_at,
            day=in_zone(touch.sent_at, zone).date(),
            origin_kind=touch.origin.kind.value,
            origin_id=touch.origin.id,
            step=touch.origin.step,
            occurred_at=sale.occurred_at,
            currency=sale.currency,
            gross_cents=sale.total_cents,
            net_cents=net_cents(sale.total_cents, returns.returned_cents.get(sale.id, 0)),
            unmatched_cents=unmatched[sale.id],
        )
        for sale, touch in credited.values()
    ]


def _assign_unmatched(
    sales: Sequence[LoadedSale], credited: Sequence[LoadedSale], unmatched_cents: Mapping[UUID, int]
) -> Counter[UUID]:
    """Assign each returned amount that matches no purchase to the latest credited purchase in the same currency, if
    that was in the 30 days before the return."""
    by_currency: dict[str, list[LoadedSale]] = defaultdict(list)
    for sale in sorted(credited, key=_in_order):
        by_currency[sale.currency].append(sale)
    assigned: Counter[UUID] = Counter()
    for sale in sales:
        candidates = by_currency[sale.currency] if sale.id in unmatched_cents else []
        # How many candidates are before the return.
        before = bisect_left(candidates, _in_order(sale), key=_in_order)
        if before and sale.occurred_at - candidates[before - 1].occurred_at <= RETURN_WITHIN:
            assigned[candidates[before - 1].id] += unmatched_cents[sale.id]
    return assigned


def _in_order(sale: LoadedSale) -> tuple[datetime, str]:
    """The sort key by which purchases are earlier than a return, as in `returned_lines.py`."""
    return sale.occurred_at, sale.external_id


async def _save(tx: Tx, organization_id: UUID, *, before: Mapping[UUID, Credit], after: Mapping[UUID, Credit]) -> None:
    """Write the credits that differ, and change the totals of days and months by the difference."""
    changed = [it for it in after.values() if before.get(it.sale_id) != it]
    removed = [it for it in before.values() if it.sale_id not in after]
    replaced = [before[it.sale_id] for it in changed if it.sale_id in before]
    differences = [(queries.total_key(it), _negate(queries.sums_of(it))) for it in (*removed, *replaced)]
    differences += [(queries.total_key(it), queries.sums_of(it)) for it in changed]
    if removed:
        await queries.delete_credits(tx, organization_id, [it.sale_id for it in removed])
    if changed:
        await queries.upsert_credits(tx, organization_id, changed)
    failpoint.hit("attribution.credited", tx.connection.drop_connection)
    # The totals are the last rows that a writer locks.
    await CREDITED.add(tx, organization_id, differences)


def _negate(sums: Attributed) -> Attributed:
    return Attributed(*(-value for value in sums))
