"""A condition on the amount of at least one purchase."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import ClassVar

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.customers import (
    ConditionExplanation,
    CustomerSale,
    LineFilter,
    ObservedMoney,
    StoreNames,
    net_cents,
)
from regulars.conditions.field_types import Cents
from regulars.conditions.forms.parts import CURRENCY, Form, Label, Limits, SalesFilter, SalesWindow
from regulars.conditions.kind import Answer, is_within
from regulars.conditions.kinds.sales import PURCHASE, WindowedSalesKind, check_sales_limits
from regulars.conditions.labels import Labels
from regulars.sales.model import Currency


class TicketValue(WindowedSalesKind, frozen=True, kw_only=True, tag="ticket_value"):
    """The amount of at least one purchase."""

    currency: Currency
    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None

    FORM: ClassVar = Form(
        kind="ticket_value",
        label="Ticket value",
        defaults={"low": "100.00", "days": "365"},
        parts=(Label("A ticket of"), Limits("cents"), *CURRENCY, SalesWindow(), SalesFilter()),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from WindowedSalesKind.find_faults(self, place, context)
        low, high = self.at_least_cents, self.at_most_cents
        yield from check_sales_limits(low, high, place, none=False, may_be_none=False)

    def sentence(self, labels: Labels) -> str:
        amounts = (self.at_least_cents, self.at_most_cents)
        limits = labels.limits(*(labels.money(cents, self.currency) for cents in amounts))
        return f"A ticket of {limits}{self.scope_label(labels)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedMoney(cents=cents, currency=currency) if cents is not None:
                return f"Largest ticket {labels.format.money(cents, currency)}{self.scope_label(labels)}"
            case _:
                return f"No ticket in {self.currency}{self.scope_label(labels)}"

    def measure(self, sales: Sequence[CustomerSale], line_filter: LineFilter, today: date) -> Answer:
        bought = [sale for sale in sales if sale.type == PURCHASE and sale.currency == self.currency]
        values = [net_cents(sale, line_filter) for sale in bought]
        holds = any(is_within(value, self.at_least_cents, self.at_most_cents) for value in values)
        return Answer(holds, ObservedMoney(max(values, default=None), self.currency))

    def over_columns(self, columns: Columns[M]) -> M:
        scope = self.scope("purchases", currency=self.currency)
        return columns.has_ticket(scope, low=self.at_least_cents, high=self.at_most_cents)
