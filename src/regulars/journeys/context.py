"""Evaluates the conditions of a journey for one customer at one time, and fills the variables of its texts. No I/O.

A filter or a branch is true, false, or cannot be evaluated while an attribute or segment it refers to has a fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any

from regulars.catalog.model import day_of
from regulars.conditions.customers import ConditionExplanation, Customer, ObservedTimes, Subject, Ticket
from regulars.conditions.evaluation import Evaluator
from regulars.conditions.labels import PlainFormat
from regulars.conditions.tree import Bought, Condition
from regulars.journeys.model import PersonRow, SaleRow
from regulars.texts.template import customer_variables


@dataclass(frozen=True, kw_only=True)
class EvaluationContext:
    """The values on which conditions are evaluated. `customer` has the data of the time `now`, which is in the past in
    a backtest. Segments are evaluated for `current`, which always has the data of today, because earlier memberships of
    segments are not recorded."""

    now: datetime
    evaluator: Evaluator
    customer: Customer
    current: Customer
    today: date
    ticket: Ticket | None = None
    is_subscribed: bool = False
    # Why conditions cannot be evaluated now, by location: `filter`, or the id of a branch.
    unevaluable: Mapping[str, str] = field(default_factory=dict)

    @property
    def zone(self) -> str:
        return self.evaluator.context.zone.key

    def with_attributes(self, attributes: Mapping[str, str]) -> "EvaluationContext":
        """The same context with these attributes of the customer."""
        customer, current = (replace(it, attributes=attributes) for it in (self.customer, self.current))
        return replace(self, customer=customer, current=current)

    @cached_property
    def segments(self) -> dict[str, bool | None]:
        return self.evaluator.find_segments(self.current, self.today)

    def explain(self, condition: Condition) -> ConditionExplanation:
        day = day_of(self.now, self.evaluator.context.zone)
        return self.evaluator.explain(condition, Subject(self.customer, day, self.segments, self.ticket))


@dataclass(frozen=True, slots=True)
class NotEvaluable:
    """The condition is neither true nor false, because of a fault."""

    fault: str


def evaluate(location: str, condition: Condition | None, context: EvaluationContext) -> bool | NotEvaluable:
    """Evaluate the condition of a filter or branch; a missing condition is true."""
    fault = context.unevaluable.get(location)
    if fault is not None:
        return NotEvaluable(fault)
    return condition is None or context.explain(condition).holds is True


def describe_segments(context: EvaluationContext, ids: frozenset[str]) -> dict[str, Any]:
    """The entry of a trace about these segments: the version of each, and whether the customer is in it."""
    memberships, segments = context.segments if ids else {}, context.evaluator.context.segments
    described = {
        it: {"version": segments[it].version, "in": memberships.get(it)} for it in sorted(ids) if it in segments
    }
    return {"segments": described} if described else {}


def describe_inputs(context: EvaluationContext, condition: Condition, ids: frozenset[str]) -> dict[str, Any]:
    """The entry of a trace with the values that a branch decided on, without personal data."""
    purchases: dict[str, int] = {}
    explanations = [context.explain(condition)]
    while explanations:
        explanation = explanations.pop()
        explanations += explanation.inner
        match explanation.condition, explanation.observation:
            case Bought(window=window), ObservedTimes(times=times) if (
                window is not None and window.last_days is not None
            ):
                purchases[str(window.last_days)] = times
            case _:
                pass
    return {"subscribed": context.is_subscribed, "purchases": purchases, **describe_segments(context, ids)}


def template_variables(person: PersonRow, sale: SaleRow | None, *, brand: str) -> dict[str, str | None]:
    return {
        **customer_variables(person, brand=brand),
        "store.name": None if sale is None else sale.store_name or sale.store_external_id,
        "store.city": None if sale is None else sale.city,
        "ticket.total": None if sale is None else PlainFormat().money(sale.amount_cents, sale.currency),
    }
