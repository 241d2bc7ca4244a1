"""The filters and sort orders of the list of customers. Each filter becomes a segment condition, so that the analysis
process can evaluate all filters together, and the user can save them as a segment."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, get_args

from regulars.columns.protocol import Order
from regulars.conditions.labels import STATES
from regulars.conditions.tree import All, Bought, Condition, Consent, ConsentState, InSegment, LastPurchase, Spend, When
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.sales.model import Currency
from regulars.sales.totals.reports import find_last_currency
from regulars.segments.saved.manage import list_segments
from regulars.stores.find import list_stores
from regulars.web.access import Action
from regulars.web.listing import Filter, ListView
from regulars.web.visit import Visit

STORES_OFFERED_MAX: Final = 200
SORTS: Final[dict[str, Order]] = {"newest": "created", "last": "last_purchase", "spend": "spend"}
NEVER: Final = "never"
# The choices of the filter "Last purchase": "90" is in the last 90 days, "-90" before the last 90 days.
LAST_PURCHASE_CHOICES: Final = (
    ("30", "In the last 30 days"),
    ("90", "In the last 90 days"),
    ("365", "In the last 365 days"),
    ("-90", "Before the last 90 days"),
    ("-365", "Before the last 365 days"),
    (NEVER, "Never"),
)
# The columns that can be hidden: their name in the address, and their title.
COLUMNS: Final = {
    "number": "Phone number",
    "months": "Last 12 months",
    "last": "Last purchase",
    "tickets": "Tickets",
    "spend": "Net spend",
    "texting": "Consent",
}
_AMOUNT: Final = re.compile(r"([0-9]{1,12})(?:[.,]([0-9]{1,2}))?\s*([A-Za-z]{3})?")


@dataclass(frozen=True, slots=True)
class CustomerSelection:
    """The filters (`match`) and the sort order in the address; `fault` is the message about an invalid filter."""

    match: All
    order: Order
    currency: Currency
    fault: str | None = None


async def offer_filters(tx: Tx, visit: Visit) -> list[Filter]:
    """The filters that this user can choose: a filter by store or segment only if there is one."""
    placeholder = "Name, phone number or customer ID" if visit.sees_personal else "Customer ID (prof_…)"
    stores = await list_stores(tx, visit.organization_id, after=None, limit=STORES_OFFERED_MAX)
    segments = await list_segments(tx, visit.organization_id) if visit.may(Action.READ_SEGMENTS) else []
    offered = [
        Filter("q", "Search customers", kind="search", placeholder=placeholder),
        Filter("texting", "Consent", tuple(STATES.items())),
        Filter("store", "Bought in store", tuple((store.external_id, store.display_name) for store in stores)),
        Filter("last", "Last purchase", LAST_PURCHASE_CHOICES),
        Filter("spend", "Net spend, at least", placeholder="500 or 500 CHF"),
        Filter("segment", "In segment", tuple((SEGMENT.encode(segment.id), segment.name) for segment in segments)),
        Filter("hide", "Columns left out", kind="hidden"),
    ]
    return [each for each in offered if each.choices or each.name not in {"store", "segment"}]


async def read_selection(tx: Tx, visit: Visit, view: ListView) -> CustomerSelection:
    last_currency: Currency | None = await find_last_currency(tx, visit.organization_id)
    currency: Currency = last_currency or "EUR"
    conditions: list[Condition] = []
    if texting := view.value("texting"):
        conditions += [Consent(state=state) for state in get_args(ConsentState) if state == texting]
    if store := view.value("store"):
        conditions.append(Bought(stores=(store,)))
    if days := view.value("last"):
        conditions.append(_last_purchase_condition(days))
    fault = None
    if spend := view.value("spend"):
        amount = read_amount(spend, currency)
        if amount is None:
            fault = f"“{spend}” is not an amount. Write it as 500, 500.50 or 500 CHF."
        else:
            cents, currency = amount
            conditions.append(Spend(currency=currency, at_least_cents=cents))
    if segment := view.value("segment"):
        conditions.append(InSegment(id=segment))
    return CustomerSelection(All(of=tuple(conditions)), SORTS[view.sort], currency, fault)


def read_amount(text: str, currency: Currency) -> tuple[int, Currency] | None:
    """Parse an amount to cents and currency; `currency` applies if the text names none. None if the text is not an
    amount, or the currency is not supported."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    units, decimals, code = match.groups()
    supported = [each for each in get_args(Currency) if each == (code or currency).upper()]
    return (int(Decimal(f"{units}.{decimals or 0}") * 100), supported[0]) if supported else None


def _last_purchase_condition(days: str) -> Condition:
    if days == NEVER:
        return Bought(none=True)
    if days.startswith("-"):
        # Customers who never bought do not match.
        return LastPurchase(
            when=When(comparison="not_in_last_days", days=int(days.removeprefix("-")), without_value=False)
        )
    return LastPurchase(when=When(comparison="in_last_days", days=int(days)))
