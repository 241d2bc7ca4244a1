"""A condition on the net spend of the customer."""

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
    spend_of,
)
from regulars.conditions.field_types import Cents
from regulars.conditions.forms.parts import CURRENCY, Form, Label, Limits, SalesFilter, SalesWindow
from regulars.conditions.kind import Answer, is_within
from regulars.conditions.kinds.sales import WindowedSalesKind, check_sales_limits
from regulars.conditions.labels import Labels
from regulars.sales.model import Currency


class Spend(WindowedSalesKind, frozen=True, kw_only=True, tag="spend"):
    """Purchases less returns, in one currency; with a product filter, the totals of the matching lines. `none` means at
    most 0."""

    currency: Currency
    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None
    none: bool = False

    FORM: ClassVar = Form(
        kind="spend",
        label="Net spend",
        is_quick=True,
        defaults={"low": "100.00", "days": "365"},
        parts=(Label(), Limits("cents", none="nothing"), *CURRENCY, SalesWindow(), SalesFilter()),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from WindowedSalesKind.find_faults(self, place, context)
        low, high = self.at_least_cents, self.at_most_cents
        yield from check_sales_limits(low, high, place, none=self.none, may_be_none=False)

    def sentence(self, labels: Labels) -> str:
        if self.none:
            return f"Spent nothing in {self.currency}{self.scope_label(labels)}"
        amounts = (self.at_least_cents, self.at_most_cents)
        limits = labels.limits(*(labels.money(cents, self.currency) for cents in amounts))
        return f"Net spend {limits}{self.scope_label(labels)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedMoney(cents=cents, currency=currency) if cents is not None:
                return f"Net spend {labels.format.money(cents, currency)}{self.scope_label(labels)}"
            case _:
                return self.sentence(labels)

    def measure(self, sales: Sequence[CustomerSale], line_filter: LineFilter, today: date) -> Answer:
        cents = spend_of(sales, self.currency, line_filter)
        holds = is_within(cents, self.at_least_cents, self.at_most_cents, none=self.none)
        return Answer(holds, ObservedMoney(cents, self.currency))

    def over_columns(self, columns: Columns[M]) -> M:
        low, high = (None, 0) if self.none else (self.at_least_cents, self.at_most_cents)
        return columns.within(self.scope("all", currency=self.currency), "cents", low=low, high=high)
