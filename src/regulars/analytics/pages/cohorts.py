"""Builds the table of cohorts: of the customers who first bought in a month, the share that bought again in later
months, or the net per customer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, NamedTuple

from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.frame import CsvFile, segment_url
from regulars.analytics.segment_conditions import cohort_conditions
from regulars.columns.questions import Cohort, CohortMonth, CohortsAnswer
from regulars.sales.model import Currency
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
# The names of the columns of months in the CSV file, by reading; the number of the month follows.
CSV_COLUMNS: Final = {
    "month": "bought_in_month_",
    "until": "bought_up_to_month_",
    "net": "net_cents_{currency}_up_to_month_",
}


class Cell(NamedTuple):
    """One month of a cohort, as text and for the CSV file; `url` creates a segment of the customers that the value
    counts."""

    text: str
    raw: str
    shade: int
    # Whether the month is not over yet.
    is_open: bool
    url: str


class CohortRow(NamedTuple):
    first: date
    name: str
    customers: str
    raw_customers: int
    url: str
    cells: list[Cell | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortTable:
    as_of: datetime
    reading: str
    currency: Currency
    readings: Mapping[str, str]
    # The numbers of the months, such as 1 to 12, each with the CSS class that hides its column in a narrow table.
    months: Sequence[tuple[int, str]]
    rows: Sequence[CohortRow]
    # The averages of the months that are over, weighted by customers, as text and for the CSV file.
    averages: Sequence[tuple[str, str]]
    # The lowest value of each background shade.
    limits: Sequence[str]

    @property
    def has_customers(self) -> bool:
        return any(row.raw_customers for row in self.rows)


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
            if number not in by_month or not cohort.customers
            else Cell(
                _format_value(visit.format, values[cohort.first, number], reading, currency),
                _raw_value(values[cohort.first, number], reading),
                _shade_of(values[cohort.first, number], highest),
                not by_month[number].is_over,
                _customers_url(visit, view, cohort, 0 if reading == "net" else number, up_to=reading == "until"),
            )
            for number in months
        ]
        url = _customers_url(visit, view, cohort, 0) if cohort.customers else ""
        name, customers = visit.format.month(cohort.first), visit.format.number(cohort.customers)
        rows.append(CohortRow(cohort.first, name, customers, cohort.customers, url, cells))
    return CohortTable(
        as_of=answer.as_of,
        reading=reading,
        currency=currency,
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


def _raw_value(value: float, reading: str) -> str:
    return str(round(value)) if reading == "net" else str(round(value, 6))


def _shade_of(value: float, highest: float) -> int:
    return min(SHADES, 1 + int(value / highest * SHADES)) if highest > 0 and value > 0 else 1


def _average(formats: Format, answer: CohortsAnswer, number: int, reading: str, currency: Currency) -> tuple[str, str]:
    months = [
        (cohort.customers, _value(cohort, month, reading, currency))
        for cohort in answer.cohorts
        for month in cohort.months
        if month.month == number and month.is_over
    ]
    customers = sum(count for count, _ in months)
    if not customers:
        return "", ""
    average = sum(count * value for count, value in months) / customers
    return _format_value(formats, average, reading, currency), _raw_value(average, reading)


def _customers_url(visit: Visit, view: AnalysisView, cohort: Cohort, month: int, *, up_to: bool = False) -> str:
    """The URL that creates a segment of the cohort's customers who bought in the month, or again up to the month; of
    all its customers, for month 0."""
    match = cohort_conditions(cohort.first, month, up_to=up_to, segment_id=view.segment_id, store_ids=view.store_ids)
    return segment_url(visit, match)


def cohort_file(table: CohortTable) -> CsvFile:
    """The rows and the months of the page; `open_month` is the number of the month that is not over."""
    numbers = [number for number, _ in table.months]
    rows = []
    for row in table.rows:
        cells = list(zip(numbers, row.cells, strict=True))
        open_month = next((str(number) for number, cell in cells if cell and cell.is_open), "")
        values = ["" if cell is None else cell.raw for _, cell in cells]
        rows.append([row.first.isoformat(), str(row.raw_customers), open_month, *values])
    rows.append(["average", "", "", *(raw for _, raw in table.averages)])
    column = CSV_COLUMNS[table.reading].format(currency=table.currency)
    return CsvFile(
        "cohorts.csv", ("first_month", "customers", "open_month", *(f"{column}{it}" for it in numbers)), rows
    )
