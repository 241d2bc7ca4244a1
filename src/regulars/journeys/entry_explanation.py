"""Explain for a customer's latest sales or consents whether each started a run of a journey, and if not, why.

A run records its own decisions. A sale or consent that started no run left no trace, so its conditions are evaluated
again: with the version that was live then, and with the customer and the catalogs of now. The page says so.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.conditions import customers as conditions
from regulars.conditions.tree import Group, kind_of
from regulars.consent.find import list_of_customer
from regulars.consent.history import list_last_entries
from regulars.consent.model import Kind
from regulars.journeys.context import CannotJudge, Seen, judge
from regulars.journeys.definition import Definition
from regulars.journeys.labels import GROUP_WORDS, tell_condition
from regulars.journeys.manage import Journey
from regulars.journeys.model import SaleRow, SpanRow
from regulars.journeys.program import FILTER
from regulars.journeys.runs.definition_cache import load_definitions
from regulars.journeys.runs.enter import arrival_of_entry, arrival_of_sale
from regulars.journeys.runs.lists import list_spans
from regulars.journeys.snapshot import Subject, find_sales, list_last_sales, look
from regulars.kit.db import Tx
from regulars.work.facts import AUTOMATION_WINDOW

FACTS_MAX: Final = 5
_ENTRIES_MAX: Final = 20
_KINDS: Final = {"purchase": "PURCHASE", "return": "RETURN"}
_BROUGHT_IN: Final = frozenset({"created", "resubscribed"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A condition and whether it holds now; a group has what is in it."""

    words: str
    is_yes: bool
    inside: "tuple[Answer, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One fact: the run it began, or the reason why it began none."""

    recorded_at: datetime
    sale: SaleRow | None
    run_id: UUID | None
    reason: str
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fact:
    id: str
    recorded_at: datetime
    is_stale: bool
    sale: SaleRow | None


async def explain(
    tx: Tx, organization_id: UUID, journey: Journey, profile_id: UUID, *, secret: bytes
) -> list[Explained]:
    """The newest first."""
    trigger = journey.definition.trigger
    if trigger == "opt_in":
        facts = await _consents(tx, organization_id, profile_id, secret=secret)
    else:
        ids = await list_last_sales(tx, organization_id, profile_id, _KINDS[trigger], limit=FACTS_MAX)
        facts = [_of_sale(sale) for sale in await find_sales(tx, organization_id, ids)]
    facts = sorted(facts, key=lambda fact: fact.recorded_at, reverse=True)[:FACTS_MAX]
    kind = "consent" if trigger == "opt_in" else "sale"
    runs = await _find_runs_by_facts(tx, organization_id, journey.row.id, kind, [fact.id for fact in facts])
    spans = await list_spans(tx, organization_id, journey.row.id)
    explained = []
    for fact in facts:
        live = next(
            (it for it in spans if it.since <= fact.recorded_at and _is_before(fact.recorded_at, it.until)), None
        )
        definition = await _definition(tx, organization_id, journey, live)
        subject = Subject(profile_id, None if fact.sale is None else fact.sale.id, definition)
        seen = (await look(tx, organization_id, [subject])).seen(subject, tx.now)
        explained.append(_explain(fact, live, definition, seen, run_id=runs.get(fact.id)))
    return explained


async def _definition(tx: Tx, organization_id: UUID, journey: Journey, live: SpanRow | None) -> Definition:
    """The version that counted then, or the last one."""
    if live is None:
        return journey.definition
    key = (journey.row.id, live.version)
    return (await load_definitions(tx, organization_id, {key}))[key]


def _explain(
    fact: _Fact, live: SpanRow | None, definition: Definition, seen: Seen | None, *, run_id: UUID | None
) -> Explained:
    answers = () if seen is None or definition.filter is None else (_answer(seen.explain(definition.filter)),)
    return Explained(
        recorded_at=fact.recorded_at,
        sale=fact.sale,
        run_id=run_id,
        reason=_reason(fact, live, definition, seen) if run_id is None else "",
        answers=answers,
    )


def _reason(fact: _Fact, live: SpanRow | None, definition: Definition, seen: Seen | None) -> str:
    if fact.is_stale:
        return "It was more than seven days old when it was recorded."
    if live is None:
        return "The journey was not live when it was recorded."
    answer = False if seen is None else judge(FILTER, definition.filter, seen)
    if isinstance(answer, CannotJudge):
        return f"The conditions cannot be judged, so nobody enters: {answer.fault}"
    if not answer:
        return "The conditions do not hold."
    return "The customer was in the journey already, or had been too lately."


def _is_before(moment: datetime, until: datetime | None) -> bool:
    return until is None or moment < until


def _of_sale(sale: SaleRow) -> _Fact:
    arrival = arrival_of_sale(sale)
    return _Fact("" if arrival is None else arrival.id, sale.created_at, arrival is None, sale)


async def _consents(tx: Tx, organization_id: UUID, profile_id: UUID, *, secret: bytes) -> list[_Fact]:
    facts = []
    for number in await list_of_customer(tx, organization_id, profile_id, secret=secret):
        entries = await list_last_entries(tx, organization_id, number.id, limit=_ENTRIES_MAX)
        facts += [
            _Fact(
                arrival_of_entry(number.id, entry.sequence, profile_id, entry.received_at).id,
                entry.received_at,
                entry.received_at - (entry.claimed_at or entry.received_at) > AUTOMATION_WINDOW,
                None,
            )
            for entry in entries
            if entry.kind == Kind.OPT_IN and entry.outcome in _BROUGHT_IN
        ]
    return facts


def _answer(explained: conditions.Explained) -> Answer:
    condition, is_yes = explained.condition, explained.holds is True
    if isinstance(condition, Group):
        return Answer(GROUP_WORDS[kind_of(condition)], is_yes, tuple(_answer(one) for one in explained.inner))
    words = tell_condition(condition)
    return Answer(words[:1].upper() + words[1:], is_yes)


async def _find_runs_by_facts(
    tx: Tx, organization_id: UUID, journey_id: UUID, fact_kind: str, fact_ids: Collection[str]
) -> dict[str, UUID]:
    rows = await tx.fetch(
        """
        SELECT fact_id, id FROM journey_runs
        WHERE organization_id = %s AND journey_id = %s AND fact_kind = %s AND fact_id = ANY (%s::text[])
        """,
        (organization_id, journey_id, fact_kind, list(fact_ids)),
    )
    return {row[0]: row[1] for row in rows}
