"""Lift: how much more customers bought because of texts, measured against a holdout of customers who got none.

All customers of a group are counted, including those whose text was skipped or failed. A source (a campaign, a month of
a journey, a quarter) has one result per currency, which the queue in `lift_queue.py` computes.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from regulars.attribution import lift_queries as queries
from regulars.attribution.lift_queries import LiftRow
from regulars.campaigns.holdout import Holdout, find_holdouts
from regulars.columns.questions import LiftAnswer
from regulars.experiments.effect import (
    SAMPLE_RATIO_P_MIN,
    EffectEstimate,
    LiftComparison,
    add_up,
    compare,
    sample_ratio_p,
)
from regulars.experiments.sums import ArmSums
from regulars.kit.db import Tx

QUEUE: Final = "attribution.lift"
# A result is final this long after its window closes, when the returns of the last purchase have been recorded.
FINAL_AFTER: Final = timedelta(days=30)
_ANSWER_DECODER: Final = msgspec.json.Decoder(LiftAnswer)


class SourceKind(StrEnum):
    CAMPAIGN = "campaign"
    # A split step of a journey that is marked as holdout, with the customers who passed it in one month.
    JOURNEY = "journey"
    # The organization's global holdout in one quarter; `LiftSource.id` is the organization's id.
    HOLDOUT = "holdout"


class LiftSource(NamedTuple):
    kind: SourceKind
    id: UUID
    step: str = ""
    # A month such as 2026-11, or a quarter such as 2026-Q4; empty for a campaign.
    period: str = ""


class LiftState(StrEnum):
    NO_HOLDOUT = "no_holdout"
    # There may be a result, but it also covers texts outside the period that is read, so it is not compared with the
    # credits of the period. Such a lift has no sums.
    OUTSIDE = "outside"
    # The window is not over, so there is no result yet.
    OPEN = "open"
    # Returns may still change the result.
    PROVISIONAL = "provisional"
    FINAL = "final"


class Lift(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The lift of one source in one currency. A page makes a thousand, so it is a struct, which is made quickly.

    `currency` is None where there is no result, or where no customer of either group bought anything.
    """

    source: LiftSource
    state: LiftState
    currency: str | None = None
    # The first and the last day of the window.
    first_day: date | None = None
    last_day: date | None = None
    # When the sales of the result were read.
    as_of: datetime | None = None
    # Why there is no result, or why it was not computed again.
    reason: str | None = None
    # The numbers of customers who were meant to be texted, and who were held out.
    treated: int = 0
    held_out: int = 0
    # Customers of both groups who bought in the window.
    buyers: int = 0
    # The sums of both groups, also where too few customers bought, because the months of a journey are added up.
    arms: tuple[ArmSums, ArmSums] | None = None
    # The months of a journey whose sums this lift contains.
    months: tuple[str, ...] = ()
    # A 95 % interval of the difference per customer in cents, from random samples, which pages show as a diagnostic.
    bootstrap: tuple[float, float] | None = None
    held_out_share: float = 0.0
    sample_ratio_p: float = 1.0

    @cached_property
    def comparison(self) -> LiftComparison | None:
        """None where there is no result, or where too few customers bought. Computed on demand, because a page shows
        one currency of several."""
        return None if self.arms is None else compare(*self.arms)

    @property
    def periods(self) -> tuple[str, ...]:
        """The months of a merged lift, or the period of its source."""
        return self.months or (self.source.period,)

    @property
    def final_on(self) -> date | None:
        """The day from which the result is final."""
        return None if self.last_day is None else self.last_day + FINAL_AFTER + timedelta(days=1)

    @property
    def has_no_text(self) -> bool:
        """The campaign ended before its first text, so there will be no result. A final lift has no other reason."""
        return self.state is LiftState.FINAL and self.reason is not None

    @property
    def has_result(self) -> bool:
        return self.state in {LiftState.PROVISIONAL, LiftState.FINAL} and not self.has_no_text

    @property
    def expected_buyers(self) -> float:
        """The buyers that the smaller group would have if both groups bought equally often."""
        people = self.treated + self.held_out
        return self.buyers * min(self.treated, self.held_out) / people if people else 0.0

    @property
    def has_too_few_buyers(self) -> bool:
        return self.has_result and self.comparison is None

    @property
    def has_sample_ratio_alarm(self) -> bool:
        """The sizes of the groups cannot be explained by chance, so the result must not be trusted."""
        return self.sample_ratio_p < SAMPLE_RATIO_P_MIN

    @property
    def extra_cents(self) -> EffectEstimate | None:
        """The extra net sales that the texts brought, with an interval; negative if the texts cost sales."""
        return None if self.comparison is None else self.comparison.extra_cents

    @property
    def is_shown(self) -> bool:
        """Whether the interval of the difference, adjusted for earlier spend, excludes 0; otherwise no effect could be
        shown."""
        return self.comparison is not None and self.comparison.adjusted.is_shown


class LiftSummary(NamedTuple):
    """The sum of several lifts in one currency; if none was measured, `state` says why."""

    state: Literal["no_holdout", "no_text", "outside", "open", "too_few", "provisional", "final"]
    # The sum over all measured lifts, also those whose interval includes 0.
    extra_cents: EffectEstimate | None = None


def merge_months(lifts: Sequence[Lift], currency: str) -> list[Lift]:
    """Merge the months of a journey's split that have too few buyers alone into one lift; other lifts stay as they are.

    The sums of each group are added, as if the customers of these months were one group. That is unbiased only if all
    merged months hold out the same share, so months with different shares are merged separately.
    """
    unmerged: list[Lift] = []
    months: defaultdict[tuple[UUID, str, float], list[Lift]] = defaultdict(list)
    for lift in lifts:
        is_month = lift.source.kind is SourceKind.JOURNEY and lift.currency == currency
        if is_month and lift.has_too_few_buyers and lift.arms is not None:
            months[lift.source.id, lift.source.step, lift.held_out_share].append(lift)
        else:
            unmerged.append(lift)
    return unmerged + [_merge(group, share) if len(group) > 1 else group[0] for (_, _, share), group in months.items()]


def _merge(months: Sequence[Lift], held_out_share: float) -> Lift:
    arms = [it.arms for it in months if it.arms is not None]
    treated = sum((it[0] for it in arms), ArmSums())
    held_out = sum((it[1] for it in arms), ArmSums())
    # The lowest p counts: a suspicious ratio of group sizes in one month makes the merged lift suspicious.
    merged_p = sample_ratio_p(treated.people, held_out.people, held_out_share=held_out_share)
    return Lift(
        source=months[0].source._replace(period=""),
        state=max((it.state for it in months), key=[LiftState.FINAL, LiftState.PROVISIONAL].index),
        currency=months[0].currency,
        first_day=min((it.first_day for it in months if it.first_day is not None), default=None),
        last_day=max((it.last_day for it in months if it.last_day is not None), default=None),
        as_of=max((it.as_of for it in months if it.as_of is not None), default=None),
        treated=treated.people,
        held_out=held_out.people,
        buyers=treated.buyers + held_out.buyers,
        arms=(treated, held_out),
        months=tuple(sorted(it.source.period for it in months)),
        held_out_share=held_out_share,
        sample_ratio_p=min(merged_p, *(it.sample_ratio_p for it in months)),
    )


def select_measured(lifts: Sequence[Lift], currency: str) -> list[Lift]:
    """The lifts with an interval in this currency, also if the interval includes 0."""
    return measured_of(merge_months(lifts, currency), currency)


def measured_of(merged: Sequence[Lift], currency: str) -> list[Lift]:
    """Like `select_measured`, for lifts whose months are already merged."""
    return [it for it in merged if it.currency == currency and it.comparison is not None]


def summarise(merged: Sequence[Lift], currency: str) -> LiftSummary:
    """Add up lifts; `merge_months` has merged their months."""
    measured = measured_of(merged, currency)
    extras = [extra for it in measured if (extra := it.extra_cents) is not None]
    if extras:
        is_final = all(it.state is LiftState.FINAL for it in measured)
        return LiftSummary("final" if is_final else "provisional", add_up(extras))
    if any(it.state is LiftState.OPEN for it in merged):
        return LiftSummary("open")
    if any(it.has_result for it in merged):
        return LiftSummary("too_few")
    if any(it.state is LiftState.OUTSIDE for it in merged):
        return LiftSummary("outside")
    return LiftSummary("no_text" if merged and all(it.has_no_text for it in merged) else "no_holdout")


async def read_lifts(
    tx: Tx,
    organization_id: UUID,
    kind: SourceKind,
    ids: Collection[UUID],
    *,
    first: date = date.min,
    last: date = date.max,
) -> list[Lift]:
    """The lifts of these sources, one per source and currency, sorted by source; a campaign has at least one. A result
    that also covers texts before `first` or after `last` is left out, and its state says so. Months of a journey that
    lie outside are not returned."""
    rows = await queries.list_lifts(tx, organization_id, kind, ids)
    lifts = [
        lift
        for row in rows
        if kind is SourceKind.CAMPAIGN or _overlaps(row, first, last)
        for lift in (lifts_of(row) if _is_within(row, first, last) else [_lift_outside(row)])
    ]
    if kind is SourceKind.CAMPAIGN:
        scheduled = {row.source_id for row in rows}
        holdouts = await find_holdouts(tx, organization_id, [it for it in ids if it not in scheduled])
        lifts += [_unscheduled_lift(holdout) for holdout in holdouts.values()]
    return lifts


async def refresh_lifts(tx: Tx, organization_id: UUID) -> int:
    """Make all provisional lifts due now and return how many. Other lifts are final, or their window is open."""
    tx.queues_to_wake.add((QUEUE, organization_id))
    return await queries.make_provisional_due(tx, organization_id)


async def schedule_lift(
    tx: Tx,
    organization_id: UUID,
    source: LiftSource,
    *,
    held_out_share: float,
    window_days: int,
    days: tuple[date, date] | None = None,
) -> None:
    """Schedule the lift of a source for the time when its window, `days`, has closed. Idempotent.

    Without `days` the queue determines the window (campaigns), and `frozen_on`, the day on which the groups were fixed:
    what customers spent before it is the baseline. With `days` it is the first day of the window.
    """
    first_day, last_day = days or (None, None)
    row = LiftRow(*source, "open", held_out_share, window_days, first_day, last_day, first_day, None, None, None)
    await queries.insert_lift_if_new(tx, organization_id, row)
    tx.queues_to_wake.add((QUEUE, organization_id))


def lifts_of(row: LiftRow) -> list[Lift]:
    """One lift for each currency of the row's result; a single lift without currency if there is no result."""
    common_fields: dict[str, Any] = {
        "source": LiftSource(SourceKind(row.kind), row.source_id, row.step, row.period),
        "state": LiftState(row.state),
        "first_day": row.first_day,
        "last_day": row.last_day,
        "as_of": row.as_of,
        "reason": row.reason,
        "held_out_share": row.held_out_share,
    }
    if row.result is None:
        return [Lift(**common_fields)]
    answer = _ANSWER_DECODER.decode(row.result)
    common_fields |= {
        "treated": answer.treated,
        "held_out": answer.held_out,
        "sample_ratio_p": sample_ratio_p(answer.treated, answer.held_out, held_out_share=row.held_out_share),
    }
    return [
        Lift(
            **common_fields,
            currency=sums.currency,
            buyers=sums.treated.buyers + sums.held_out.buyers,
            arms=(sums.treated, sums.held_out),
            bootstrap=sums.bootstrap,
        )
        for sums in answer.sums
    ] or [Lift(**common_fields)]


def _days_of_texts(row: LiftRow) -> tuple[date, date] | None:
    """The first and the last day on which a campaign was sent, or of a journey's month."""
    if row.first_day is None or row.last_day is None:
        return None
    return row.first_day, row.last_day - timedelta(days=row.window_days)


def _overlaps(row: LiftRow, first: date, last: date) -> bool:
    days = _days_of_texts(row)
    return days is None or (first <= days[1] and days[0] <= last)


def _is_within(row: LiftRow, first: date, last: date) -> bool:
    """Whether all texts are from `first` to `last`. While there is no result, they may end later."""
    days = _days_of_texts(row)
    return days is None or (first <= days[0] <= last and (days[1] <= last or row.state == LiftState.OPEN))


def _lift_outside(row: LiftRow) -> Lift:
    return Lift(
        source=LiftSource(SourceKind(row.kind), row.source_id, row.step, row.period),
        state=LiftState.OUTSIDE,
        first_day=row.first_day,
        last_day=row.last_day,
    )


def _unscheduled_lift(holdout: Holdout) -> Lift:
    """The lift of a campaign that has not ended, or has no holdout."""
    has_arms = holdout.percent > 0 and (holdout.ended_at is None or holdout.frozen_at is not None)
    return Lift(
        source=LiftSource(SourceKind.CAMPAIGN, holdout.campaign_id),
        state=LiftState.OPEN if has_arms else LiftState.NO_HOLDOUT,
    )
