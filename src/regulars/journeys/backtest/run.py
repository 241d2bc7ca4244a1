"""Backtests a journey: simulates which customers would have entered in the last `days` days, and which texts would have
been sent.

Customers are independent of each other, because a phone number belongs to only one customer. So pages of sales or
consents are read only to find the customers, and each customer is simulated once, in the order of time.
"""

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.evaluation import Evaluator
from regulars.experiments.holdout.groups import find_held_out_of_journeys
from regulars.journeys.backtest import queries
from regulars.journeys.backtest.history import CustomerHistory, load_customer_histories
from regulars.journeys.backtest.report import BacktestReport
from regulars.journeys.backtest.simulation import BacktestContext, RunSimulation, SimulatedRun
from regulars.journeys.context import NotEvaluable, evaluate
from regulars.journeys.definition import Definition
from regulars.journeys.manage import load_journey, require_no_faults
from regulars.journeys.model import SALE_TYPES, SaleRow, SaleTimes
from regulars.journeys.program import FILTER
from regulars.journeys.runs.definition_cache import load_versions
from regulars.journeys.runs.enter import EntryEvent, entry_of_sale, may_enter_again
from regulars.journeys.snapshot import find_sales, load_condition_context, load_condition_customers
from regulars.kit.clock import start_of_last_days
from regulars.kit.db import Tx
from regulars.kit.refusals import NotPossible
from regulars.texts.find import find_suppressed
from regulars.texts.settings.store import Texting

DAYS_MAX: Final = 90
# How many sales or consents a backtest simulates.
FACTS_MAX: Final = 100_000
# The reason why a sale that was recorded more than seven days late starts no run.
TOO_OLD: Final = "too old"
_PAGE_ROWS: Final = 200
_NO_ID: Final = UUID(int=0)


async def backtest(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    *,
    texting: Texting,
    days: int,
    version: int | None = None,
    facts_max: int = FACTS_MAX,
) -> BacktestReport:
    """Backtest a saved version. Makes the transaction read-only."""
    await queries.forbid_writes(tx)
    if not 1 <= days <= DAYS_MAX:
        raise NotPossible(f"A backtest covers 1 to {DAYS_MAX} days.")
    journey = await load_journey(tx, organization_id, journey_id, version=version)
    require_no_faults(journey)
    return await backtest_definition(
        tx,
        organization_id,
        journey_id,
        journey.definition,
        version=version or journey.row.version,
        texting=texting,
        days=days,
        facts_max=facts_max,
    )


async def backtest_definition(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    definition: Definition,
    *,
    version: int,
    texting: Texting,
    days: int,
    facts_max: int = FACTS_MAX,
    on_progress: Callable[[int], None] | None = None,
) -> BacktestReport:
    """Backtest any definition without faults, saved or not. Calls `on_progress` with the number of sales or consents
    simulated so far."""
    await queries.forbid_writes(tx)
    condition_context = await load_condition_context(tx, organization_id, [definition])
    # A draft has version 0, which is not stored. Its splits are independent, unlike those of old versions.
    saved = await load_versions(tx, organization_id, {(journey_id, version)} if version else ())
    context = BacktestContext(
        journey_id=journey_id,
        definition=definition,
        has_independent_splits=all(it.has_independent_splits for it in saved.values()),
        texting=texting,
        evaluator=Evaluator(condition_context),
        now=tx.now,
    )
    report = BacktestReport.begin(
        version,
        since=start_of_last_days(days, tx.now, condition_context.zone),
        until=tx.now,
        zone=condition_context.zone.key,
    )
    backtest = _Backtest(tx, organization_id, context, report)
    simulated: set[UUID] = set()
    async for page in backtest.list_pages(facts_max):
        await backtest.simulate_customers(page - simulated)
        simulated |= page
        if on_progress is not None:
            on_progress(report.facts)
    return report


@dataclass(slots=True)
class _Backtest:
    """Simulates customers and counts the results in `report`; `context` has the data that all customers share."""

    tx: Tx
    organization_id: UUID
    context: BacktestContext
    report: BacktestReport

    def list_pages(self, facts_max: int) -> AsyncIterator[set[UUID]]:
        """Pages of the customers with sales or consents that may start a run."""
        sale_type = SALE_TYPES.get(self.context.definition.trigger)
        return self._list_consent_pages(facts_max) if sale_type is None else self._list_sale_pages(sale_type, facts_max)

    async def simulate_customers(self, profile_ids: Collection[UUID]) -> None:
        """Load and simulate customers, with all sales before the period that conditions on its first day need."""
        histories = await load_customer_histories(self.tx, self.organization_id, profile_ids, since=self.report.since)
        hashes = {number.number_hash for history in histories for number in history.numbers}
        if hashes:
            self.context.suppressed = await find_suppressed(self.tx, self.organization_id, hashes)
        self.context.held_out = await find_held_out_of_journeys(self.tx, self.organization_id, profile_ids)
        condition_context = self.context.evaluator.context
        self.context.customers = await load_condition_customers(
            self.tx,
            self.organization_id,
            [self.context.definition],
            profile_ids,
            context=condition_context,
            today=day_of(self.report.since, condition_context.zone),
        )
        sale_ids = {sale.id for history in histories for sale in history.sales if self._is_trigger(sale)}
        sales = {sale.id: sale for sale in await find_sales(self.tx, self.organization_id, sale_ids)}
        for history in histories:
            self._simulate_customer(history, sales)

    def _simulate_customer(self, history: CustomerHistory, sales: dict[UUID, SaleRow]) -> None:
        entered_at: datetime | None = None
        last_run: SimulatedRun | None = None
        for entry in self._list_entries(history, sales):
            at = entry.recorded_at
            sale = None if entry.sale_id is None else sales[entry.sale_id]
            reason = self._reason_not_to_enter(history, sale, at, entered_at, last_run)
            if reason is not None:
                self._count_refusal(history, reason, at)
                continue
            simulated = RunSimulation(self.context, history, sale, at).run()
            entered_at, last_run = at, simulated
            self.report.day(at).entries += 1
            self.report.add_person("entries", history.person.id)
            for text in simulated.texts:
                day = self.report.day(text.at)
                self.report.add_person(text.reason or "texts", history.person.id)
                if text.reason is None:
                    day.texts += 1
                    day.parts += text.parts
                else:
                    day.skipped[text.reason] += 1
            if simulated.ended_at is None:
                self.report.still_waiting += 1
            else:
                self.report.outcomes[simulated.outcome] += 1

    def _count_refusal(self, history: CustomerHistory, reason: str, at: datetime) -> None:
        self.report.day(at).not_entered[reason] += 1
        self.report.add_person(reason, history.person.id)

    def _reason_not_to_enter(
        self,
        history: CustomerHistory,
        sale: SaleRow | None,
        at: datetime,
        entered_at: datetime | None,
        last_run: SimulatedRun | None,
    ) -> str | None:
        definition = self.context.definition
        result = evaluate(FILTER, definition.filter, self.context.evaluation_at(history, sale, at))
        if isinstance(result, NotEvaluable):
            return "filter cannot be judged"
        if not result:
            return "filter"
        if last_run is not None and last_run.is_open_for(at):
            return "already in it"
        return None if may_enter_again(definition.reentry, entered_at, at) else "reentry"

    def _list_entries(self, history: CustomerHistory, sales: dict[UUID, SaleRow]) -> list[EntryEvent]:
        if self.context.definition.trigger == "opt_in":
            entries = list(history.consents())
        else:
            entries = []
            for row in (sales[sale.id] for sale in history.sales if sale.id in sales):
                if (entry := entry_of_sale(row)) is not None:
                    entries.append(entry)
                else:
                    self._count_refusal(history, TOO_OLD, row.created_at)
        within = [it for it in entries if self.report.since <= it.recorded_at <= self.report.until]
        return sorted(within, key=lambda it: (it.recorded_at, it.id))

    def _is_trigger(self, sale: SaleTimes) -> bool:
        is_within = self.report.since <= sale.created_at <= self.report.until
        return is_within and sale.type == SALE_TYPES.get(self.context.definition.trigger)

    async def _list_sale_pages(self, sale_type: str, facts_max: int) -> AsyncIterator[set[UUID]]:
        """Pages of customers with sales. Only the first `facts_max` sales are simulated, and the report's period ends
        before the next sale."""
        since = self.report.since
        excess_from = await queries.find_recording_time_at(
            self.tx, self.organization_id, sale_type, since=since, offset=facts_max
        )
        if excess_from is not None:
            self.report.is_cut, self.report.until = True, excess_from - timedelta(milliseconds=1)
        after = queries.first_sale_id(since)
        while self.report.facts < facts_max:
            limit = min(_PAGE_ROWS, facts_max - self.report.facts)
            rows = await queries.list_sales(
                self.tx, self.organization_id, sale_type, since=since, after=after, limit=limit
            )
            if not rows:
                return
            self.report.facts += len(rows)
            yield {profile_id for _, profile_id in rows}
            after = rows[-1][0]

    async def _list_consent_pages(self, facts_max: int) -> AsyncIterator[set[UUID]]:
        """Pages of customers with changed subscriptions. Only the first `facts_max` subscriptions are simulated."""
        after = (self.report.since - timedelta(milliseconds=1), _NO_ID)
        while True:
            rows = await queries.list_changed_subscriptions(
                self.tx, self.organization_id, after=after, limit=min(_PAGE_ROWS, facts_max - self.report.facts + 1)
            )
            if self.report.facts + len(rows) > facts_max:
                self.report.is_cut, rows = True, rows[: facts_max - self.report.facts]
            if not rows:
                return
            self.report.facts += len(rows)
            yield {profile_id for _, _, profile_id in rows if profile_id is not None}
            after = rows[-1][:2]
