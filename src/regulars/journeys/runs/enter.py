"""Facts bring customers in: at most one run for a journey and a sale or consent, whichever path or retry brings it.

The unique key decides. Before it a customer's place in the journey is locked, because whether another fact brings
somebody in again depends on when they entered last, and one customer has one run in a journey at a time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from regulars.consent.facts import SubscriptionChange, SubscriptionsChanged
from regulars.journeys import queries as journeys
from regulars.journeys.context import describe_segments, judge
from regulars.journeys.definition import Definition, Reentry, read_definition
from regulars.journeys.interests import need_facts
from regulars.journeys.model import ActivationRow, NewRun, Noted, SaleRow
from regulars.journeys.program import FILTER, needs_of, program_of
from regulars.journeys.runs import queries, trace
from regulars.journeys.snapshot import Sight, Subject, find_sales, look
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.ids import SALES_EVENT, SUBSCRIPTION, new_uuid
from regulars.sales.facts import SalesRecorded
from regulars.work.facts import AUTOMATION_WINDOW, needed_if

TRIGGERS = {"PURCHASE": "purchase", "RETURN": "return"}


@dataclass(frozen=True, slots=True)
class Arrival:
    """A fact that may bring a customer in."""

    kind: str
    id: str
    trigger: str
    profile_id: UUID
    sale_id: UUID | None
    recorded_at: datetime


@needed_if(journeys.HAS_ACTIVATION)
async def enter_by_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Only sales that are not anonymous and were at most seven days old when they were recorded."""
    sales = await find_sales(tx, organization_id, {it for fact in facts for it in fact.sales})
    # In the order of recording: of two sales of one customer the first brings them in.
    in_order = sorted(sales, key=lambda sale: (sale.created_at, sale.id))
    arrivals = [arrival for sale in in_order if (arrival := arrival_of_sale(sale)) is not None]
    await _enter(tx, organization_id, arrivals)


async def enter_by_consents(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    """Only those that made somebody reachable and were recent, as the answer to them said."""
    arrivals = [
        arrival
        for fact in facts
        for change in fact.changes
        if (arrival := _arrival_of_consent(change, fact.at)) is not None
    ]
    if arrivals:
        await _enter(tx, organization_id, arrivals)


def arrival_of_sale(sale: SaleRow) -> Arrival | None:
    if sale.profile_id is None or sale.created_at - sale.occurred_at > AUTOMATION_WINDOW:
        return None
    return Arrival("sale", SALES_EVENT.encode(sale.id), TRIGGERS[sale.type], sale.profile_id, sale.id, sale.created_at)


def _arrival_of_consent(change: SubscriptionChange, at: datetime) -> Arrival | None:
    if change.automation != "eligible" or change.profile_id is None:
        return None
    return arrival_of_entry(change.id, change.sequence, change.profile_id, at)


def arrival_of_entry(subscription_id: UUID, sequence: int, profile_id: UUID, at: datetime) -> Arrival:
    """Of an entry of the ledger that may start an automation."""
    return Arrival("consent", f"{SUBSCRIPTION.encode(subscription_id)}:{sequence}", "opt_in", profile_id, None, at)


async def _enter(tx: Tx, organization_id: UUID, arrivals: Sequence[Arrival]) -> None:
    if not arrivals:
        return
    times = [arrival.recorded_at for arrival in arrivals]
    triggers = sorted({arrival.trigger for arrival in arrivals})
    activations = await journeys.find_activations(tx, organization_id, triggers, since=min(times), until=max(times))
    by_journey: dict[UUID, list[tuple[ActivationRow, Definition]]] = {}
    for activation in activations:
        definition = read_definition(activation.definition.encode())
        by_journey.setdefault(activation.journey_id, []).append((activation, definition))
    for journey_id in sorted(by_journey):
        await _enter_journey(tx, organization_id, journey_id, by_journey[journey_id], arrivals)


async def _enter_journey(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    live: Sequence[tuple[ActivationRow, Definition]],
    arrivals: Sequence[Arrival],
) -> None:
    matched = [
        (arrival, activation, definition)
        for arrival in arrivals
        for activation, definition in live
        if definition.trigger == arrival.trigger and _was_live(activation, arrival.recorded_at)
    ]
    subjects = [Subject(arrival.profile_id, arrival.sale_id, definition) for arrival, _, definition in matched]
    if not subjects:
        return
    sight = await look(tx, organization_id, subjects)
    passed = [_passes(sight, subject, tx.now) for subject in subjects]
    wanted = [one for one, is_in in zip(matched, passed, strict=True) if is_in]
    refused = [activation.version for (_, activation, _), is_in in zip(matched, passed, strict=True) if not is_in]
    await trace.add_totals(tx, organization_id, Counter((journey_id, version, "", "refused") for version in refused))
    if wanted:
        await _begin(tx, organization_id, journey_id, wanted, sight)


def _was_live(activation: ActivationRow, moment: datetime) -> bool:
    return activation.since <= moment and (activation.until is None or moment < activation.until)


def _passes(sight: Sight, subject: Subject, now: datetime) -> bool:
    seen = sight.seen(subject, now)
    # A filter that cannot be judged admits no customer.
    return seen is not None and judge(FILTER, subject.definition.filter, seen) is True


async def _begin(
    tx: Tx,
    organization_id: UUID,
    journey_id: UUID,
    wanted: Sequence[tuple[Arrival, ActivationRow, Definition]],
    sight: Sight,
) -> None:
    # Held until this commits: a pause or an archive comes before it, and is seen, or after it, and finds its runs.
    journey = await journeys.share_journey(tx, organization_id, journey_id)
    if journey is None or journey.state == "archived":
        return
    profile_ids = sorted({arrival.profile_id for arrival, _, _ in wanted})
    places = await queries.lock_customers(tx, organization_id, journey_id, profile_ids)
    known = await queries.find_known_facts(
        tx,
        organization_id,
        journey_id,
        fact_kind=wanted[0][0].kind,
        fact_ids=[arrival.id for arrival, _, _ in wanted],
    )
    begun: dict[UUID, NewRun] = {}
    for arrival, activation, definition in wanted:
        entered_at, run_id = places.get(arrival.profile_id, (None, None))
        if arrival.id in known or arrival.profile_id in begun or run_id is not None:
            continue
        if not may_enter_again(definition.reentry, entered_at, tx.now):
            continue
        begun[arrival.profile_id] = NewRun(
            new_uuid(),
            journey_id,
            activation.version,
            arrival.kind,
            arrival.id,
            arrival.profile_id,
            arrival.sale_id,
            program_of(definition).first,
            arrival.recorded_at,
        )
    runs = list(begun.values())
    inserted = (
        await queries.insert_runs_if_new(tx, organization_id, runs, is_paused=journey.state == "paused")
        if runs
        else set()
    )
    new = [run for run in runs if run.id in inserted]
    if new:
        failpoint.hit("journey.entered", tx.connection.cut_off)
        definitions = {arrival.id: definition for arrival, _, definition in wanted}
        await queries.set_customers_runs(tx, organization_id, journey_id, [(run.profile_id, run.id) for run in new])
        await trace.insert_trace(
            tx,
            organization_id,
            [Noted(run.id, None, "entered", _entered(run, definitions[run.fact_id], sight, tx.now)) for run in new],
        )
        await trace.add_totals(tx, organization_id, Counter((journey_id, run.version, "", "entered") for run in new))
        if journey.state != "live":
            await need_facts(tx, organization_id)
        tx.touched.add(("journey_runs", organization_id))


def _entered(run: NewRun, definition: Definition, sight: Sight, now: datetime) -> dict[str, Any]:
    """What the trace says of an entry: the fact, the version, and the segments that the filter asked for."""
    seen = sight.seen(Subject(run.profile_id, run.sale_id, definition), now)
    shown = {} if seen is None else describe_segments(seen, needs_of(definition).segments)
    return {"by": run.fact_id, "version": run.version, **shown}


def may_enter_again(reentry: Reentry, entered_at: datetime | None, now: datetime) -> bool:
    """Whether another fact brings in a customer who entered at that time, and has no run now."""
    if entered_at is None or reentry.policy == "always":
        return True
    if reentry.policy == "never" or reentry.days is None:
        return False
    return now - entered_at >= timedelta(days=reentry.days)
