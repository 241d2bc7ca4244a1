"""Builds the table of RFM groups (recency, frequency, money): names, rules as text, and links that create a segment."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.frame import segment_url
from regulars.analytics.segment_conditions import rfm_conditions
from regulars.sales.model import Currency
from regulars.segments.analysis.questions import RFM_DAYS, Range, RfmAnswer, RfmGroup, RfmName
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
    "group", "recency_days_from", "recency_days_to", "purchase_days_from", "purchase_days_to", "net_cents_from",
    "net_cents_to", "threshold_currency", "customers", "currency", "net_cents",
)  # fmt: skip


class GroupRow(NamedTuple):
    """A group with its rule, its share of the customers, and its net in each currency."""

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
    customers: str
    rows: Sequence[GroupRow]
    nets: Sequence[str]


def group_table(visit: Visit, view: AnalysisView, answer: RfmAnswer) -> GroupTable:
    formats = visit.format
    currencies = sorted(answer.net_cents, key=lambda currency: (-answer.net_cents[currency], currency))
    rows = [
        GroupRow(
            _name_group(group, answer.currency),
            _describe_rule(formats, group, answer.currency),
            formats.number(group.customers),
            formats.aligned_share(group.customers, answer.customers),
            [formats.money_rounded(group.net_cents.get(currency, 0), currency) for currency in currencies],
            _customers_url(visit, view, answer, group) if group.customers else "",
        )
        for group in answer.groups
        # The page leaves out groups that no customer can be in; the CSV file has all.
        if group.is_possible
    ]
    return GroupTable(
        currency=answer.currency,
        today=answer.today,
        currencies=currencies,
        customers=formats.number(answer.customers),
        rows=rows,
        nets=[formats.money_rounded(answer.net_cents[currency], currency) for currency in currencies],
    )


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


def csv_rows(answer: RfmAnswer) -> Iterator[list[str]]:
    for group in answer.groups:
        ranges = (group.recency_days, group.purchase_days, group.net)
        bounds = ["" if limit is None else str(limit) for limits in ranges for limit in (limits.low, limits.high)]
        start = [group.name, *bounds, answer.currency, str(group.customers)]
        for currency in answer.net_cents:
            yield [*start, currency, str(group.net_cents.get(currency, 0))]
