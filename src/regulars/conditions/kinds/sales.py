"""What all conditions on the sales of a customer have: the filter by store, product and property, and the window."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import ClassVar, Final, Literal

from regulars.conditions.check import (
    ConditionContext,
    Fault,
    check_key,
    check_limits,
    check_stores,
    check_when,
    check_window,
    list_texts_of,
)
from regulars.conditions.column_protocol import Columns, M, SalesScope
from regulars.conditions.comparisons import days_of, holds_on
from regulars.conditions.customers import (
    ConditionExplanation,
    CustomerSale,
    LineFilter,
    ObservedDay,
    ObservedTimes,
    SaleLine,
    StoreNames,
    Subject,
    has_matching_line,
)
from regulars.conditions.field_types import OfProperty, When, Window
from regulars.conditions.field_types import References as SaleReferences
from regulars.conditions.kind import Answer, CustomerTests, Kind, Needs, References, is_within
from regulars.conditions.labels import Labels
from regulars.sales.model import Currency

PURCHASE: Final = "PURCHASE"
RETURN: Final = "RETURN"


class SalesKind(Kind, frozen=True, kw_only=True):
    """A filter of sales and their lines, by store, product and property. A kind has `measure` instead of `answer`."""

    stores: SaleReferences = ()
    products: SaleReferences = ()
    property: OfProperty | None = None

    def references(self) -> References:
        return References(properties=() if self.property is None else (self.property.key,), stores=self.stores)

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from check_stores(self.stores, f"{place}.stores", context)
        if self.property is not None:
            yield from check_key(self.property, f"{place}.property", context.properties, noun="product property")

    def list_texts(self) -> Iterator[tuple[str, Collection[str]]]:
        if self.property is not None:
            yield from list_texts_of(self.property, "property.")
        yield "stores", self.stores
        yield "products", self.products

    def needs(self, today: date) -> Needs:
        return Needs(sales_since=self.days(today)[0], with_lines=bool(self.products) or self.property is not None)

    def days(self, today: date) -> tuple[date, date]:
        """The first and the last day whose sales count."""
        return date.min, date.max

    def filter_label(self, labels: Labels) -> str:
        """Describe the filter of sales by store and product."""
        parts = []
        if self.products:
            parts.append(f" of {labels.list_first(self.products)}")
        if self.property is not None:
            parts.append(f" where {labels.comparison(self.property)}")
        if self.stores:
            parts.append(f" in {', '.join(labels.stores(self.stores))}")
        return "".join(parts)

    def answer(self, subject: Subject, tests: CustomerTests) -> Answer:
        """If the property of a line cannot be parsed, the condition is evaluated twice, with the line as a match and
        without it; if the results differ, the result is unknown. With a comparison that the type does not allow, it is
        unknown for every customer."""
        compared, products, today = self.property, self.products, subject.today
        if not products and compared is None:
            return self._measure(subject, tests, None)

        def matches(line: SaleLine) -> bool | None:
            return tests.matches_line(line, products, compared, today)

        answer = self._measure(subject, tests, lambda line: matches(line) is True)
        if compared is None:
            return answer
        if tests.find_test(compared, today) is None:
            return answer._replace(holds=None)
        with_unparsed = self._measure(subject, tests, lambda line: matches(line) is not False)
        return answer if with_unparsed.holds is answer.holds else answer._replace(holds=None)

    def _measure(self, subject: Subject, tests: CustomerTests, line_filter: LineFilter) -> Answer:
        """Measure the customer's sales in the window and stores that have a matching line, earliest first."""
        first, last = self.days(subject.today)
        stores = tests.find_store_ids(self.stores)
        ticket_id = None if subject.ticket is None else subject.ticket.id
        sales = [
            sale
            for sale in subject.customer.sales
            if first <= sale.day <= last
            and (not self.stores or sale.store_id in stores)
            and sale.id != ticket_id
            and has_matching_line(sale, line_filter)
        ]
        return self.measure(sales, line_filter, subject.today)

    def measure(self, sales: Sequence[CustomerSale], line_filter: LineFilter, today: date) -> Answer:
        raise NotImplementedError

    def scope(self, types: Literal["purchases", "returns", "all"], *, currency: Currency | None = None) -> SalesScope:
        return SalesScope(types, currency, None, self.stores, self.products, self.property)


class WindowedSalesKind(SalesKind, frozen=True, kw_only=True):
    # None means sales of any time.
    window: Window | None = None

    def days(self, today: date) -> tuple[date, date]:
        return days_of(self.window, today)

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from SalesKind.find_faults(self, place, context)
        if self.window is not None:
            yield from check_window(self.window, f"{place}.window")

    def scope_label(self, labels: Labels) -> str:
        return f"{self.filter_label(labels)}{labels.window(self.window)}"

    def scope(self, types: Literal["purchases", "returns", "all"], *, currency: Currency | None = None) -> SalesScope:
        return SalesScope(types, currency, self.window, self.stores, self.products, self.property)


def check_sales_limits(
    low: float | None, high: float | None, place: str, *, none: bool, may_be_none: bool
) -> Iterator[Fault]:
    """Check two limits; `none` asks for no sale, `may_be_none` says that there may be no limit."""
    if none and (low is not None or high is not None):
        yield Fault(place, "Use none or a limit, not both.")
    yield from check_limits(low, high, place, may_be_none=none or may_be_none)


def count_times(
    times: int, sales: Sequence[CustomerSale], low: float | None, high: float | None, *, none: bool
) -> Answer:
    """Compare a number of sales or days with the limits; without any limit, there is at least one."""
    low, high = count_limits(low, high, none=none)
    return Answer(is_within(times, low, high), ObservedTimes(times, sales[-1] if sales else None))


def count_limits(low: float | None, high: float | None, *, none: bool) -> tuple[int | None, int | None]:
    if none:
        return None, 0
    if low is None and high is None:
        return 1, None
    # The check refuses numbers with decimals.
    return None if low is None else int(low), None if high is None else int(high)


def describe_last(last: CustomerSale, labels: Labels, stores: StoreNames) -> str:
    """Describe the last of the sales that were counted."""
    where = stores.get(last.store_id, "")
    in_store = f" in {where}" if where else ""
    return f", last on {labels.format.full_day(last.day)}{in_store}"


class PurchaseDayKind(SalesKind, frozen=True, kw_only=True):
    """A condition on the day of the first or the last purchase."""

    when: When

    WHICH: ClassVar[Literal["first", "last"]]

    def find_faults(self, place: str, context: ConditionContext) -> Iterator[Fault]:
        yield from SalesKind.find_faults(self, place, context)
        yield from check_when(self.when, f"{place}.when", day_may_be_missing=True)

    def sentence(self, labels: Labels) -> str:
        or_never = ", or never bought" if self.when.without_value else ""
        return f"{self.WHICH.capitalize()} purchase{self.filter_label(labels)}{labels.when(self.when)}{or_never}"

    def describe(self, explanation: ConditionExplanation, labels: Labels, stores: StoreNames) -> str:
        match explanation.observation:
            case ObservedDay(day=day) if day is not None:
                return f"{self.WHICH.capitalize()} purchase{self.filter_label(labels)} on {labels.format.full_day(day)}"
            case _:
                return f"Never bought{self.filter_label(labels)}"

    def measure(self, sales: Sequence[CustomerSale], line_filter: LineFilter, today: date) -> Answer:
        bought = [sale for sale in sales if sale.type == PURCHASE]
        sale = None if not bought else bought[0] if self.WHICH == "first" else bought[-1]
        day = None if sale is None else sale.day
        return Answer(holds_on(self.when, day, today), ObservedDay(day, sale))

    def over_columns(self, columns: Columns[M]) -> M:
        return columns.purchased(self.scope("purchases"), self.WHICH, self.when)
