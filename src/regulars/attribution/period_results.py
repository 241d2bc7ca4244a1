"""Loads what the texts of a period brought: attributed sales, sent texts and lifts (measured extra sales)."""

from collections.abc import Collection
from datetime import date
from typing import Final, NamedTuple
from uuid import UUID

from regulars.attribution.lift import Lift, SourceKind, read_lifts
from regulars.attribution.model import Origin
from regulars.attribution.month_sums import MonthSums, read_sums_by_month
from regulars.attribution.sent_texts import SentTexts, read_sent_by_month
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind

_SOURCES: Final = {OriginKind.CAMPAIGN: SourceKind.CAMPAIGN, OriginKind.JOURNEY: SourceKind.JOURNEY}
_ORIGINS: Final = {source: kind for kind, source in _SOURCES.items()}


class PeriodResults(NamedTuple):
    # The origins with texts or credits in the period.
    origins: set[Origin]
    sums: list[MonthSums]
    sent: list[SentTexts]
    lifts: list[Lift]

    def month_of(self, lift: Lift) -> date | None:
        """The month in which the lift's window began; until that is known, the month of the source's latest texts."""
        if lift.first_day is not None:
            return lift.first_day.replace(day=1)
        return max((it.month for it in self.sent if it.origin.id == lift.source.id), default=None)


async def load_results(
    tx: Tx, organization_id: UUID, *, first: date, last: date, kinds: Collection[str] = frozenset(OriginKind)
) -> PeriodResults:
    """The results of texts that left from `first` to `last` and whose origin is of one of these kinds."""
    all_sums = await read_sums_by_month(tx, organization_id, first=first, last=last)
    all_sent = await read_sent_by_month(tx, organization_id, first=first, last=last)
    sums = [it for it in all_sums if it.origin.kind in kinds]
    sent = [it for it in all_sent if it.origin.kind in kinds]
    origins = {it.origin for it in sums} | {it.origin for it in sent}
    ids = {kind: {it.id for it in origins if it.kind is kind} for kind in _SOURCES}
    lifts = [
        lift
        for kind, source in _SOURCES.items()
        for lift in await read_lifts(tx, organization_id, source, ids[kind], first=first, last=last)
    ]
    return PeriodResults(origins, sums, sent, lifts)


async def load_quarters(tx: Tx, organization_id: UUID, *, first: date, last: date) -> list[Lift]:
    """The lifts of all texts together, measured with the organization's global holdout, of the quarters that overlap
    the days from `first` to `last`."""
    lifts = await read_lifts(tx, organization_id, SourceKind.HOLDOUT, [organization_id])
    return [
        it
        for it in lifts
        if (it.first_day is None or it.first_day <= last) and (it.last_day is None or it.last_day >= first)
    ]


def origin_of(lift: Lift) -> Origin:
    """The campaign or journey whose texts a lift measures."""
    return Origin(_ORIGINS[lift.source.kind], lift.source.id)
