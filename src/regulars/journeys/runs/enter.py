"""Starts runs of journeys: at most one run for each journey and fact (a sale or consent), however often the fact is
delivered.

The unique key of runs guarantees this. The customer's row in `journey_customers` is locked first, because re-entry
depends on the time of the last entry, and a customer has at most one open run in a journey.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from regulars.consent.facts import SubscriptionChange, SubscriptionsChanged
from regulars.journeys import queries as journeys
from regulars.journeys.context import describe_segments, evaluate
from regulars.journeys.definition import Definition, Reentry, read_definition
from regulars.journeys.interests import start_recording_facts
from regulars.journeys.model import SALE_TYPES, ActivationRow, LivePeriod, NewJourneyRun, SaleRow, TraceEntry
from regulars.journeys.program import FILTER, graph_of, references_of
from regulars.journeys.runs import queries, trace
from regulars.journeys.runs.lists import find_runs_by_facts
from regulars.journeys.snapshot import DecisionSubject, JourneySnapshot, find_sales, load_snapshot
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.ids import SALES_EVENT, SUBSCRIPTION, new_uuid
from regulars.sales.facts import SalesRecorded
from regulars.work.facts import AUTOMATION_WINDOW, needed_if

TRIGGERS = {sale_type: trigger for trigger, sale_type in SALE_TYPES.items()}


@dataclass(frozen=True, slots=True)
class EntryEvent:
    """A sale or consent that may start a run; `kind` is `sale` or `consent`."""

    kind: str
    id: str
    trigger: str
    profile_id: UUID
    sale_id: UUID | None
    recorded_at: datetime


@needed_if(journeys.HAS_ACTIVATION)
async def enter_by_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Start runs from sales of a known customer that were at most seven days old when they were recorded."""
    sales = await find_sales(tx, organization_id, {it for fact in facts for it in fact.sales})
    # In the order of recording, so that the first of two sales of a customer starts the run.
    in_order = sorted(sales, key=lambda sale: (sale.created_at, sale.id))
    entries = [entry for sale in in_order if (entry := entry_of_sale(sale)) is not None]
    await _enter(tx, organization_id, entries)


async def enter_by_consents(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    """Start runs from consents that subscribed the customer and are recent, as `change.automation` says."""
    entries = [
        entry for fact in facts for change in fact.changes if (entry := _entry_of_change(change, fact.at)) is not None
    ]
    if entries:
        await _enter(tx, organization_id, entries)


def entry_of_sale(sale: SaleRow) -> EntryEvent | None:
    if sale.profile_id is None or sale.created_at - sale.occurred_at > AUTOMATION_WINDOW:
        return None
    return EntryEvent(
        "sale", SALES_EVENT.encode(sale.id), TRIGGERS[sale.type], sale.profile_id, sale.id, sale.created_at
    )


def _entry_of_change(change: SubscriptionChange, at: datetime) -> EntryEvent | None:
    if change.automation != "eligible" or change.profile_id is None:
        return None
    return entry_of_consent(change.id, change.sequence, change.profile_id, at)


def entry_of_consent(subscription_id: UUID, sequence: int, profile_id: UUID, at: datetime) -> EntryEvent:
    """The entry event for a consent, which is an entry of the consent ledger."""
    return EntryEvent("consent", f"{SUBSCRIPTION.encode(subscription_id)}:{sequence}", "opt_in", profile_id, None, at)


async def _enter(tx: Tx, organization_id: UUID, entries: Sequence[EntryEvent]) -> None:
    if not entries:
        return
    times = [entry.recorded_at for entry in entries]
    triggers = sorted({entry.trigger for entry in entries})
    activations = await journeys.find_activations(tx, organization_id, triggers, since=min(times), until=max(times))
    activations_by_journey: dict[UUID, list[tuple[ActivationRow, Definition]]] = {}
    for activation in activations:
        definition = read_definition(activation.definition.encode())
        activations_by_journey.setdefault(activation.journey_id, []).append((activation, definition))
    for journey_id in sorted(activations_by_journey):
        await _enter_journey(tx, organization_id, journey_id, activations_by_journey[journey_id], entries)


async def _enter_journey(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    activations: Sequence[tuple[ActivationRow, Definition]],
    entries: Sequence[EntryEvent],
) -> None:
    matched = [
        (entry, activation, definition)
        for entry in entries
        for activation, definition in activations
        if definition.trigger == entry.trigger and was_live(activation, entry.recorded_at)
    ]
    subjects = [DecisionSubject(entry.profile_id, entry.sale_id, definition) for entry, _, definition in matched]
    if not subjects:
        return
    snapshot = await load_snapshot(tx, organization_id, subjects)
    passes = [_passes_filter(snapshot, subject, tx.now) for subject in subjects]
    admitted = [match for match, is_passed in zip(matched, passes, strict=True) if is_passed]
    refused = [match[1].version for match, is_passed in zip(matched, passes, strict=True) if not is_passed]
    await trace.add_totals(tx, organization_id, Counter((journey_id, version, "", "refused") for version in refused))
    if admitted:
        await _start_runs(tx, organization_id, journey_id, admitted, snapshot)


def was_live(period: ActivationRow | LivePeriod, at: datetime) -> bool:
    return period.since <= at and (period.until is None or at < period.until)


def _passes_filter(snapshot: JourneySnapshot, subject: DecisionSubject, now: datetime) -> bool:
    context = snapshot.context_of(subject, now)
    # A filter that cannot be evaluated admits no customer.
    return context is not None and evaluate(FILTER, subject.definition.filter, context) is True


async def _start_runs(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    admitted: Sequence[tuple[EntryEvent, ActivationRow, Definition]],
    snapshot: JourneySnapshot,
) -> None:
    # The shared lock orders this transaction and an archive of the journey: either the new state is read here, or the
    # archive finds these runs. The queue sets the runs of a paused journey aside.
    journey = await journeys.lock_journey_shared(tx, organization_id, journey_id)
    if journey is None or journey.state == "archived":
        return
    profile_ids = sorted({entry.profile_id for entry, _, _ in admitted})
    last_entries = await queries.lock_customers(tx, organization_id, journey_id, profile_ids)
    known_facts = await find_runs_by_facts(
        tx,
        organization_id,
        journey_id,
        fact_kind=admitted[0][0].kind,
        fact_ids=[entry.id for entry, _, _ in admitted],
    )
    new_runs: dict[UUID, NewJourneyRun] = {}
    for entry, activation, definition in admitted:
        entered_at, run_id = last_entries.get(entry.profile_id, (None, None))
        if entry.id in known_facts or entry.profile_id in new_runs or run_id is not None:
            continue
        if not may_enter_again(definition.reentry, entered_at, tx.now):
            continue
        new_runs[entry.profile_id] = NewJourneyRun(
            new_uuid(),
            journey_id,
            activation.version,
            entry.kind,
            entry.id,
            entry.profile_id,
            entry.sale_id,
            graph_of(definition).first,
            entry.recorded_at,
        )
    runs = list(new_runs.values())
    inserted = await queries.insert_runs_if_new(tx, organization_id, runs) if runs else set()
    new = [run for run in runs if run.id in inserted]
    if new:
        failpoint.hit("journey.entered", tx.connection.drop_connection)
        definitions = {entry.id: definition for entry, _, definition in admitted}
        await queries.set_customers_runs(tx, organization_id, journey_id, [(run.profile_id, run.id) for run in new])
        await trace.insert_trace(
            tx,
            organization_id,
            [
                TraceEntry(run.id, None, "entered", _entry_detail(run, definitions[run.fact_id], snapshot, tx.now))
                for run in new
            ],
        )
        await trace.add_totals(tx, organization_id, Counter((journey_id, run.version, "", "entered") for run in new))
        if journey.state != "live":
            await start_recording_facts(tx, organization_id)
        tx.queues_to_wake.add(("journey_runs", organization_id))


def _entry_detail(
    run: NewJourneyRun, definition: Definition, snapshot: JourneySnapshot, now: datetime
) -> dict[str, Any]:
    """The first entry of a run's trace: the fact, the version, and whether the customer is in its segments."""
    context = snapshot.context_of(DecisionSubject(run.profile_id, run.sale_id, definition), now)
    segments = {} if context is None else describe_segments(context, references_of(definition).segments)
    return {"by": run.fact_id, "version": run.version, **segments}


def may_enter_again(reentry: Reentry, entered_at: datetime | None, now: datetime) -> bool:
    """Whether a customer who last entered at `entered_at`, and has no open run, may enter again."""
    if entered_at is None or reentry.policy == "always":
        return True
    if reentry.policy == "never" or reentry.days is None:
        return False
    return now - entered_at >= timedelta(days=reentry.days)
