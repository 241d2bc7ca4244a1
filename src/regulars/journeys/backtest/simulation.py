"""Simulates one customer's run through a journey from a past time, using the customer's recorded history. No I/O.

The code for live runs (`runs/decide.py`) decides every step. This module adds the environment of a live run: when the
run is woken, whether its text passes the checks before sending (the gate), and which event ends it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.customers import Customer
from regulars.conditions.evaluation import Evaluator
from regulars.consent.numbers import TextNumber
from regulars.journeys.backtest.history import CustomerHistory
from regulars.journeys.check import find_unevaluable
from regulars.journeys.context import EvaluationContext
from regulars.journeys.definition import Definition
from regulars.journeys.model import SaleRow
from regulars.journeys.program import graph_of
from regulars.journeys.runs.decide import WITHDRAWN, Position, RunContext, RunProgress, RunSubject, advance, find_exit
from regulars.journeys.snapshot import customer_without_conditions, ticket_of
from regulars.texts.gate import GateContext, SendAllowed, Skip, decide, find_country_fault
from regulars.texts.model import EXPIRES_AFTER, SkipReason
from regulars.texts.number_location import locate_number
from regulars.texts.request import compose_for
from regulars.texts.settings.store import Texting
from regulars.texts.template import MissingValue

STILL_WAITING: Final = "still waiting"


@dataclass(slots=True, kw_only=True)
class BacktestContext:
    """The data that the simulations of all customers share."""

    journey_id: UUID
    definition: Definition
    # False in old versions, in which all splits divide the customers identically.
    has_independent_splits: bool
    texting: Texting
    evaluator: Evaluator
    now: datetime
    # Hashes of numbers that must not be texted.
    suppressed: set[bytes] = field(default_factory=set)
    # Customers of the current global holdout.
    held_out: set[UUID] = field(default_factory=set)
    # The customers as they are now, because earlier memberships of segments are not recorded.
    customers: Mapping[UUID, Customer] = field(default_factory=dict)
    # Why conditions cannot be evaluated, by location: `filter`, or the id of a branch.
    unevaluable: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.unevaluable = find_unevaluable(self.definition, self.evaluator.context)

    def evaluation_at(self, history: CustomerHistory, sale: SaleRow | None, at: datetime) -> EvaluationContext:
        person, zone = history.person, self.evaluator.context.zone
        current = replace(
            self.customers.get(person.id) or customer_without_conditions(person), attributes=person.attributes
        )
        return EvaluationContext(
            now=at,
            evaluator=self.evaluator,
            customer=history.customer_at(at, current, zone),
            current=current,
            today=day_of(self.now, zone),
            ticket=ticket_of(sale),
            is_subscribed=history.number_at(at) is not None,
            unevaluable=self.unevaluable,
        )


class SimulatedText(NamedTuple):
    """A text that the backtest would send at this time, or skip; `reason` says why it is skipped."""

    at: datetime
    reason: str | None
    parts: int = 0


class SimulatedRun(NamedTuple):
    """A simulated run; `ended_at` is None if it still waits."""

    ended_at: datetime | None
    outcome: str
    texts: list[SimulatedText]
    # Whether a sale or a withdrawal ended the run, and not its steps.
    is_exit: bool = False

    def is_open_for(self, recorded_at: datetime) -> bool:
        """Whether the run is open when a sale or consent is handled that may start the next run. It first ends the runs
        that exit on it. Other runs take their steps after it."""
        if self.ended_at is None or self.ended_at > recorded_at:
            return True
        return self.ended_at == recorded_at and not self.is_exit


class RunSimulation:
    def __init__(
        self, backtest: BacktestContext, history: CustomerHistory, sale: SaleRow | None, entered_at: datetime
    ) -> None:
        self._backtest = backtest
        self._history = history
        self._sale = sale
        self._subject = RunSubject(
            journey_id=backtest.journey_id,
            profile_id=history.person.id,
            definition=backtest.definition,
            fact_kind="consent" if sale is None else "sale",
            triggered_at=entered_at,
            has_independent_splits=backtest.has_independent_splits,
        )
        # The time and the outcome of the event that ends the run at any step.
        self._exit = min(self._find_exits(), default=None)
        self._texts: list[SimulatedText] = []

    def run(self) -> SimulatedRun:
        """Advance the run at each time at which it is woken."""
        position, at = Position(graph_of(self._backtest.definition).first), self._subject.triggered_at
        while at <= self._backtest.now:
            if self._exit is not None and self._exit[0] <= at:
                return SimulatedRun(*self._exit, self._texts, is_exit=True)
            progress = advance(self._subject, position, self._build_context(at))
            self._history.person.attributes.update(progress.changes)
            if progress.outcome is not None:
                return SimulatedRun(at, progress.outcome, self._texts)
            position, at = progress.position, self._find_next_wake_up(progress, at)
        return SimulatedRun(None, STILL_WAITING, self._texts)

    def _find_exits(self) -> Iterator[tuple[datetime, str]]:
        since = self._subject.triggered_at
        sale_exit = find_exit(self._backtest.definition, self._history.sales, since=since, entry=self._sale)
        if sale_exit is not None:
            yield sale_exit
        withdrawn_at = self._history.first_withdrawal(after=since)
        if withdrawn_at is not None:
            yield withdrawn_at, WITHDRAWN

    def _build_context(self, at: datetime) -> RunContext:
        backtest, history = self._backtest, self._history
        number = history.number_at(at)
        return RunContext(
            evaluation=backtest.evaluation_at(history, self._sale, at),
            person=history.person,
            sale=self._sale,
            sales=history.recorded_by(at, except_id=None if self._sale is None else self._sale.id),
            phone_number=None if number is None else number.phone_number,
            brand=backtest.texting.brand,
        )

    def _find_next_wake_up(self, progress: RunProgress, at: datetime) -> datetime:
        """When the run is woken next: by the end of its wait, a purchase, the outcome of its text, or its exit."""
        times = [] if progress.due_at is None else [progress.due_at]
        if progress.position.waits_for == "purchase":
            times += [it.created_at for it in self._history.sales if it.type == "PURCHASE" and it.created_at > at]
        if progress.text is not None:
            times = [self._send(progress.text.rendered, at)]
        if self._exit is not None:
            times.append(self._exit[0])
        return min(times)

    def _send(self, rendered: str | MissingValue, at: datetime) -> datetime:
        """Record the simulated text, and return when it is sent or skipped. It is skipped if the run ends before it
        would be sent."""
        number = self._history.number_at(at)
        text = self._pass_gate(rendered, number, at)
        if self._exit is not None and at < self._exit[0] <= text.at:
            text = SimulatedText(self._exit[0], SkipReason.LEFT.value)
        if text.at <= self._backtest.now:
            self._texts.append(text)
            if text.reason is None and number is not None:
                self._history.texted.setdefault(number.number_hash, []).append(text.at)
        return text.at

    def _pass_gate(
        self, rendered: str | MissingValue, number: TextNumber | None, requested_at: datetime
    ) -> SimulatedText:
        """Apply the gate each time that a worker would have tried the text, until now."""
        backtest = self._backtest
        if self._history.person.id in backtest.held_out:
            return SimulatedText(requested_at, SkipReason.GLOBAL_HOLDOUT.value)
        composed = compose_for(rendered, number, backtest.texting)
        if composed.reason is not None or number is None:
            return SimulatedText(requested_at, composed.reason)
        location = locate_number(number.phone_number)
        at = requested_at
        while at <= backtest.now:
            gate_context = GateContext(
                is_exempt=False,
                profile_id=self._history.person.id,
                expires_at=requested_at + EXPIRES_AFTER,
                location=location,
                country_fault=find_country_fault(backtest.texting, location.country, composed.body),
                is_subscribed=self._history.may_text(number.number_hash, at),
                linked_profile_id=self._history.person.id,
                is_suppressed=number.number_hash in backtest.suppressed,
                rule=backtest.texting.settings.rule_of(location.country or ""),
                earlier=self._history.texted.get(number.number_hash, ()),
            )
            decision = decide(gate_context, backtest.texting.settings.caps, at)
            if isinstance(decision, SendAllowed):
                return SimulatedText(at, None, composed.measured.parts)
            if isinstance(decision, Skip):
                return SimulatedText(at, decision.reason.value)
            at = decision.until
        return SimulatedText(at, None)
