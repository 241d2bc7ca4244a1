"""What a run knows at a moment: the values that conditions are evaluated on, and the variables of its texts. No I/O.

A filter or a branch is true, false, or cannot be judged while an attribute or segment it refers to has a fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any

from regulars.catalog.model import day_of
from regulars.conditions.customers import Customer, Explained, SawTimes, Ticket
from regulars.conditions.evaluation import Evaluator, Subject
from regulars.conditions.tree import Bought, Condition
from regulars.journeys.model import PersonRow, SaleRow
from regulars.messaging.template import ATTRIBUTE_PREFIX


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What conditions are judged by. `current` is the customer as of `today`, by whom segments are judged: that is now,
    in a backtest too, since who was in a segment earlier is not known."""

    now: datetime
    evaluator: Evaluator
    customer: Customer
    current: Customer
    today: date
    ticket: Ticket | None = None
    is_subscribed: bool = False
    # What cannot be judged now, and why, by place: `filter`, or the id of a branch.
    unjudgeable: Mapping[str, str] = field(default_factory=dict)

    @property
    def zone(self) -> str:
        return self.evaluator.known.zone.key

    def with_attributes(self, attributes: Mapping[str, str]) -> "Seen":
        """As if the customer had these."""
        customer, current = (replace(it, attributes=attributes) for it in (self.customer, self.current))
        return replace(self, customer=customer, current=current)

    @cached_property
    def segments(self) -> dict[str, bool | None]:
        return self.evaluator.find_segments(self.current, self.today)

    def explain(self, condition: Condition) -> Explained:
        day = day_of(self.now, self.evaluator.known.zone)
        return self.evaluator.explain(condition, Subject(self.customer, day, self.segments, self.ticket))


@dataclass(frozen=True, slots=True)
class CannotJudge:
    """Neither yes nor no, and why."""

    fault: str


def judge(place: str, condition: Condition | None, seen: Seen) -> bool | CannotJudge:
    """A missing condition holds."""
    fault = seen.unjudgeable.get(place)
    if fault is not None:
        return CannotJudge(fault)
    return condition is None or seen.explain(condition).holds is True


def describe_segments(seen: Seen, ids: frozenset[str]) -> dict[str, Any]:
    """For a trace: which segments were asked about, each with the version that decided."""
    inside, known = seen.segments if ids else {}, seen.evaluator.known.segments
    shown = {it: {"version": known[it].version, "in": inside.get(it)} for it in sorted(ids) if it in known}
    return {"segments": shown} if shown else {}


def describe_context(seen: Seen, condition: Condition, ids: frozenset[str]) -> dict[str, Any]:
    """For a trace: what a branch saw, without the customer's own words."""
    purchases: dict[str, int] = {}
    found = [seen.explain(condition)]
    while found:
        one = found.pop()
        found += one.inner
        match one.condition, one.saw:
            case Bought(window=window), SawTimes(times=times) if window is not None and window.last_days is not None:
                purchases[str(window.last_days)] = times
            case _:
                pass
    return {"subscribed": seen.is_subscribed, "purchases": purchases, **describe_segments(seen, ids)}


_MINOR_UNITS = 100


def values_of(person: PersonRow, sale: SaleRow | None, *, brand: str) -> dict[str, str | None]:
    return {
        "brand": brand,
        "profile.first_name": person.first_name,
        "profile.last_name": person.last_name,
        "store.name": None if sale is None else sale.store_name or sale.store_external_id,
        "ticket.total": None if sale is None else _money(sale.amount_cents, sale.currency),
        **{ATTRIBUTE_PREFIX + key: value for key, value in person.attributes.items()},
    }


def _money(cents: int, currency: str) -> str:
    return f"{cents // _MINOR_UNITS}.{cents % _MINOR_UNITS:02d} {currency}"
