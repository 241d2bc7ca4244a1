"""Builds the table of RFM groups (recency, frequency, money): names, rules as text, and links that create a segment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.frame import CsvFile, raw_share, segment_url
from regulars.analytics.segment_conditions import rfm_conditions
from regulars.columns.questions import RFM_DAYS, Range, RfmAnswer, RfmGroup, RfmName
from regulars.sales.model import Currency
from regulars.web.format import Format
from regulars.web.visit import Visit

NAMES: Final[dict[RfmName, str]] = {
    "champions": "Champions",
    "loyal": "Loyal",
    "big_spenders": "Big spenders",
    "recent": "Recent",
    "slowing_high_value": "High value, slowing",
    "slowing": "Slowing",
    "at_risk_high_value": "High value, at risk",
    "at_risk": "At risk",
    "no_net": "No net sales",
    "lapsed": "Lapsed",
}
CSV_HEADER: Final = (
    "group", "name", "recency_days_from", "recency_days_to", "purchase_days_from", "purchase_days_to", "net_cents_from",
    "net_cents_to", "threshold_currency", "customers", "share",
)  # fmt: skip
# The values of the URL field `sort`: by customers, or by net in a currency; without it, groups have a fixed order.
SORT_BY_CUSTOMERS: Final = "customers"


def sort_by_net(currency: Currency) -> str:
    return f"net_{currency}"


class GroupRow(NamedTuple):
    """A group with its rule, its share of the customers, and its net in each currency, as text."""

    group: RfmGroup
    name: str
    rule: str
    customers: str
    share: str
    nets: list[str]
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    currency: Currency
    today: date
    currencies: Sequence[Currency]
    # How the user sorted the rows; empty for the fixed order.
    sort: str
    customers: str
    rows: Sequence[GroupRow]
    nets: Sequence[str]
    answer: RfmAnswer

    @property
    def sorts(self) -> list[str]:
        """For each column of net, how its heading sorts."""
        return list(map(sort_by_net, self.currencies))


def group_table(visit: Visit, view: AnalysisView, answer: RfmAnswer) -> GroupTable:
    formats = visit.format
    currencies = sorted(answer.net_cents, key=lambda currency: (-answer.net_cents[currency], currency))
    sort = view.value("sort")
    sort = sort if sort == SORT_BY_CUSTOMERS or sort in map(sort_by_net, currencies) else ""
    rows = [
        GroupRow(
            group,
            _name_group(group, answer.currency),
            _describe_rule(formats, group, answer.currency),
            formats.number(group.customers),
            formats.aligned_share(group.customers, answer.customers),
            [formats.money_rounded(group.net_cents.get(currency, 0), currency) for currency in currencies],
            _customers_url(visit, view, answer, group) if group.customers else "",
        )
        for group in _sort_groups(answer, sort)
    ]
    return GroupTable(
        currency=answer.currency,
        today=answer.today,
        currencies=currencies,
        sort=sort,
        customers=formats.number(answer.customers),
        rows=rows,
        nets=[formats.money_rounded(answer.net_cents[currency], currency) for currency in currencies],
        answer=answer,
    )


def _sort_groups(answer: RfmAnswer, sort: str) -> list[RfmGroup]:
    """The groups that a customer can be in, the largest value first."""
    groups = [group for group in answer.groups if group.is_possible]
    if not sort:
        return groups
    if sort == SORT_BY_CUSTOMERS:
        return sorted(groups, key=lambda group: -group.customers)
    nets = {sort_by_net(currency): currency for currency in answer.net_cents}
    return sorted(groups, key=lambda group: -group.net_cents.get(nets[sort], 0))


def _customers_url(visit: Visit, view: AnalysisView, answer: RfmAnswer, group: RfmGroup) -> str:
    match = rfm_conditions(group, answer.currency, segment_id=view.segment_id, store_ids=view.store_ids)
    return segment_url(visit, match)


def _name_group(group: RfmGroup, currency: Currency) -> str:
    """The group without net sales is named with its currency, since its customers may buy in another currency."""
    return f"{NAMES[group.name]} in {currency}" if group.name == "no_net" else NAMES[group.name]


def _describe_rule(formats: Format, group: RfmGroup, currency: Currency) -> str:
    if group.name == "lapsed":
        return f"No purchase in the last {formats.number(RFM_DAYS)} days"
    recency = _describe_range(group.recency_days, formats.number)
    frequency = _describe_range(group.purchase_days, formats.number)
    net = _describe_range(group.net, lambda cents: formats.money(cents, currency))
    sentences = (
        f"Last purchase {recency} days ago" if recency else "",
        f"{frequency} purchase days in 24 months" if frequency else "",
        f"net {net}" if net else "",
    )
    return ", ".join(sentence for sentence in sentences if sentence)


def _describe_range(bounds: Range, show: Callable[[int], str]) -> str:
    low, high = bounds.low, bounds.high
    if low is None:
        return "" if high is None else f"at most {show(high)}"
    if high is None:
        return f"{show(low)} or more"
    return show(low) if low == high else f"{show(low)} to {show(high)}"


def group_file(table: GroupTable) -> CsvFile:
    answer, rows = table.answer, []
    for row in table.rows:
        ranges = (row.group.recency_days, row.group.purchase_days, row.group.net)
        bounds = ["" if limit is None else str(limit) for limits in ranges for limit in (limits.low, limits.high)]
        nets = [str(row.group.net_cents.get(currency, 0)) for currency in table.currencies]
        counts = [str(row.group.customers), raw_share(row.group.customers, answer.customers)]
        rows.append([row.group.name, row.name, *bounds, table.currency, *counts, *nets])
    total = [str(answer.customers), raw_share(answer.customers, answer.customers)]
    nets = [str(answer.net_cents[currency]) for currency in table.currencies]
    rows.append(["total", "All groups", *[""] * 6, table.currency, *total, *nets])
    header = (*CSV_HEADER, *(f"net_cents_{currency}" for currency in table.currencies))
    return CsvFile("groups.csv", header, rows)
