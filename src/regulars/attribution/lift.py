"""What texts brought beyond what would have been bought anyway, measured with a holdout.

All customers of a group count, also those whose text was skipped or failed. A result is one currency of one source; the
queue in `lift_queue.py` computes it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from regulars.attribution import lift_queries as queries
from regulars.attribution.lift_queries import LiftRow
from regulars.campaigns.holdout import Holdout, find_holdouts
from regulars.kit.db import Tx
from regulars.segments.analysis.questions import LiftAnswer
from regulars.segments.effect import (
    SAMPLE_RATIO_P_MIN,
    Comparison,
    Estimate,
    add_up,
    compare,
    sample_ratio_p,
)

QUEUE: Final = "attribution.lift"
# A result is final so long after its window closes: the returns of its last purchase have come.
FINAL_AFTER: Final = timedelta(days=30)


class SourceKind(StrEnum):
    CAMPAIGN = "campaign"
    # A split step that is marked as holdout; the customers who passed it in one month.
    JOURNEY = "journey"
    # The organization's global holdout in one quarter; the id is that of the organization.
    HOLDOUT = "holdout"


class LiftSource(NamedTuple):
    kind: SourceKind
    id: UUID
    step: str = ""
    # A month such as 2026-11, or a quarter such as 2026-Q4; empty for a campaign.
    period: str = ""


class LiftState(StrEnum):
    NO_HOLDOUT = "no_holdout"
    # Purchases are still counted: no result yet.
    OPEN = "open"
    # Returns may still change it.
    PROVISIONAL = "provisional"
    FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """The lift of one source in one currency.

    `currency` is None where there is no result, or where no customer of both groups bought anything. `comparison` is
    None where there is no result, or where too few customers bought.
    """

    source: LiftSource
    state: LiftState
    currency: str | None = None
    # The window; both days belong to it.
    first_day: date | None = None
    last_day: date | None = None
    as_of: datetime | None = None
    # Why there is no result yet.
    reason: str | None = None
    # Customers who were to be texted, and customers who were held out.
    treated: int = 0
    held_out: int = 0
    # Customers of both groups who bought in the window.
    buyers: int = 0
    comparison: Comparison | None = None
    # A 95 % interval of the difference per head in cents, from random samples: a diagnostic.
    bootstrap: tuple[float, float] | None = None
    sample_ratio_p: float = 1.0

    @property
    def final_on(self) -> date | None:
        return None if self.last_day is None else self.last_day + FINAL_AFTER + timedelta(days=1)

    @property
    def has_result(self) -> bool:
        return self.state in {LiftState.PROVISIONAL, LiftState.FINAL}

    @property
    def expected_buyers(self) -> float:
        """In the smaller group, if both bought alike; `effect.BUYERS_MIN` are needed."""
        people = self.treated + self.held_out
        return self.buyers * min(self.treated, self.held_out) / people if people else 0.0

    @property
    def is_too_few(self) -> bool:
        return self.has_result and self.comparison is None

    @property
    def has_sample_ratio_alarm(self) -> bool:
        """The sizes of the groups cannot be explained by chance, so the result must not be trusted."""
        return self.sample_ratio_p < SAMPLE_RATIO_P_MIN

    @property
    def extra_cents(self) -> Estimate | None:
        """Net that the texts brought, with its interval; negative if they cost sales."""
        return None if self.comparison is None else self.comparison.extra_cents

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0; otherwise no effect could be shown."""
        return self.comparison is not None and self.comparison.adjusted.is_shown


class LiftSummary(NamedTuple):
    """Of several lifts in one currency: the state of what was measured, or why nothing was."""

    state: Literal["no_holdout", "open", "too_few", "provisional", "final"]
    # All that was measured, also without a shown effect.
    extra_cents: Estimate | None = None


def summarise(lifts: Sequence[Lift], currency: str) -> LiftSummary:
    of_currency = [it for it in lifts if it.currency == currency and it.comparison is not None]
    extras = [it.extra_cents for it in of_currency if it.extra_cents is not None]
    if extras:
        is_final = all(it.state is LiftState.FINAL for it in of_currency)
        return LiftSummary("final" if is_final else "provisional", add_up(extras))
    if any(it.state is LiftState.OPEN for it in lifts):
        return LiftSummary("open")
    return LiftSummary("too_few" if any(it.has_result for it in lifts) else "no_holdout")


async def read_lifts(tx: Tx, organization_id: UUID, kind: SourceKind, ids: Collection[UUID]) -> list[Lift]:
    """One for each source and currency, by source; at least one for each campaign."""
    rows = await queries.list_lifts(tx, organization_id, kind, ids)
    lifts = [lift for row in rows for lift in lifts_of(row)]
    if kind is SourceKind.CAMPAIGN:
        found = {row.source_id for row in rows}
        others = await find_holdouts(tx, organization_id, [it for it in ids if it not in found])
        lifts += [_without_row(holdout) for holdout in others.values()]
    return lifts


async def refresh_lifts(tx: Tx, organization_id: UUID) -> int:
    """Compute again what is provisional; returns how many lifts. The others are final, or their window is open."""
    tx.touched.add((QUEUE, organization_id))
    return await queries.make_provisional_due(tx, organization_id)


async def schedule_lift(
    tx: Tx,
    organization_id: UUID,
    source: LiftSource,
    *,
    held_out_share: float,
    window_days: int,
    days: tuple[date, date] | None = None,
    due_at: datetime | None = None,
) -> None:
    """Have the lift of a source computed when its window, `days`, has closed; scheduling twice is the same as once.

    Without days the queue finds them by itself (campaigns). `frozen_on`, the day before which earlier spend is
    compared, is the first day unless the queue finds another.
    """
    first_day, last_day = days or (None, None)
    row = LiftRow(*source, "open", held_out_share, window_days, first_day, last_day, first_day, None, None, None)
    await queries.insert_lift_if_new(tx, organization_id, row, due_at=due_at or tx.now)
    tx.touched.add((QUEUE, organization_id))


def lifts_of(row: LiftRow) -> list[Lift]:
    source = LiftSource(SourceKind(row.kind), row.source_id, row.step, row.period)
    bare = Lift(
        source=source,
        state=LiftState(row.state),
        first_day=row.first_day,
        last_day=row.last_day,
        as_of=row.as_of,
        reason=row.reason,
    )
    if row.result is None:
        return [bare]
    answer = msgspec.json.decode(row.result, type=LiftAnswer)
    sized = replace(
        bare,
        treated=answer.treated,
        held_out=answer.held_out,
        sample_ratio_p=sample_ratio_p(answer.treated, answer.held_out, held_out_share=row.held_out_share),
    )
    return [
        replace(
            sized,
            currency=sums.currency,
            buyers=sums.treated.buyers + sums.held_out.buyers,
            comparison=compare(sums.treated, sums.held_out),
            bootstrap=sums.bootstrap,
        )
        for sums in answer.sums
    ] or [sized]


def _without_row(holdout: Holdout) -> Lift:
    has_arms = holdout.percent > 0 and (holdout.ended_at is None or holdout.frozen_at is not None)
    return Lift(
        source=LiftSource(SourceKind.CAMPAIGN, holdout.campaign_id),
        state=LiftState.OPEN if has_arms else LiftState.NO_HOLDOUT,
    )
