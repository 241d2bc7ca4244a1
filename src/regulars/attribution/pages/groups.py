"""Loads the rows of the attribution overview: attributed sales, sent texts and lifts (measured extra sales), grouped by
origin (the campaign, journey or person that sent the texts) or by month."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Final, NamedTuple
from uuid import UUID

from regulars.analytics.period import parts_of
from regulars.attribution.lift import Lift, LiftState
from regulars.attribution.model import Attributed, Origin
from regulars.attribution.month_sums import MonthSums
from regulars.attribution.pages.filters import AttributionView
from regulars.attribution.pages.links import OriginName, encode_origin, name_origins, tickets_url
from regulars.attribution.period_results import PeriodResults, load_quarters, load_results, origin_of
from regulars.attribution.sent_texts import SentTexts
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.settings.model import Price
from regulars.texts.settings.store import load_texting
from regulars.web.visit import Visit

KIND_LABELS: Final = {OriginKind.CAMPAIGN: "Campaign", OriginKind.JOURNEY: "Journey"}


@dataclass(kw_only=True)
class Group:
    """One row: an origin or a month. `totals` and `currencies` are cached, so first fill the three lists."""

    # `kind` and `key` are columns of the CSV file.
    kind: str
    key: str
    name: str
    label: str = ""
    url: str = ""
    # The list of the credited tickets in all currencies.
    tickets_url: str = ""
    # Attributed sums and numbers of sent texts, by month and origin.
    sums: list[MonthSums] = field(default_factory=list)
    sent: list[SentTexts] = field(default_factory=list)
    lifts: list[Lift] = field(default_factory=list)

    @cached_property
    def totals(self) -> Mapping[str, Attributed]:
        """The attributed sums by currency."""
        totals: dict[str, Attributed] = {}
        for it in self.sums:
            totals[it.currency] = totals.get(it.currency, Attributed()) + it.sums
        return totals

    @cached_property
    def currencies(self) -> set[str]:
        return self.totals.keys() | {it.currency for it in self.lifts if it.currency is not None}

    @property
    def texts(self) -> int:
        return sum(it.texts for it in self.sent)

    @property
    def held_out(self) -> int:
        """The number of customers held out; each source is counted once, although it has a result for each currency."""
        return sum({it.source: it.held_out for it in self.lifts}.values())

    def total(self, currency: str) -> Attributed:
        return self.totals.get(currency, Attributed())

    def measured_cents(self, currency: str, measured: Iterable[Lift]) -> int:
        """The net that is attributed to texts whose lift was measured: the texts of a campaign, or of a journey in a
        month."""
        periods = {(it.source.id, period) for it in measured for period in it.periods}
        return sum(
            it.sums.net_cents
            for it in self.sums
            if it.currency == currency
            and ((it.origin.id, "") in periods or (it.origin.id, it.month.isoformat()[:7]) in periods)
        )


class Overview(NamedTuple):
    groups: list[Group]
    # The lifts of all texts together, measured with the organization's global holdout.
    quarters: list[Lift]
    prices: Mapping[str, Price]
    # Whether results are left out because they also cover texts outside the period.
    leaves_out: bool

    @property
    def currencies(self) -> list[str]:
        """The currencies, sorted by attributed net, largest first."""
        currencies = {it for group in self.groups for it in group.currencies}
        return sorted(currencies, key=lambda it: (-sum(group.total(it).net_cents for group in self.groups), it))


async def load_overview(tx: Tx, visit: Visit, view: AttributionView) -> Overview:
    kinds = {view.value("kind")} if view.value("kind") else frozenset(OriginKind)
    results = await load_results(tx, visit.organization_id, first=view.period.first, last=view.period.last, kinds=kinds)
    if view.value("by") == "month":
        groups = _group_by_month(visit, view, results)
    else:
        groups = _group_by_origin(visit, view, results, await name_origins(tx, visit, results.origins))
    quarters = await load_quarters(tx, visit.organization_id, first=view.period.first, last=view.period.last)
    texting = await load_texting(tx, visit.organization_id)
    return Overview(
        groups,
        quarters,
        {} if texting is None else texting.settings.prices,
        any(it.state is LiftState.OUTSIDE for it in results.lifts),
    )


def _group_by_origin(
    visit: Visit, view: AttributionView, results: PeriodResults, names: Mapping[UUID, OriginName]
) -> list[Group]:
    groups = {origin: _make_group(visit, view, origin, names[origin.id]) for origin in results.origins}
    for sums in results.sums:
        groups[sums.origin].sums.append(sums)
    for sent in results.sent:
        groups[sent.origin].sent.append(sent)
    for lift in results.lifts:
        groups[origin_of(lift)].lifts.append(lift)
    return list(groups.values())


def _make_group(visit: Visit, view: AttributionView, origin: Origin, origin_name: OriginName) -> Group:
    return Group(
        kind=origin.kind.value,
        key=encode_origin(origin),
        name=origin_name.name,
        label=KIND_LABELS.get(origin.kind, ""),
        url=f"{origin_name.url}/results" if origin_name.url else "",
        tickets_url=tickets_url(visit, view.period, origin),
    )


def _group_by_month(visit: Visit, view: AttributionView, results: PeriodResults) -> list[Group]:
    """The months of the period, newest first."""
    groups: dict[date, Group] = {}
    for month in reversed(parts_of(view.period, "month")):
        groups[month.first.replace(day=1)] = Group(
            kind="month",
            key=f"{month.first:%Y-%m}",
            name=visit.format.month(month.first),
            url=view.url(period=None, from_=month.first.isoformat(), to=month.last.isoformat(), by=None),
            tickets_url=tickets_url(visit, month),
        )
    for sums in results.sums:
        groups[sums.month].sums.append(sums)
    for sent in results.sent:
        groups[sent.month].sent.append(sent)
    for lift in results.lifts:
        first_of_month = results.month_of(lift)
        if first_of_month in groups:
            groups[first_of_month].lifts.append(lift)
    return [group for group in groups.values() if group.sums or group.sent or group.lifts]


def combine_groups(groups: Sequence[Group]) -> Group:
    """One group with the data of all groups."""
    return Group(
        kind="total",
        key="",
        name="",
        sums=[it for group in groups for it in group.sums],
        sent=[it for group in groups for it in group.sent],
        lifts=[it for group in groups for it in group.lifts],
    )
