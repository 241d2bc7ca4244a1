"""Builds the table of cohorts: of the customers who first bought in a month, the share that bought again in later
months, or the net per customer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.frame import segment_url
from regulars.analytics.segment_conditions import cohort_conditions
from regulars.sales.model import Currency
from regulars.segments.analysis.questions import Cohort, CohortMonth, CohortsAnswer
from regulars.web.format import Format
from regulars.web.visit import Visit

MONTHS_MAX: Final = 24
# How many columns stay visible in a narrow table, by the CSS class of the hidden columns; amounts are wider than
# percentages.
VISIBLE_SHARES: Final = {"drop-4": 2, "drop-3": 5, "drop-2": 8, "drop-1": 12}
VISIBLE_AMOUNTS: Final = {"drop-4": 1, "drop-3": 3, "drop-2": 5, "drop-1": 8}
# The number of background shades of the cells; a larger value has a darker shade.
SHADES: Final = 6
# What the cells show (the URL field `read`): the share of customers who bought in a month, or again up to a month, or
# the net per customer.
READINGS: Final = {"month": "In that month", "until": "Up to that month", "net": "Net per customer"}
CSV_HEADER: Final = (
    "first_month", "customers", "month", "is_over", "bought", "bought_so_far", "currency", "net_so_far_cents",
)  # fmt: skip


class Cell(NamedTuple):
    """One month of a cohort; `url` creates a segment of the customers that the value counts."""

    text: str
    shade: int
    # Whether the month is not over yet.
    is_open: bool
    url: str


class CohortRow(NamedTuple):
    name: str
    customers: str
    url: str
    cells: list[Cell | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortTable:
    reading: str
    readings: Mapping[str, str]
    # The numbers of the months, such as 1 to 12, each with the CSS class that hides its column in a narrow table.
    months: Sequence[tuple[int, str]]
    rows: Sequence[CohortRow]
    # The averages of the months that are over, weighted by customers.
    averages: Sequence[str]
    # The lowest value of each background shade.
    limits: Sequence[str]


def cohort_table(visit: Visit, view: AnalysisView, answer: CohortsAnswer, currency: Currency) -> CohortTable:
    reading = view.value("read") if view.value("read") in READINGS else "month"
    first = 0 if reading == "net" else 1
    last = min(max((cohort.months[-1].month for cohort in answer.cohorts if cohort.months), default=0), MONTHS_MAX)
    months = range(first, last + 1)
    values = {
        (cohort.first, month.month): _value(cohort, month, reading, currency)
        for cohort in answer.cohorts
        for month in cohort.months
        if month.month in months
    }
    highest = max(values.values(), default=0.0)
    rows = []
    for cohort in answer.cohorts:
        by_month = {month.month: month for month in cohort.months}
        cells = [
            None
            if number not in by_month
            else Cell(
                _format_value(visit.format, values[cohort.first, number], reading, currency),
                _shade_of(values[cohort.first, number], highest),
                not by_month[number].is_over,
                _customers_url(visit, view, cohort, 0 if reading == "net" else number, up_to=reading == "until"),
            )
            for number in months
        ]
        url = _customers_url(visit, view, cohort, 0)
        rows.append(CohortRow(visit.format.month(cohort.first), visit.format.number(cohort.customers), url, cells))
    return CohortTable(
        reading=reading,
        readings=READINGS,
        months=[(number, _hiding_class(index, reading)) for index, number in enumerate(months)],
        rows=rows,
        averages=[_average(visit.format, answer, number, reading, currency) for number in months],
        limits=[_format_value(visit.format, highest * shade / SHADES, reading, currency) for shade in range(SHADES)],
    )


def _hiding_class(index: int, reading: str) -> str:
    visible = VISIBLE_AMOUNTS if reading == "net" else VISIBLE_SHARES
    return next((drop for drop, count in reversed(visible.items()) if index >= count), "")


def _value(cohort: Cohort, month: CohortMonth, reading: str, currency: Currency) -> float:
    if not cohort.customers:
        return 0.0
    if reading == "net":
        return month.net_so_far_cents.get(currency, 0) / cohort.customers
    return (month.bought_so_far if reading == "until" else month.bought) / cohort.customers


def _format_value(formats: Format, value: float, reading: str, currency: Currency) -> str:
    return formats.money(round(value), currency) if reading == "net" else formats.aligned_share(value, 1)


def _shade_of(value: float, highest: float) -> int:
    return min(SHADES, 1 + int(value / highest * SHADES)) if highest > 0 and value > 0 else 1


def _average(formats: Format, answer: CohortsAnswer, number: int, reading: str, currency: Currency) -> str:
    months = [
        (cohort.customers, _value(cohort, month, reading, currency))
        for cohort in answer.cohorts
        for month in cohort.months
        if month.month == number and month.is_over
    ]
    customers = sum(count for count, _ in months)
    return (
        _format_value(formats, sum(count * value for count, value in months) / customers, reading, currency)
        if customers
        else ""
    )


def _customers_url(visit: Visit, view: AnalysisView, cohort: Cohort, month: int, *, up_to: bool = False) -> str:
    """The URL that creates a segment of the cohort's customers who bought in the month, or again up to the month; of
    all its customers, for month 0."""
    match = cohort_conditions(cohort.first, month, up_to=up_to, segment_id=view.segment_id, store_ids=view.store_ids)
    return segment_url(visit, match)


def csv_rows(answer: CohortsAnswer) -> Iterator[list[str]]:
    for cohort in answer.cohorts:
        for month in cohort.months:
            counts = [str(month.month), str(month.is_over).lower(), str(month.bought), str(month.bought_so_far)]
            start = [cohort.first.isoformat(), str(cohort.customers), *counts]
            for currency, cents in month.net_so_far_cents.items():
                yield [*start, currency, str(cents)]
            if not month.net_so_far_cents:
                yield [*start, "", "0"]
