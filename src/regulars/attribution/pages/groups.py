"""The rows of the overview before they are formatted: what was attributed, sent and measured, by origin or month."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Final, NamedTuple
from uuid import UUID

from regulars.analytics.period import parts_of
from regulars.attribution.lift import Lift, SourceKind, measured, read_lifts
from regulars.attribution.model import Attributed, Origin
from regulars.attribution.month_sums import MonthSums, read_sums_by_month
from regulars.attribution.pages.filters import AttributionView
from regulars.attribution.pages.links import OriginName, encode_origin, name_origins, tickets_url
from regulars.attribution.sent_texts import SentTexts, read_sent_by_month
from regulars.kit.db import Tx
from regulars.messaging.model import OriginKind
from regulars.messaging.settings.model import Price
from regulars.messaging.settings.store import load_texting
from regulars.web.visit import Visit

KIND_LABELS: Final = {OriginKind.CAMPAIGN: "Campaign", OriginKind.JOURNEY: "Journey"}
_SOURCES: Final = {OriginKind.CAMPAIGN: SourceKind.CAMPAIGN, OriginKind.JOURNEY: SourceKind.JOURNEY}


@dataclass(kw_only=True)
class Group:
    """What one row is about: an origin, or a month. Totals are computed once, after all figures were added."""

    # In the CSV file.
    kind: str
    key: str
    name: str
    label: str = ""
    url: str = ""
    # Of its tickets in all currencies.
    tickets_url: str = ""
    sums: list[MonthSums] = field(default_factory=list)
    sent: list[SentTexts] = field(default_factory=list)
    lifts: list[Lift] = field(default_factory=list)

    @cached_property
    def totals(self) -> Mapping[str, Attributed]:
        """What is attributed, by currency."""
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

    def measured_cents(self, currency: str) -> int:
        """What is attributed to the texts that were measured: those of a campaign, or of a journey in a month."""
        cells = {(it.source.id, period) for it in measured(self.lifts, currency) for period in it.periods}
        return sum(
            it.sums.net_cents
            for it in self.sums
            if it.currency == currency
            and ((it.origin.id, "") in cells or (it.origin.id, it.month.isoformat()[:7]) in cells)
        )


class Overview(NamedTuple):
    groups: list[Group]
    # Of all texts together, by the global holdout.
    holdouts: list[Lift]
    prices: Mapping[str, Price]

    @property
    def currencies(self) -> list[str]:
        """The currencies, sorted by attributed net, largest first."""
        known = {it for group in self.groups for it in group.currencies}
        return sorted(known, key=lambda it: (-sum(group.total(it).net_cents for group in self.groups), it))


class _Figures(NamedTuple):
    sums: list[MonthSums]
    sent: list[SentTexts]
    lifts: list[Lift]
    names: Mapping[UUID, OriginName]


async def load_overview(tx: Tx, visit: Visit, view: AttributionView) -> Overview:
    figures = await _load_figures(tx, visit, view)
    make = _group_by_month if view.value("by") == "month" else _group_by_origin
    found = await read_lifts(tx, visit.organization_id, SourceKind.HOLDOUT, [visit.organization_id])
    holdouts = [lift for lift in found if lift.last_day is None or lift.last_day >= view.period.first]
    texting = await load_texting(tx, visit.organization_id)
    return Overview(make(visit, view, figures), holdouts, {} if texting is None else texting.settings.prices)


async def _load_figures(tx: Tx, visit: Visit, view: AttributionView) -> _Figures:
    organization_id, first, last = visit.organization_id, view.period.first, view.period.last
    kinds = {view.value("kind")} if view.value("kind") else {kind.value for kind in OriginKind}
    sums = [
        it for it in await read_sums_by_month(tx, organization_id, first=first, last=last) if it.origin.kind in kinds
    ]
    sent = [
        it for it in await read_sent_by_month(tx, organization_id, first=first, last=last) if it.origin.kind in kinds
    ]
    origins = {it.origin for it in sums} | {it.origin for it in sent}
    ids = {kind: {it.id for it in origins if it.kind is kind} for kind in _SOURCES}
    lifts = [
        lift
        for kind, source in _SOURCES.items()
        for lift in await read_lifts(tx, organization_id, source, ids[kind], first=first, last=last)
    ]
    return _Figures(sums, sent, lifts, await name_origins(tx, visit, origins))


def _group_by_origin(visit: Visit, view: AttributionView, figures: _Figures) -> list[Group]:
    origins = {it.origin for it in figures.sums} | {it.origin for it in figures.sent}
    groups = {origin: _group_of(visit, view, origin, figures.names[origin.id]) for origin in origins}
    for sums in figures.sums:
        groups[sums.origin].sums.append(sums)
    for sent in figures.sent:
        groups[sent.origin].sent.append(sent)
    for lift in figures.lifts:
        origin = Origin(OriginKind(lift.source.kind.value), lift.source.id)
        if origin in groups:
            groups[origin].lifts.append(lift)
    return list(groups.values())


def _group_of(visit: Visit, view: AttributionView, origin: Origin, named: OriginName) -> Group:
    return Group(
        kind=origin.kind.value,
        key=encode_origin(origin),
        name=named.name,
        label=KIND_LABELS.get(origin.kind, ""),
        url=f"{named.url}/results" if named.url else "",
        tickets_url=tickets_url(visit, view.period, origin),
    )


def _group_by_month(visit: Visit, view: AttributionView, figures: _Figures) -> list[Group]:
    """The newest first."""
    groups: dict[date, Group] = {}
    for part in reversed(parts_of(view.period, "month")):
        groups[part.first.replace(day=1)] = Group(
            kind="month",
            key=f"{part.first:%Y-%m}",
            name=visit.format.month(part.first),
            url=view.url(period=None, from_=part.first.isoformat(), to=part.last.isoformat(), by=None),
            tickets_url=tickets_url(visit, part),
        )
    for sums in figures.sums:
        groups[sums.month].sums.append(sums)
    for sent in figures.sent:
        groups[sent.month].sent.append(sent)
    for lift in figures.lifts:
        month = _month_of(lift, figures)
        if month in groups:
            groups[month].lifts.append(lift)
    return [group for group in groups.values() if group.sums or group.sent]


def _month_of(lift: Lift, figures: _Figures) -> date | None:
    """The month in which its window began; before that is known, the one of its latest texts."""
    if lift.first_day is not None:
        return lift.first_day.replace(day=1)
    return max((it.month for it in figures.sent if it.origin.id == lift.source.id), default=None)


def unite(groups: Sequence[Group]) -> Group:
    """All rows together."""
    return Group(
        kind="total",
        key="",
        name="",
        sums=[it for group in groups for it in group.sums],
        sent=[it for group in groups for it in group.sent],
        lifts=[it for group in groups for it in group.lifts],
    )
