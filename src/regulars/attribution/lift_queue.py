"""The queue that computes lifts: how much more texted customers bought than a holdout of customers who got no text.

It computes a lift when the window closes, then daily while returns may change it, and a last time when it becomes
final. The analysis process reads the sales of both groups from one snapshot.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from regulars.attribution import lift_queries as queries
from regulars.attribution.holdout_sources import ComparedGroups, read_month, read_quarter
from regulars.attribution.lift import FINAL_AFTER, QUEUE, LiftSource, LiftState, SourceKind, schedule_lift
from regulars.attribution.lift_queries import LiftRow
from regulars.attribution.windows import find_windows
from regulars.campaigns.facts import CampaignEnded
from regulars.campaigns.holdout import find_holdouts, find_queueing_times, read_arms
from regulars.columns.client import Analysis, AnalysisQueue
from regulars.columns.lifecycle import need_columns
from regulars.columns.protocol import AnalysisUnavailable, NotReady, SegmentQuery
from regulars.columns.questions import ArmPeople, LiftAnswer, LiftQuestion, Period
from regulars.conditions import tree
from regulars.kit import failpoint
from regulars.kit.clock import in_zone
from regulars.kit.db import Database, Tx
from regulars.segments.saved.resolve import query_of, resolve
from regulars.work.outbox import behind_since
from regulars.work.queue import Due, WaitLimit

REFRESH_EVERY: Final = timedelta(days=1)
# The analysis process has this long to answer.
DEADLINE_S: Final = 60.0
# How long a lift waits if the analysis process cannot answer.
_RETRY_AFTER: Final = timedelta(seconds=30)
# The copy of sales that the analysis process reads lags behind by seconds. A lift waits for the copy, but not longer
# than `_LAG_MAX`, because an event that no listener handles would delay it for ever.
_LAG_RETRY: Final = timedelta(seconds=1)
_LAG_MAX: Final = timedelta(minutes=10)


ReadGroups = Callable[[Tx, UUID, LiftSource], Awaitable[ComparedGroups]]


async def _read_campaign(tx: Tx, organization_id: UUID, source: LiftSource) -> ComparedGroups:
    treated, held_out = await read_arms(tx, organization_id, source.id)
    return ArmPeople(treated), ArmPeople(held_out)


# Reads the two groups that a lift compares.
GROUP_READERS: Final[Mapping[SourceKind, ReadGroups]] = {
    SourceKind.CAMPAIGN: _read_campaign,
    SourceKind.JOURNEY: read_month,
    SourceKind.HOLDOUT: read_quarter,
}


async def schedule_campaigns(tx: Tx, organization_id: UUID, facts: Sequence[CampaignEnded]) -> None:
    """Listener of ended campaigns: schedule a lift for campaigns with a holdout."""
    holdouts = await find_holdouts(tx, organization_id, {fact.campaign_id for fact in facts})
    lift_days = (await find_windows(tx, organization_id)).windows.lift_days
    for holdout in holdouts.values():
        if holdout.percent > 0 and holdout.frozen_at is not None:
            await schedule_lift(
                tx,
                organization_id,
                LiftSource(SourceKind.CAMPAIGN, holdout.campaign_id),
                held_out_share=holdout.percent / 100,
                window_days=lift_days,
            )


@dataclass(frozen=True, slots=True)
class LiftClaim:
    """A lift that this worker has claimed; `query` selects all customers."""

    row: LiftRow
    query: SegmentQuery

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.query.zone)


class LiftQueue(AnalysisQueue[LiftClaim, LiftRow]):
    name = QUEUE
    claim_for = timedelta(minutes=2)
    # A lift without an owner waits for the end of its window, unless it has none yet or its computation failed.
    due = Due(
        table="lifts",
        waits=(
            WaitLimit(at_most=(claim_for,), condition="owner IS NOT NULL", waits_again=True),
            WaitLimit(at_most=(_RETRY_AFTER,), condition="owner IS NULL AND (first_day IS NULL OR reason IS NOT NULL)"),
        ),
    )

    def __init__(self, analysis: Analysis, database: Database) -> None:
        super().__init__(analysis)
        self._database = database

    async def claim(
        self, tx: Tx, organization_id: UUID, *, limit: int, lowest: int, owner: UUID, until: datetime
    ) -> Sequence[LiftClaim]:
        del lowest  # all claims have the same priority
        claimed = await queries.claim_due(tx, organization_id, limit=limit, owner=owner, until=until)
        if not claimed:
            return []
        # Starts the build of the copy of sales if there is none.
        await need_columns(tx, organization_id)
        query = query_of(await resolve(tx, organization_id, tree.All()), is_faulty=False)
        lags_since = await behind_since(tx, organization_id)
        if lags_since is not None and lags_since > tx.now - _LAG_MAX:
            for row in claimed:
                await queries.save_lift(tx, organization_id, row, owner=owner, due_at=tx.now + _LAG_RETRY)
            return []
        return [LiftClaim(row, query) for row in claimed]

    async def act(self, organization_id: UUID, claim: LiftClaim) -> LiftRow:
        """Return the row with its result; unchanged while the window is open, with a reason if the analysis fails."""
        row = claim.row
        async with self._database.reading() as tx:
            if row.first_day is None:
                row = await _with_window(tx, organization_id, row, claim.zone)
            if row.last_day is None or tx.now < closes_at(row.last_day, claim.zone):
                return row
            source = LiftSource(SourceKind(row.kind), row.source_id, row.step, row.period)
            groups = await GROUP_READERS[source.kind](tx, organization_id, source)
        try:
            answer = await self._compute(organization_id, claim.query, row, groups)
        except (NotReady, AnalysisUnavailable) as error:
            return row._replace(reason=str(error))
        return row._replace(
            state=LiftState.PROVISIONAL.value,
            as_of=answer.as_of,
            result=msgspec.json.encode(answer).decode(),
            reason=None,
        )

    async def _compute(
        self, organization_id: UUID, query: SegmentQuery, row: LiftRow, groups: ComparedGroups
    ) -> LiftAnswer:
        """Let the analysis process add up what the customers of both groups spent. The 365 days before `frozen_on`, on
        which the groups were fixed, are the baseline. `own_days` is the length of the window of a customer who has an
        own first day."""
        if row.first_day is None or row.last_day is None or row.frozen_on is None:
            raise ValueError("a window that has closed has days")
        question = LiftQuestion(
            treated=groups[0],
            held_out=groups[1],
            window=Period(row.first_day, row.last_day),
            frozen_on=row.frozen_on,
            own_days=row.window_days,
        )
        return await self._analysis.answer(organization_id, query, question, deadline_s=DEADLINE_S)

    async def complete(self, tx: Tx, organization_id: UUID, done: Sequence[tuple[LiftClaim, LiftRow]]) -> None:
        for claim, row in sorted(done, key=lambda it: it[1].key):
            state, due_at = next_state(row, claim.zone, now=tx.now)
            await queries.save_lift(
                tx, organization_id, row._replace(state=state.value), owner=self.owner, due_at=due_at
            )
        failpoint.hit("lift.computed", tx.connection.drop_connection)


def closes_at(last_day: date, zone: ZoneInfo) -> datetime:
    """The end of the last day of a window."""
    return datetime.combine(last_day + timedelta(days=1), time(), zone)


def next_state(row: LiftRow, zone: ZoneInfo, *, now: datetime) -> tuple[LiftState, datetime | None]:
    """The state of a row after an attempt to compute it, and when it is due again."""
    state = LiftState(row.state)
    if row.last_day is None:
        # The campaign sent no text, so there is nothing to measure.
        return LiftState.FINAL, None
    closes = closes_at(row.last_day, zone)
    if row.reason is not None:
        return state, now + _RETRY_AFTER
    if row.as_of is None:
        return state, closes
    final_at = closes + FINAL_AFTER
    if row.as_of >= final_at:
        return LiftState.FINAL, None
    return LiftState.PROVISIONAL, min(row.as_of + REFRESH_EVERY, final_at)


async def _with_window(tx: Tx, organization_id: UUID, row: LiftRow, zone: ZoneInfo) -> LiftRow:
    """The row with the window of its campaign, from the first queued text to `window_days` days after the last."""
    holdout = (await find_holdouts(tx, organization_id, [row.source_id])).get(row.source_id)
    times = await find_queueing_times(tx, organization_id, row.source_id)
    if holdout is None or holdout.frozen_at is None or times is None:
        return row._replace(reason="No text was sent.")
    first, last = (in_zone(queued_at, zone).date() for queued_at in times)
    return row._replace(
        first_day=first,
        last_day=last + timedelta(days=row.window_days),
        frozen_on=in_zone(holdout.frozen_at, zone).date(),
    )
