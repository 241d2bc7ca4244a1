"""A query: measures of sales by at most two dimensions, with filters and one comparison. Every table of sums in the
pages, files and commands of analytics is an instance of `Query`.

Totals, the sums beside the rows, answer what has only time, store and currency. Columns answer what has a customer, a
product or a segment. Nothing is answered by both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal
from uuid import UUID

from regulars.analytics.period import Comparison, Period
from regulars.columns.questions import Dimension, ProductGroup
from regulars.sales.model import Currency
from regulars.sales.totals.model import Sums

DIMENSIONS_MAX: Final = 2
DAYS_MAX: Final = 731
Value = int | float | Decimal | None


@dataclass(frozen=True, slots=True)
class Measure:
    """An expression over the sums of a group. `name` identifies it in addresses and is its column in files. Rates are
    divided last, from the sums of all rows."""

    name: str
    label: str
    definition: str
    # `refund` is money that pages show as negative.
    unit: Literal["money", "refund", "count", "units", "rate"]
    value: Callable[[Sums], Value]
    # The CSS class that hides its column in a narrow table: `drop-1` first, `drop-4` last, "" never.
    drop: str = "drop-2"
    # Lines of tickets have no discount, no tax and no customer of their own.
    has_lines: bool = True
    # Tickets are in it, and a ticket may have lines of several products.
    counts_tickets: bool = False


NET: Final = Measure("net_cents", "Net", "Gross minus returns, with tax.", "money", lambda it: it.net_cents, drop="")
# The columns of the pages of sales and stores.
SALES_MEASURES: Final = (
    Measure(
        "gross_cents", "Gross", "What customers paid for purchases, after discounts, with tax.", "money",
        lambda it: it.gross_cents, drop="drop-3",
    ),
    Measure(
        "returned_cents", "Returns", "What was paid back, on the day of the return.", "refund",
        lambda it: it.returned_cents, drop="drop-3",
    ),
    Measure(
        "return_rate", "Return rate", "Returns ÷ gross, by value.", "rate", lambda it: it.return_rate, drop="drop-1"
    ),
    Measure(
        "return_rate_by_tickets", "Share of returns", "Returns ÷ tickets, by number.", "rate",
        lambda it: it.return_rate_by_tickets, drop="drop-1", counts_tickets=True,
    ),
    Measure(
        "discount_rate", "Discount rate", "Discounts ÷ amount before discounts, of purchases.", "rate",
        lambda it: it.discount_rate, has_lines=False,
    ),
    Measure(
        "tickets", "Tickets, returns included", "Purchases and returns.", "count", lambda it: it.tickets, drop="drop-3",
        counts_tickets=True,
    ),
    Measure(
        "ticket_cents", "Value per purchase", "Gross ÷ purchases.", "money", lambda it: it.ticket_cents,
        counts_tickets=True,
    ),
    Measure(
        "units_per_ticket", "Units per purchase",
        "Units bought ÷ purchases. An item sold by weight or length counts as one unit.", "units",
        lambda it: it.units_per_ticket, counts_tickets=True,
    ),
    Measure(
        "identified_rate", "Tickets with a customer", "Tickets with a known customer ÷ tickets.", "rate",
        lambda it: it.identified_rate, drop="drop-3", has_lines=False,
    ),
    NET,
)  # fmt: skip
FURTHER_MEASURES: Final = (
    Measure(
        "purchases", "Purchases", "Tickets that are no returns.", "count", lambda it: it.purchases, counts_tickets=True
    ),
    Measure(
        "returns", "Returned tickets", "Tickets that are returns.", "count", lambda it: it.returns, counts_tickets=True
    ),
    Measure("units", "Units", "Units bought.", "units", lambda it: it.units),
    Measure("returned_units", "Units returned", "Units that came back.", "units", lambda it: it.returned_units),
    Measure(
        "discount_cents", "Discount", "Discounts of purchases.", "money", lambda it: it.discount_cents, has_lines=False
    ),
    Measure(
        "tax_cents", "Tax", "Tax of purchases minus that of returns.", "money", lambda it: it.tax_cents, has_lines=False
    ),
    Measure("lines", "Lines", "Lines of purchases.", "count", lambda it: it.lines),
    Measure(
        "identified", "Tickets of customers", "Tickets with a known customer.", "count", lambda it: it.identified,
        has_lines=False,
    ),
)  # fmt: skip
# Not a sum: the customers of several rows may be the same, so they do not add up, and there is no total.
CUSTOMERS: Final = Measure(
    "customers", "Customers",
    "Distinct known customers who bought. They do not add up: a customer may be in several rows.", "count",
    lambda _: None,
)  # fmt: skip
MEASURES: Final[Mapping[str, Measure]] = {
    measure.name: measure for measure in (NET, *SALES_MEASURES, *FURTHER_MEASURES, CUSTOMERS)
}
DAY, HOUR, STORE, PRODUCT = Dimension("day"), Dimension("hour"), Dimension("store"), Dimension("product")
SEGMENT: Final = Dimension("segment")
# The dimensions with their names in pages; a property of products is a dimension too.
DIMENSIONS: Final[Mapping[str, tuple[Dimension, str]]] = {
    "day": (DAY, "Day"),
    "week": (Dimension("week"), "Week"),
    "month": (Dimension("month"), "Month"),
    "hour": (HOUR, "Hour"),
    "store": (STORE, "Store"),
    "country": (Dimension("country"), "Country of the store"),
    "product": (PRODUCT, "Product"),
    "segment": (SEGMENT, "Segment"),
    "newness": (Dimension("newness"), "New or known"),
}
TIMES: Final = frozenset({"hour", "day", "week", "month"})
PROPERTY_PREFIX: Final = "property:"
_OF_TOTALS: Final = TIMES | {"store", "country"}
_OF_LINES: Final = frozenset({"product", "property"})


class QueryRefused(Exception):
    """The query has no answer; the message says why, and what to change."""


def read_dimension(text: str) -> Dimension:
    """Read a dimension as addresses and options have it, such as `store` or `property:size`."""
    if text.startswith(PROPERTY_PREFIX) and text != PROPERTY_PREFIX:
        return Dimension("property", text.removeprefix(PROPERTY_PREFIX))
    if text not in DIMENSIONS:
        raise QueryRefused(f"“{text[:80]}” is no dimension: choose {', '.join(DIMENSIONS)} or property:NAME.")
    return DIMENSIONS[text][0]


def write_dimension(dimension: Dimension) -> str:
    return PROPERTY_PREFIX + dimension.property if dimension.kind == "property" else dimension.kind


def label_dimension(dimension: Dimension) -> str:
    return dimension.property if dimension.kind == "property" else DIMENSIONS[dimension.kind][1]


def read_measure(text: str) -> Measure:
    if text not in MEASURES:
        raise QueryRefused(f"“{text[:80]}” is no measure: choose one of {', '.join(MEASURES)}.")
    return MEASURES[text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is measured, by which dimensions, of which sales, and beside which other period."""

    period: Period
    by: tuple[Dimension, ...] = ()
    measures: tuple[Measure, ...] = SALES_MEASURES
    comparison: Comparison | None = None
    # The hour of today up to which both periods are compared, if the period ends today; only totals have hours.
    until_hour: int | None = None
    store_ids: tuple[UUID, ...] | None = None
    # Of the dimension segment, these are compared; otherwise at most one, whose members' sales are counted.
    segment_ids: tuple[UUID, ...] = ()
    products: tuple[ProductGroup, ...] = ()
    # The currency of lines.
    currency: Currency = "EUR"
    # A group with fewer customers than this, but some, is left out, for roles that see no personal data.
    customers_min: int = 0
    # With more groups the query is refused. Columns never answer more.
    groups_max: int | None = None

    @property
    def has_lines(self) -> bool:
        """Whether lines of tickets are summed, since a ticket may have several products."""
        return bool(self.products) or any(dimension.kind in _OF_LINES for dimension in self.by)

    @property
    def source(self) -> Literal["totals", "columns"]:
        """Which of the two answers: the only one that can, or the cheaper."""
        is_of_totals = all(dimension.kind in _OF_TOTALS for dimension in self.by)
        if is_of_totals and not self.segment_ids and not self.products and CUSTOMERS not in self.measures:
            return "totals"
        return "columns"

    def adds_up(self, measure: Measure) -> bool:
        """Whether a total of the groups is that of all: a customer may be in several, a ticket in those of several
        products, and a sale in several segments."""
        has_tickets_once = not any(dimension.kind in _OF_LINES for dimension in self.by)
        return measure != CUSTOMERS and SEGMENT not in self.by and (has_tickets_once or not measure.counts_tickets)

    @property
    def counts_customers(self) -> bool:
        return CUSTOMERS in self.measures or self.customers_min > 0

    def check(self) -> None:
        """Raise an error if the query has no answer."""
        if len(self.by) > DIMENSIONS_MAX or len(set(self.by)) < len(self.by):
            raise QueryRefused("Choose at most two different dimensions.")
        if len(self.segment_ids) > 1 and SEGMENT not in self.by:
            raise QueryRefused("Choose one segment, or the dimension segment to compare several.")
        if self.source == "columns" and HOUR in self.by:
            raise QueryRefused("Hours are counted of all customers and products together; choose days.")
        for measure in self.measures:
            if self.has_lines and not measure.has_lines:
                raise QueryRefused(f"“{measure.label}” is not known of a product; choose another measure.")


_OF_TICKETS: Final = tuple(measure for measure in MEASURES.values() if measure != CUSTOMERS)
# The tables that `regulars explore` knows by name: what a row is, and what it has.
NAMED: Final[Mapping[str, tuple[Dimension, tuple[Measure, ...]]]] = {
    "sales": (DAY, _OF_TICKETS),
    "stores": (STORE, _OF_TICKETS),
    "products": (PRODUCT, (*(measure for measure in _OF_TICKETS if measure.has_lines), CUSTOMERS)),
}
