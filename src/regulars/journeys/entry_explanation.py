"""Explains for a customer's latest sales or consents (facts) whether each started a run of a journey, and if not, why.

A run records its own decisions. A fact that started no run left no record, so the journey's conditions are evaluated
again: with the version that was live then, but with the current data of the customer. The page says so.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.conditions import customers as conditions
from regulars.conditions.tree import Group, kind_of
from regulars.consent.find import list_by_profile
from regulars.consent.history import list_last_entries
from regulars.consent.model import Kind
from regulars.journeys.context import EvaluationContext, NotEvaluable, evaluate
from regulars.journeys.definition import Definition
from regulars.journeys.labels import GROUP_LABELS, describe_condition
from regulars.journeys.manage import Journey
from regulars.journeys.model import SALE_TYPES, LivePeriod, SaleRow
from regulars.journeys.program import FILTER
from regulars.journeys.runs.definition_cache import load_shown_definitions
from regulars.journeys.runs.enter import entry_of_consent, entry_of_sale, was_live
from regulars.journeys.runs.lists import find_runs_by_facts, list_live_periods
from regulars.journeys.snapshot import DecisionSubject, find_sales, list_last_sales, load_snapshot
from regulars.kit.db import Tx
from regulars.work.facts import AUTOMATION_WINDOW

FACTS_MAX: Final = 5
_ENTRIES_MAX: Final = 20
_SUBSCRIBING_OUTCOMES: Final = frozenset({"created", "resubscribed"})


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """A condition and whether it holds now; `inner` has the results of a group's conditions."""

    label: str
    holds: bool
    inner: "tuple[ConditionResult, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryExplanation:
    """A sale or consent with the run that it started, or the reason why it started no run."""

    recorded_at: datetime
    sale: SaleRow | None
    run_id: UUID | None
    reason: str
    results: tuple[ConditionResult, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fact:
    """A sale or consent; `is_stale` means that it was recorded more than seven days late."""

    id: str
    recorded_at: datetime
    is_stale: bool
    sale: SaleRow | None


async def explain(
    tx: Tx, organization_id: UUID, journey: Journey, profile_id: UUID, *, secret: bytes
) -> list[EntryExplanation]:
    """The explanations for the latest sales or consents, newest first. `secret` is the organization's key, with which
    phone numbers are hashed."""
    trigger = journey.definition.trigger
    if trigger == "opt_in":
        facts = await _list_consents(tx, organization_id, profile_id, secret=secret)
    else:
        ids = await list_last_sales(tx, organization_id, profile_id, SALE_TYPES[trigger], limit=FACTS_MAX)
        facts = [_fact_of_sale(sale) for sale in await find_sales(tx, organization_id, ids)]
    facts = sorted(facts, key=lambda fact: fact.recorded_at, reverse=True)[:FACTS_MAX]
    kind = "consent" if trigger == "opt_in" else "sale"
    fact_ids = [fact.id for fact in facts]
    runs = await find_runs_by_facts(tx, organization_id, journey.row.id, fact_kind=kind, fact_ids=fact_ids)
    live_periods = await list_live_periods(tx, organization_id, journey.row.id)
    explanations = []
    for fact in facts:
        live = next((it for it in live_periods if was_live(it, fact.recorded_at)), None)
        definition = await _load_definition(tx, organization_id, journey, live)
        subject = DecisionSubject(profile_id, None if fact.sale is None else fact.sale.id, definition)
        context = (await load_snapshot(tx, organization_id, [subject])).context_of(subject, tx.now)
        run_id, filter_ = runs.get(fact.id), definition.filter
        explanations.append(
            EntryExplanation(
                recorded_at=fact.recorded_at,
                sale=fact.sale,
                run_id=run_id,
                reason=_reason(fact, live, definition, context) if run_id is None else "",
                results=() if context is None or filter_ is None else (_result_of(context.explain(filter_)),),
            )
        )
    return explanations


async def _load_definition(tx: Tx, organization_id: UUID, journey: Journey, live: LivePeriod | None) -> Definition:
    """The version that was live when the fact was recorded, or the latest version."""
    if live is None:
        return journey.definition
    key = (journey.row.id, live.version)
    return (await load_shown_definitions(tx, organization_id, {key}))[key]


def _reason(fact: _Fact, live: LivePeriod | None, definition: Definition, context: EvaluationContext | None) -> str:
    if fact.is_stale:
        return "It was recorded more than 7 days late."
    if live is None:
        return "The journey was not live when it was recorded."
    verdict = False if context is None else evaluate(FILTER, definition.filter, context)
    if isinstance(verdict, NotEvaluable):
        return f"No customer enters, because we cannot check the conditions: {verdict.fault}"
    if not verdict:
        return "The conditions do not match."
    return "The customer was already in the journey, or entered too recently."


def _fact_of_sale(sale: SaleRow) -> _Fact:
    entry = entry_of_sale(sale)
    return _Fact("" if entry is None else entry.id, sale.created_at, entry is None, sale)


async def _list_consents(tx: Tx, organization_id: UUID, profile_id: UUID, *, secret: bytes) -> list[_Fact]:
    facts = []
    for number in await list_by_profile(tx, organization_id, profile_id, secret=secret):
        entries = await list_last_entries(tx, organization_id, number.id, limit=_ENTRIES_MAX)
        facts += [
            _Fact(
                entry_of_consent(number.id, entry.sequence, profile_id, entry.received_at).id,
                entry.received_at,
                entry.received_at - (entry.claimed_at or entry.received_at) > AUTOMATION_WINDOW,
                None,
            )
            for entry in entries
            if entry.kind == Kind.OPT_IN and entry.outcome in _SUBSCRIBING_OUTCOMES
        ]
    return facts


def _result_of(explanation: conditions.ConditionExplanation) -> ConditionResult:
    condition, holds = explanation.condition, explanation.holds is True
    if isinstance(condition, Group):
        return ConditionResult(
            GROUP_LABELS[kind_of(condition)], holds, tuple(_result_of(it) for it in explanation.inner)
        )
    label = describe_condition(condition)
    return ConditionResult(label[:1].upper() + label[1:], holds)
