"""A condition on the number of purchases, of days with a purchase, or of articles bought less returned."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.column_protocol import Columns, M
from regulars.conditions.customers import (
    ConditionExplanation,
    CustomerSale,
    LineFilter,
    ObservedArticles,
    ObservedTimes,
    StoreNames,
    articles_of,
)
from regulars.conditions.forms.parts import Form, Label, Limits, SalesFilter, SalesWindow
from regulars.conditions.kind import Answer, Needs, is_within
from regulars.conditions.kinds.sales import (
    PURCHASE,
    WindowedSalesKind,
    check_sales_limits,
    count_limits,
    count_times,
    describe_last,
)
from regulars.conditions.labels import Labels
from regulars.sales.model import millionths

Quantity = Annotated[int, Meta(ge=-(10**9), le=10**9)] | Annotated[float, Meta(ge=-1e9, le=1e9)]
DECIMALS_MAX: Final = 6


class Bought(WindowedSalesKind, frozen=True, kw_only=True, tag="bought"):
    """The number of purchases; at least one, if no limit is given. Or the number of calendar days with a purchase, or
    of articles bought less returned."""

    count: Literal["tickets", "days", "articles"] = "tickets"
    at_least: Quantity | None = None
    at_most: Quantity | None = None
    none: bool = False

    # Each way of counting has a form of its own.
    FORM: ClassVar = Form(
        kind="bought",
        label="Bought",
        is_quick=True,
        defaults={"low": "1", "days": "30"},
        fixed={"type": "bought", "count": "tickets"},
        parts=(Label(), Limits("times", "times", "nothing"), SalesWindow(), SalesFilter()),
    )
    DAYS_FORM: ClassVar = Form(
        kind="purchase_days",
        label="Purchase days",
        defaults={"low": "2", "days": "365"},
        fixed={"type": "bought", "count": "days"},
        parts=(Label(), Limits("days", "days", "none"), SalesWindow(), SalesFilter()),
    )
    ARTICLES_FORM: ClassVar = Form(
        kind="articles",
        label="Articles bought",
        defaults={"low": "1", "days": "365"},
        fixed={"type": "bought", "count": "articles"},
        parts=(Label("Bought"), Limits("articles", "articles, minus returns", "none"), SalesWindow(), SalesFilter()),
    )

    def form(self) -> Form:
        return {"tickets": self.FORM, "days": self.DAYS_FORM, "articles": self.ARTICLES_FORM}[self.count]

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from WindowedSalesKind.find_faults(self, place, context)
        is_of_articles = self.count == "articles"
        yield from check_sales_limits(
            self.at_least, self.at_most, place, none=self.none, may_be_none=not is_of_articles
        )
        limits = [limit for limit in (self.at_least, self.at_most) if limit is not None]
        if is_of_articles and any(_count_decimals(limit) > DECIMALS_MAX for limit in limits):
            yield Fault(place, f"A quantity has at most {DECIMALS_MAX} decimals.")
        elif not is_of_articles and any(limit < 0 or limit % 1 for limit in limits):
            unit = "days" if self.count == "days" else "purchases"
            yield Fault(place, f"A number of {unit} is a whole number, 0 or more.")

    def needs(self, today: date) -> Needs:
        needs = WindowedSalesKind.needs(self, today)
        return needs._replace(with_lines=True) if self.count == "articles" else needs

    def sentence(self, labels: Labels) -> str:
        scope = self.scope_label(labels)
        if self.count == "articles":
            count = "no" if self.none else labels.number_limits(self.at_least, self.at_most)
            return f"Bought {count} articles minus returns{scope}"
        if self.none:
            return f"Bought nothing{scope}"
        has_no_limit = self.at_least is None and self.at_most is None
        times = labels.number_limits(1 if has_no_limit else self.at_least, self.at_most)
        return f"Bought {f'on {times} days' if self.count == 'days' else f'{times} times'}{scope}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedTimes(times=times, last=last) if last is not None:
                number = labels.format.number(times)
                how_often = "once" if times == 1 else f"{number} times"
                if self.count == "days":
                    how_often = "on one day" if times == 1 else f"on {number} days"
                return f"Bought {how_often}{self.scope_label(labels)}{describe_last(last, labels, stores)}"
            case ObservedArticles(quantity=quantity):
                return f"{labels.format.number(quantity.normalize())} articles minus returns{self.scope_label(labels)}"
            case _:
                return f"Bought nothing{self.scope_label(labels)}"

    def measure(self, sales: Sequence[CustomerSale], line_filter: LineFilter, today: date) -> Answer:
        if self.count == "articles":
            articles = articles_of(sales, line_filter)
            # From millionths.
            observation = ObservedArticles(Decimal(articles).scaleb(-6))
            return Answer(is_within(articles, *self._articles_limits(), none=self.none), observation)
        bought = [sale for sale in sales if sale.type == PURCHASE]
        times = len({sale.day for sale in bought}) if self.count == "days" else len(bought)
        return count_times(times, bought, self.at_least, self.at_most, none=self.none)

    def over_columns(self, columns: Columns[M]) -> M:
        if self.count == "articles":
            low, high = (None, 0) if self.none else self._articles_limits()
            return columns.within(self.scope("all"), "articles", low=low, high=high)
        low, high = count_limits(self.at_least, self.at_most, none=self.none)
        return columns.within(self.scope("purchases"), self.count, low=low, high=high)

    def _articles_limits(self) -> tuple[int | None, int | None]:
        """The limits in millionths."""
        low, high = (None if limit is None else millionths(limit) for limit in (self.at_least, self.at_most))
        return low, high


def _count_decimals(value: float) -> int:
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
