"""Analytics questions to the analysis process, and their answers. Does not import numpy.

A question comes with a segment query. If the query has no conditions, all tickets are counted, including those without
a customer; otherwise only the tickets of its members. If the question names stores, only their sales are counted, but a
customer's first and previous purchases are those at all stores. Each answer comes from one snapshot. The columnar
data is a copy of customers and sales, a few moments behind the tables.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final, Generic, Literal, TypeVar
from uuid import UUID

import msgspec

from regulars.experiments.sums import ArmSums
from regulars.sales.model import Currency
from regulars.sales.totals.model import Sums

# If there are more groups, the last row is the sum of the remaining groups.
PRODUCT_ROWS_MAX: Final = 1_000
# The weeks whose net is shown as a small chart beside a product.
TREND_WEEKS: Final = 12
COHORTS_MAX: Final = 60
# The groups of an answer by two dimensions.
GROUPS_MAX: Final = 10_000
# The time over which the frequency and the money of RFM are measured: 24 months.
RFM_DAYS: Final = 730
MILLIONTHS: Final = 1_000_000

Bucket = Literal["day", "week", "month"]
# Net amounts in cents, by currency.
Money = Mapping[Currency, int]
SumsByCurrency = Mapping[Currency, Sums]


class Period(msgspec.Struct, frozen=True):
    """Calendar days in the time zone of the query, `first` and `last` included."""

    first: date
    last: date


class _Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="about"):
    # The time of the snapshot; if changes waited for the worker then, when the oldest of them was recorded.
    as_of: datetime


AnswerType = TypeVar("AnswerType", bound=_Answer)


class QuestionOf(msgspec.Struct, Generic[AnswerType], frozen=True, kw_only=True, tag_field="about"):
    """A question with the type of its answer."""

    # None means all stores.
    store_ids: tuple[UUID, ...] | None = None


class ProductKey(msgspec.Struct, frozen=True):
    """The key by which lines are grouped: the product code, a property of the product, or the store of the ticket."""

    kind: Literal["product", "property", "store"] = "product"
    property: str = ""


class ProductGroup(msgspec.Struct, frozen=True):
    """Lines with the same value of a key. Kind `unset` means that the product has no value for the key, `no_product`
    that the line has no product, and `others` means all groups without a row of their own."""

    key: ProductKey
    kind: Literal["value", "unset", "no_product", "others"] = "value"
    # A product code, the value of a property as text, or the id of a store in its API form.
    value: str = ""


class Dimension(msgspec.Struct, frozen=True):
    """What the groups of an answer are: a time, a place, products with the same code or property, the members of a
    segment, or customers who are new in the period, known from before, or unknown. Columns have no hours, and each
    segment is a question."""

    kind: Literal["hour", "day", "week", "month", "store", "country", "product", "property", "segment", "newness"]
    property: str = ""


class SalesQuestion(QuestionOf["SalesAnswer"], frozen=True, kw_only=True, tag="sales"):
    """Sums of tickets by up to two dimensions; with `lines_in`, of the lines in one currency that belong to all groups
    of `filters`. Only lines have products."""

    period: Period
    by: tuple[Dimension, ...] = ()
    comparison: Period | None = None
    # The days with which each day, week or month of the period is compared, by its first day.
    compared_parts: Mapping[Bucket, Sequence[tuple[date, Period]]] = {}
    lines_in: Currency | None = None
    filters: tuple[ProductGroup, ...] = ()
    # The country of each store that has one; for the dimension `country`.
    countries: Mapping[UUID, str] = {}
    # Whether the answer has the distinct customers who bought.
    with_customers: bool = False


class SalesRow(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a group, which is named by one text for each dimension: the first day inside the period, the id of
    the store, a country, a product code or value, or `new`, `known` or `unknown`. None means no value."""

    keys: tuple[str | None, ...]
    sums: SumsByCurrency
    # The distinct customers who bought, which do not add up.
    customers: Mapping[str, int] = {}


class SalesAnswer(_Answer, frozen=True, kw_only=True, tag="sales"):
    """The groups that have sales; `compared` has those of the comparison period, named like the groups of the
    period."""

    rows: tuple[SalesRow, ...]
    compared: tuple[SalesRow, ...] = ()
    # The names under which the products of the rows were last sold, by code.
    names: Mapping[str, str] = {}


class CustomersQuestion(QuestionOf["CustomersAnswer"], frozen=True, kw_only=True, tag="customers"):
    period: Period
    by: Bucket
    comparison: Period | None = None


class CustomerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Customers who bought in a period. New customers made their first purchase ever in it, returning customers before.

    The net of new customers is the net of their sales in the period; all other sales of customers belong to returning
    customers, including returns by customers who bought nothing in the period.
    """

    first: date
    last: date
    new: int
    returning: int
    # Customers with purchases on two or more days of the period.
    repeated: int
    new_net_cents: Money
    returning_net_cents: Money

    @property
    def customers(self) -> int:
        return self.new + self.returning

    @property
    def repeat_rate(self) -> float | None:
        return self.repeated / self.customers if self.customers else None


class IntervalCount(msgspec.Struct, frozen=True):
    """The number of purchase days that came `first_days` to `last_days` days after the customer's previous purchase
    day; None means no upper bound."""

    first_days: int
    last_days: int | None
    count: int


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """The time between a purchase day in the period and the customer's purchase day before it."""

    counts: tuple[IntervalCount, ...]
    median_days: float | None


class CustomersAnswer(_Answer, frozen=True, kw_only=True, tag="customers"):
    """A customer counts once in each day, week or month (bucket), so buckets do not add up to `whole`, the period."""

    buckets: tuple[CustomerFigures, ...]
    whole: CustomerFigures
    compared: CustomerFigures | None
    intervals: Intervals
    # The number of tickets in the period, and of tickets with a customer, including customers erased since then.
    tickets: int
    identified: int


class CohortsQuestion(QuestionOf["CohortsAnswer"], frozen=True, kw_only=True, tag="cohorts"):
    """Customers by the month of their first purchase, for at most the last 60 months of the period."""

    period: Period


class CohortMonth(msgspec.Struct, frozen=True, kw_only=True):
    """The n-th calendar month after the month of the first purchase."""

    month: int
    # Customers who bought in this month, and customers who bought again in any month up to this one.
    bought: int
    bought_so_far: int
    # The net of the cohort in this month, and from the first purchase to the end of this month.
    net_cents: Money
    net_so_far_cents: Money
    is_over: bool


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """Customers with the same month of the first purchase. That is month 0 of `months`, where `bought` is the size of
    the cohort and `bought_so_far` is 0; the last is the current month, or month 60."""

    first: date
    customers: int
    months: tuple[CohortMonth, ...]


class CohortsAnswer(_Answer, frozen=True, kw_only=True, tag="cohorts"):
    cohorts: tuple[Cohort, ...]


class RfmQuestion(QuestionOf["RfmAnswer"], frozen=True, kw_only=True, tag="rfm"):
    """Groups of customers by recency, frequency and money (RFM), as of the day `today` of the query."""

    currency: Currency


RfmName = Literal[
    "champions",
    "loyal",
    "big_spenders",
    "recent",
    "slowing_high_value",
    "slowing",
    "at_risk_high_value",
    "at_risk",
    "no_net",
    "lapsed",
]


class Range(msgspec.Struct, frozen=True):
    """From `low` to `high`, both included; None means no bound."""

    low: int | None = None
    high: int | None = None


class RfmGroup(msgspec.Struct, frozen=True):
    """A group with the thresholds of today. `is_possible` is false if no customer can be in the group: equal values
    have the same score, so some scores may not occur."""

    name: RfmName
    # Days since the last purchase, purchase days in 24 months, net cents in 24 months.
    recency_days: Range
    purchase_days: Range
    net: Range
    customers: int
    # The net in 24 months.
    net_cents: Money
    is_possible: bool = True


class RfmAnswer(_Answer, frozen=True, kw_only=True, tag="rfm"):
    """Every customer who ever bought is in exactly one group."""

    today: date
    currency: Currency
    customers: int
    groups: tuple[RfmGroup, ...]
    net_cents: Money


class ProductsQuestion(QuestionOf["ProductsAnswer"], frozen=True, kw_only=True, tag="products"):
    """Lines of tickets in one currency that belong to all groups of `filters`, none of which may be `others`."""

    period: Period
    currency: Currency
    by: ProductKey
    filters: tuple[ProductGroup, ...] = msgspec.field(name="inside", default=())
    comparison: Period | None = None
    rows_max: int = PRODUCT_ROWS_MAX


class ProductFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of the lines of a group. Units are in millionths: `sold` counts purchases, `returned` counts returns."""

    net_cents: int
    sold_millionths: int
    returned_millionths: int
    # The number of purchases with a line of the group, and of the customers who made them.
    tickets: int
    customers: int
    # The net of each of the 12 weeks up to the last day of the period, the earliest first.
    weekly_net_cents: tuple[int, ...] = msgspec.field(name="spark_cents")
    # The net in the comparison period.
    compared_net_cents: int | None = None

    @property
    def net_millionths(self) -> int:
        return self.sold_millionths - self.returned_millionths

    @property
    def return_rate(self) -> float | None:
        return self.returned_millionths / self.sold_millionths if self.sold_millionths > 0 else None


class ProductRow(msgspec.Struct, frozen=True):
    group: ProductGroup
    figures: ProductFigures
    # The last known name of the product, if lines are grouped by product.
    name: str | None = None


class ProductsAnswer(_Answer, frozen=True, kw_only=True, tag="products"):
    """Rows by net, largest first, then `unset`, `no_product` and `others`. Net and units add up to `whole`, the figures
    of all lines; tickets and customers do not, since a ticket may be in several groups."""

    rows: tuple[ProductRow, ...]
    whole: ProductFigures
    # How many purchases of `whole` have a customer, including customers erased since then.
    identified: int
    # The number of groups, including those in `others`.
    groups: int


class BasketQuestion(QuestionOf["BasketAnswer"], frozen=True, kw_only=True, tag="basket"):
    """Asks which other products are on purchases that have a line in all groups of `filters`."""

    period: Period
    currency: Currency
    filters: tuple[ProductGroup, ...] = msgspec.field(name="inside")
    rows_max: int = 20


class BasketRow(msgspec.Struct, frozen=True):
    product: str
    tickets: int
    name: str | None = None


class BasketAnswer(_Answer, frozen=True, kw_only=True, tag="basket"):
    rows: tuple[BasketRow, ...]
    tickets: int


class ArmPeople(msgspec.Struct, frozen=True):
    """The distinct customers of one arm (one of the two compared groups), 16 bytes for each id. If each customer has a
    separate window, `first_days` has the first day of each window: days since 1970 in four bytes, little-endian."""

    profile_ids: bytes = b""
    first_days: bytes = b""


class LiftQuestion(QuestionOf["LiftAnswer"], frozen=True, kw_only=True, tag="lift"):
    """Asks what two groups of customers spent in the same days. Customers who were erased, or are not in the columnar
    data yet, are not counted.

    If the groups have first days, the window of each customer ends `own_days` days after the customer's first day,
    `window` spans the windows of all customers, and the baseline is the 365 days before the first day. Otherwise
    all customers have the same `window`, and the baseline is the 365 days before `frozen_on`, the day on which the
    customers were assigned to the groups.
    """

    treated: ArmPeople
    held_out: ArmPeople
    window: Period
    frozen_on: date
    own_days: int = 0


class LiftSums(msgspec.Struct, frozen=True):
    """The sums in one currency. `bootstrap` is a 95 % interval of the difference per customer in cents, adjusted by the
    spend before the window, from random samples of the customers."""

    currency: Currency
    treated: ArmSums
    held_out: ArmSums
    bootstrap: tuple[float, float]


class LiftAnswer(_Answer, frozen=True, kw_only=True, tag="lift"):
    treated: int
    held_out: int
    sums: tuple[LiftSums, ...]


# Questions that the columnar data answers alone, without the sales table.
ColumnsQuestion = SalesQuestion | CustomersQuestion | CohortsQuestion | RfmQuestion | ProductsQuestion | BasketQuestion
Question = ColumnsQuestion | LiftQuestion
Answer = SalesAnswer | CustomersAnswer | CohortsAnswer | RfmAnswer | ProductsAnswer | BasketAnswer | LiftAnswer
