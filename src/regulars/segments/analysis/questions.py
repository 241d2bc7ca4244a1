"""Questions of analytics to the analysis process, and their answers. Imports no numpy.

Each answer comes from one snapshot. With a query without conditions all tickets count, also those without a
customer; with any other query only those of its members. The chosen stores decide which sales are counted; a customer's
first and previous purchases are those of all stores.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final, Generic, Literal, TypeVar
from uuid import UUID

import msgspec

from regulars.sales.model import Currency
from regulars.sales.totals.model import Sums

# A longer table ends with a row for the others.
PRODUCT_ROWS_MAX: Final = 1_000
SPARK_WEEKS: Final = 12
COHORTS_MAX: Final = 60
# Over which the frequency and the money of RFM are measured: 24 months.
RFM_DAYS: Final = 730
MILLIONTHS: Final = 1_000_000

Bucket = Literal["day", "week", "month"]
# Net amounts in cents.
Money = Mapping[Currency, int]
SumsByCurrency = Mapping[Currency, Sums]


class Period(msgspec.Struct, frozen=True):
    """Calendar days in the zone of the query; both ends belong to it."""

    first: date
    last: date


class _Answer(msgspec.Struct, frozen=True, kw_only=True, tag_field="about"):
    as_of: datetime


AnswerType = TypeVar("AnswerType", bound=_Answer)


class QuestionOf(msgspec.Struct, Generic[AnswerType], frozen=True, kw_only=True, tag_field="about"):
    """A question with the type of its answer."""

    # None: all stores.
    store_ids: tuple[UUID, ...] | None = None


class SalesQuestion(QuestionOf["SalesAnswer"], frozen=True, kw_only=True, tag="sales"):
    period: Period
    by: Bucket | Literal["store"]


class SalesRow(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a bucket, named by its first day inside the period, or of a store."""

    first: date | None = None
    store_id: UUID | None = None
    sums: SumsByCurrency


class SalesAnswer(_Answer, frozen=True, kw_only=True, tag="sales"):
    """Rows with sales, by day or by store id; they add up to the whole."""

    rows: tuple[SalesRow, ...]
    whole: SumsByCurrency


class CustomersQuestion(QuestionOf["CustomersAnswer"], frozen=True, kw_only=True, tag="customers"):
    period: Period
    by: Bucket
    comparison: Period | None = None


class CustomerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Customers who bought in a period. New: the first purchase ever is in it; returning: it is earlier.

    The net of new customers is that of their sales in the period; all other sales of customers are in the net of
    returning ones, also a return by a customer who bought nothing in it.
    """

    first: date
    last: date
    new: int
    returning: int
    # With purchases on two or more days of the period.
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
    """How many purchase days came so many days after the customer's previous one; `last_days` None: or more."""

    first_days: int
    last_days: int | None
    count: int


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """The time between a purchase day in the period and the customer's purchase day before it."""

    counts: tuple[IntervalCount, ...]
    median_days: float | None


class CustomersAnswer(_Answer, frozen=True, kw_only=True, tag="customers"):
    """A customer counts once in each bucket, so buckets do not add up to the period."""

    buckets: tuple[CustomerFigures, ...]
    whole: CustomerFigures
    compared: CustomerFigures | None
    intervals: Intervals
    # Of the period: all tickets, and those with a customer, also one who was erased since.
    tickets: int
    identified: int


class CohortsQuestion(QuestionOf["CohortsAnswer"], frozen=True, kw_only=True, tag="cohorts"):
    """Customers by the month of their first purchase, for the months of the period, of which the last 60 count."""

    period: Period


class CohortMonth(msgspec.Struct, frozen=True, kw_only=True):
    """The n-th calendar month after the month of the first purchase."""

    month: int
    # Customers who bought in it, and in any month from the first to it.
    bought: int
    bought_so_far: int
    # Of the cohort in this month, and from its first purchase to the end of this month.
    net_cents: Money
    net_so_far_cents: Money
    is_over: bool


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """`months` begins with month 0, that of the first purchase, where `bought` is the size of the cohort and
    `bought_so_far` is 0; it ends with the current month, or with month 60."""

    first: date
    customers: int
    months: tuple[CohortMonth, ...]


class CohortsAnswer(_Answer, frozen=True, kw_only=True, tag="cohorts"):
    cohorts: tuple[Cohort, ...]


class RfmQuestion(QuestionOf["RfmAnswer"], frozen=True, kw_only=True, tag="rfm"):
    """As of the day `today` of the query."""

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
    """Both ends belong to it; None is no bound."""

    low: int | None = None
    high: int | None = None


class RfmGroup(msgspec.Struct, frozen=True):
    """A group by the thresholds of the day. `is_possible` is false where no customer can be in the group, since equal
    values stand together and no value reaches its quintiles."""

    name: RfmName
    # Days since the last purchase, purchase days in 24 months, net cents in 24 months.
    recency_days: Range
    purchase_days: Range
    net: Range
    customers: int
    # In 24 months.
    net_cents: Money
    is_possible: bool = True


class RfmAnswer(_Answer, frozen=True, kw_only=True, tag="rfm"):
    """Every customer who ever bought is in exactly one group."""

    today: date
    currency: Currency
    customers: int
    groups: tuple[RfmGroup, ...]
    net_cents: Money


class ProductKey(msgspec.Struct, frozen=True):
    """What lines are grouped by: the code of the product, one of its properties, or the store of the ticket."""

    kind: Literal["product", "property", "store"] = "product"
    property: str = ""


class ProductGroup(msgspec.Struct, frozen=True):
    """Lines with the same value of a key. `unset`: the product has no such value; `no_product`: the line has no
    product; `others`: all groups beyond the largest."""

    key: ProductKey
    kind: Literal["value", "unset", "no_product", "others"] = "value"
    # A code, the spelling of a property, or the canonical id of a store.
    value: str = ""


class ProductsQuestion(QuestionOf["ProductsAnswer"], frozen=True, kw_only=True, tag="products"):
    """Lines of tickets in one currency, inside all of these groups, which are no `others`."""

    period: Period
    currency: Currency
    by: ProductKey
    inside: tuple[ProductGroup, ...] = ()
    comparison: Period | None = None
    rows_max: int = PRODUCT_ROWS_MAX


class ProductFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of lines. Units in millionths: those of purchases, and those of returns."""

    net_cents: int
    sold_millionths: int
    returned_millionths: int
    # Purchases with such a line, and customers who made one.
    tickets: int
    customers: int
    # The net of each of the 12 weeks up to the last day of the period, the earliest first.
    spark_cents: tuple[int, ...]
    # The net of the comparison.
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
    # The name of the product as last sent, where lines are grouped by product.
    name: str | None = None


class ProductsAnswer(_Answer, frozen=True, kw_only=True, tag="products"):
    """The largest net first, then `unset`, `no_product` and `others`. Net and units add up to the whole; tickets and
    customers do not, since a ticket may be in several groups."""

    rows: tuple[ProductRow, ...]
    whole: ProductFigures
    # How many groups there are, those in `others` included.
    groups: int


class BasketQuestion(QuestionOf["BasketAnswer"], frozen=True, kw_only=True, tag="basket"):
    """What else is on purchases that have a line inside these groups."""

    period: Period
    currency: Currency
    inside: tuple[ProductGroup, ...]
    rows_max: int = 20


class BasketRow(msgspec.Struct, frozen=True):
    product: str
    tickets: int
    name: str | None = None


class BasketAnswer(_Answer, frozen=True, kw_only=True, tag="basket"):
    rows: tuple[BasketRow, ...]
    tickets: int


class ArmPeople(msgspec.Struct, frozen=True):
    """Customers of one group, each once, 16 bytes for each id. Where each has a window of their own, `first_days` has
    its first day: days since 1970 in four bytes, the lowest byte first."""

    profile_ids: bytes = b""
    first_days: bytes = b""


class LiftQuestion(QuestionOf["LiftAnswer"], frozen=True, kw_only=True, tag="lift"):
    """What two groups spent in the same days. Customers who are erased, or not yet known, are in no group.

    A window of a customer's own has `own_days` days after its first day, and the 365 days before it are compared; then
    `window` has all of these windows. Otherwise `window` is that of all, and the 365 days before `frozen_on` are
    compared.
    """

    treated: ArmPeople
    held_out: ArmPeople
    window: Period
    frozen_on: date
    own_days: int = 0


class ArmSums(msgspec.Struct, frozen=True):
    """Sums over the customers of one group: what each spent in the window, and before it. The spend in the window is
    that of its purchases without the returns matched to them; before it, that of
    purchases less returns. Squares and products of amounts need no exact cents."""

    people: int = 0
    # Who bought in the window.
    buyers: int = 0
    spend_cents: int = 0
    spend_squares: float = 0.0
    before_cents: int = 0
    before_squares: float = 0.0
    # The spend in the window times the spend before it.
    products: float = 0.0

    def __add__(self, other: "ArmSums") -> "ArmSums":
        mine, its = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return ArmSums(*(one + more for one, more in zip(mine, its, strict=True)))


class LiftSums(msgspec.Struct, frozen=True):
    """Of a currency in which customers bought in the window. `bootstrap` is a 95 % interval of the adjusted difference
    per head in cents, from random samples of the customers."""

    currency: Currency
    treated: ArmSums
    held_out: ArmSums
    bootstrap: tuple[float, float]


class LiftAnswer(_Answer, frozen=True, kw_only=True, tag="lift"):
    treated: int
    held_out: int
    sums: tuple[LiftSums, ...]


# Those that the columns alone answer.
ColumnsQuestion = SalesQuestion | CustomersQuestion | CohortsQuestion | RfmQuestion | ProductsQuestion | BasketQuestion
Question = ColumnsQuestion | LiftQuestion
Answer = SalesAnswer | CustomersAnswer | CohortsAnswer | RfmAnswer | ProductsAnswer | BasketAnswer | LiftAnswer
