"""Sums of tickets per currency, with the rates derived from them; and whether a store has stopped sending tickets."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from operator import add, attrgetter, sub
from typing import Any, Final

# A store is silent if it usually sends this many tickets in the time since its last one. By chance a store that works
# sends none in that time less than once in a thousand checks.
SILENT_AFTER_TICKETS: Final = 7.0


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of purchases and returns in one currency. `docs/analytics.md` defines every metric."""

    purchases: int = 0
    returns: int = 0
    # Tickets with a customer, also with one who was erased since.
    identified: int = 0
    gross_cents: int = 0
    returned_cents: int = 0
    # The discounts of purchases.
    discount_cents: int = 0
    # The tax of purchases minus the tax of returns.
    tax_cents: int = 0
    # The quantities of purchases; a line with a unit of measure (kg, m) counts as 1.
    units: Decimal = Decimal()
    returned_units: Decimal = Decimal()
    # Lines of purchases.
    lines: int = 0

    @property
    def net_cents(self) -> int:
        return self.gross_cents - self.returned_cents

    @property
    def tickets(self) -> int:
        return self.purchases + self.returns

    @property
    def ticket_cents(self) -> int | None:
        """The average purchase, rounded half up."""
        return (2 * self.gross_cents + self.purchases) // (2 * self.purchases) if self.purchases else None

    @property
    def units_per_ticket(self) -> float | None:
        return _ratio(self.units, self.purchases)

    @property
    def return_rate(self) -> float | None:
        """The returned amount divided by the amount of purchases."""
        return _ratio(self.returned_cents, self.gross_cents)

    @property
    def return_rate_by_tickets(self) -> float | None:
        return _ratio(self.returns, self.tickets)

    @property
    def discount_rate(self) -> float | None:
        return _ratio(self.discount_cents, self.gross_cents + self.discount_cents)

    @property
    def identified_rate(self) -> float | None:
        return _ratio(self.identified, self.tickets)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*map(add, _values_of(self), _values_of(other)))

    def __sub__(self, other: "Sums") -> "Sums":
        return Sums(*map(sub, _values_of(self), _values_of(other)))


_values_of: Final[Callable[[Sums], Iterable[Any]]] = attrgetter(*(column.name for column in fields(Sums)))


def _ratio(part: int | Decimal, total: int) -> float | None:
    return float(part / total) if total else None


@dataclass(frozen=True, slots=True)
class PerCurrency:
    """Sums per currency. Amounts of different currencies are never added; numbers of tickets are."""

    sums: Mapping[str, Sums] = field(default_factory=dict)

    @property
    def tickets(self) -> int:
        return sum(sums.tickets for sums in self.sums.values())

    @property
    def returns(self) -> int:
        return sum(sums.returns for sums in self.sums.values())

    @property
    def identified(self) -> int:
        return sum(sums.identified for sums in self.sums.values())

    def by_net_sales(self) -> list[tuple[str, Sums]]:
        """Sort the currencies by net sales, largest first."""
        return sorted(self.sums.items(), key=lambda item: (-item[1].net_cents, item[0]))


def add_up(currency_sums: Iterable[tuple[str, Sums]]) -> PerCurrency:
    sums_by_currency: dict[str, Sums] = {}
    for currency, sums in currency_sums:
        sums_by_currency[currency] = sums_by_currency[currency] + sums if currency in sums_by_currency else sums
    return PerCurrency(sums_by_currency)


def add_totals(totals: Iterable[PerCurrency]) -> PerCurrency:
    return add_up(item for total in totals for item in total.sums.items())


def subtract(total: PerCurrency, part: PerCurrency) -> PerCurrency:
    """Subtract a part from the total that it is part of."""
    return PerCurrency({currency: sums - part.sums.get(currency, Sums()) for currency, sums in total.sums.items()})


def is_silent(expected_since_last: float) -> bool:
    """Whether a store is silent, given the number of tickets that were expected since its last one."""
    return expected_since_last >= SILENT_AFTER_TICKETS


def expected_tickets(usual_by_hour: Mapping[int, float], *, since: datetime, until: datetime) -> float:
    """Estimate how many tickets a store usually sends between two times of one day, from its usual number per hour."""
    total = 0.0
    for hour, count in usual_by_hour.items():
        start = until.replace(hour=hour, minute=0, second=0, microsecond=0)
        overlap = min(until.timestamp(), start.timestamp() + 3600) - max(since.timestamp(), start.timestamp())
        total += count * max(0.0, overlap) / 3600
    return total


def usual_rate(usual_by_hour: Mapping[int, float]) -> int:
    """Return the usual number of tickets per open hour, rounded; an hour with at least one usual ticket is open."""
    open_hours = [count for count in usual_by_hour.values() if count >= 1]
    return math.floor(sum(open_hours) / len(open_hours) + 0.5) if open_hours else 0
