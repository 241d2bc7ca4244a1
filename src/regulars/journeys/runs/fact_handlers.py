"""Listeners that end and wake open runs of journeys: a sale or a withdrawal of consent ends runs, a purchase or a sent
text wakes runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys import queries as journeys
from regulars.journeys.model import RunRow, SaleRow
from regulars.journeys.runs import queries
from regulars.journeys.runs.decide import WITHDRAWN, find_exit
from regulars.journeys.runs.definition_cache import load_definitions
from regulars.journeys.runs.lifecycle import end_runs
from regulars.journeys.runs.trace import count_events
from regulars.journeys.snapshot import find_sales
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.sales.facts import SalesRecorded
from regulars.texts.facts import MessagesChanged
from regulars.work.facts import needed_if

# A run does not wait for the delivery of its text: it continues when the text is sent.
_WAKING_STATES = frozenset({"sent", "delivered", "failed", "skipped", "unknown"})


@needed_if(journeys.HAS_ACTIVATION)
async def handle_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """End the runs that exit on these sales, and wake the runs that wait for a purchase."""
    sales = await find_sales(tx, organization_id, {it for fact in facts for it in fact.sales})
    sales_by_id: dict[UUID | None, SaleRow] = {sale.id: sale for sale in sales}
    sales_by_buyer: dict[UUID, list[SaleRow]] = {}
    for sale in sales:
        if sale.profile_id is not None:
            sales_by_buyer.setdefault(sale.profile_id, []).append(sale)
    runs = await queries.lock_active_runs_of(tx, organization_id, sales_by_buyer) if sales_by_buyer else []
    definitions = await load_definitions(tx, organization_id, {(run.journey_id, run.version) for run in runs})
    woken: list[UUID] = []
    ending_by_outcome: dict[str, list[RunRow]] = {}
    for run in runs:
        new_sales = sales_by_buyer[run.profile_id]
        definition, entry = definitions[run.journey_id, run.version], sales_by_id.get(run.sale_id)
        exit_ = find_exit(definition, new_sales, since=run.triggered_at, entry=entry)
        if exit_ is not None:
            ending_by_outcome.setdefault(exit_[1], []).append(run)
        elif run.waits_for == "purchase" and any(sale.type == "PURCHASE" for sale in new_sales):
            # When the run advances, it decides whether the purchase counts.
            woken.append(run.id)
    for outcome in sorted(ending_by_outcome):
        await end_runs(tx, organization_id, ending_by_outcome[outcome], outcome=outcome)
    if woken:
        await queries.wake_runs(tx, organization_id, woken, waits_for="purchase")
    if ending_by_outcome or woken:
        tx.queues_to_wake.add(("journey_runs", organization_id))


async def handle_consents(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    """End the open runs of customers who withdrew their consent after the run's trigger, including parked runs (failed
    at every attempt). A withdrawal may be handled before the older sale that starts the run: `RunQueue` ends that run.
    """
    withdrawn_at: dict[UUID, datetime] = {}
    for fact in facts:
        for change in fact.changes:
            if change.outcome == "unsubscribed" and change.profile_id is not None:
                withdrawn_at[change.profile_id] = max(fact.at, withdrawn_at.get(change.profile_id, fact.at))
    if withdrawn_at:
        open_runs = await queries.lock_open_runs_of(tx, organization_id, withdrawn_at)
        runs = [run for run in open_runs if run.triggered_at < withdrawn_at[run.profile_id]]
        await end_runs(tx, organization_id, runs, outcome=WITHDRAWN)
        if runs:
            tx.queues_to_wake.add(("journey_runs", organization_id))


async def handle_messages(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    """Wake the runs whose text was sent, skipped, failed or became unknown, and count the outcome at its step."""
    ended = [
        _TextOutcome(fact.origin_id, fact.step, fact.state, fact.reason)
        for fact in facts
        if fact.origin_kind == OriginKind.JOURNEY
        and fact.state in _WAKING_STATES
        and fact.origin_id is not None
        and fact.step is not None
    ]
    if not ended:
        return
    runs = {run.id: run for run in await queries.find_runs(tx, organization_id, {it.run_id for it in ended})}
    await count_events(tx, organization_id, [(runs[it.run_id], it.step, it.event) for it in ended if it.run_id in runs])
    if await queries.wake_texted_runs(tx, organization_id, [(it.run_id, it.step) for it in ended]):
        tx.queues_to_wake.add(("journey_runs", organization_id))


class _TextOutcome(NamedTuple):
    run_id: UUID
    step: str
    state: str
    reason: str | None

    @property
    def event(self) -> str:
        """The event name under which the outcome is counted; for a skip with the reason, such as `missing_value`."""
        return (
            f"text skipped {(self.reason or '').partition(':')[0]}" if self.state == "skipped" else f"text {self.state}"
        )
