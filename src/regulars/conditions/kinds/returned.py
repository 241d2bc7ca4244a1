"""A condition on the number of returns."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated, ClassVar

from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.customers import ConditionExplanation, CustomerSale, LineFilter, ObservedTimes, StoreNames
from regulars.conditions.forms.parts import Form, Label, Limits, SalesFilter, SalesWindow
from regulars.conditions.kind import Answer
from regulars.conditions.kinds.sales import (
    RETURN,
    WindowedSalesKind,
    check_sales_limits,
    count_limits,
    count_times,
    describe_last,
)
from regulars.conditions.labels import Labels

Times = Annotated[int, Meta(ge=0, le=1_000_000)]


class Returned(WindowedSalesKind, frozen=True, kw_only=True, tag="returned"):
    """The number of returns; at least one, if no limit is given."""

    at_least: Times | None = None
    at_most: Times | None = None
    none: bool = False

    FORM: ClassVar = Form(
        kind="returned",
        label="Returned",
        defaults={"low": "1", "days": "30"},
        parts=(Label(), Limits("times", "times", "nothing"), SalesWindow(), SalesFilter()),
    )

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from WindowedSalesKind.find_faults(self, place, context)
        yield from check_sales_limits(self.at_least, self.at_most, place, none=self.none, may_be_none=True)

    def sentence(self, labels: Labels) -> str:
        if self.none:
            return f"Returned nothing{self.scope_label(labels)}"
        has_no_limit = self.at_least is None and self.at_most is None
        times = labels.number_limits(1 if has_no_limit else self.at_least, self.at_most)
        return f"Returned {times} times{self.scope_label(labels)}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedTimes(times=times, last=last) if last is not None:
                how_often = "once" if times == 1 else f"{labels.format.number(times)} times"
                return f"Returned {how_often}{self.scope_label(labels)}{describe_last(last, labels, stores)}"
            case _:
                return f"Returned nothing{self.scope_label(labels)}"

    def measure(self, sales: Sequence[CustomerSale], line_filter: LineFilter, today: date) -> Answer:
        returned = [sale for sale in sales if sale.type == RETURN]
        return count_times(len(returned), returned, self.at_least, self.at_most, none=self.none)

    def over_columns(self, columns: Columns[M]) -> M:
        low, high = count_limits(self.at_least, self.at_most, none=self.none)
        return columns.within(self.scope("returns"), "tickets", low=low, high=high)
