"""Cohorts as a table: of those who first bought in a month, the share that bought again, or the net per customer."""

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

MONTHS_SHOWN: Final = 24
# How many columns stay in a table of which width; amounts are wider than shares.
STAY: Final = {"drop-4": 2, "drop-3": 5, "drop-2": 8, "drop-1": 12}
STAY_OF_AMOUNTS: Final = {"drop-4": 1, "drop-3": 3, "drop-2": 5, "drop-1": 8}
SHADES: Final = 6
READINGS: Final = {"month": "In that month", "until": "Up to that month", "net": "Net per customer"}
CSV_HEADER: Final = (
    "first_month", "customers", "month", "is_over", "bought", "bought_so_far", "currency", "net_so_far_cents",
)  # fmt: skip


class Cell(NamedTuple):
    text: str
    shade: int
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
    # The numbers of the months, such as 1 to 12, each with how early its column leaves a narrow table.
    months: Sequence[tuple[int, str]]
    rows: Sequence[CohortRow]
    # Of the months that are over, weighted by customers.
    averages: Sequence[str]
    # The lowest value of each shade.
    limits: Sequence[str]


def cohort_table(visit: Visit, view: AnalysisView, answer: CohortsAnswer, currency: Currency) -> CohortTable:
    reading = view.value("read") if view.value("read") in READINGS else "month"
    first = 0 if reading == "net" else 1
    last = min(max((one.months[-1].month for one in answer.cohorts if one.months), default=0), MONTHS_SHOWN)
    months = range(first, last + 1)
    values = {
        (one.first, month.month): _value(one, month, reading, currency)
        for one in answer.cohorts
        for month in one.months
        if month.month in months
    }
    top = max(values.values(), default=0.0)
    rows = []
    for one in answer.cohorts:
        by_month = {month.month: month for month in one.months}
        cells = [
            None
            if number not in by_month
            else Cell(
                _show(visit.format, values[one.first, number], reading, currency),
                _shade(values[one.first, number], top),
                not by_month[number].is_over,
                _customers_url(visit, view, one, number) if reading == "month" else "",
            )
            for number in months
        ]
        url = _customers_url(visit, view, one, 0)
        rows.append(CohortRow(visit.format.month(one.first), visit.format.number(one.customers), url, cells))
    return CohortTable(
        reading=reading,
        readings=READINGS,
        months=[(number, _drop(place, reading)) for place, number in enumerate(months)],
        rows=rows,
        averages=[_average(visit.format, answer, number, reading, currency) for number in months],
        limits=[_show(visit.format, top * shade / SHADES, reading, currency) for shade in range(SHADES)],
    )


def _drop(place: int, reading: str) -> str:
    stay = STAY_OF_AMOUNTS if reading == "net" else STAY
    return next((drop for drop, many in reversed(stay.items()) if place >= many), "")


def _value(cohort: Cohort, month: CohortMonth, reading: str, currency: Currency) -> float:
    if not cohort.customers:
        return 0.0
    if reading == "net":
        return month.net_so_far_cents.get(currency, 0) / cohort.customers
    return (month.bought_so_far if reading == "until" else month.bought) / cohort.customers


def _show(formats: Format, value: float, reading: str, currency: Currency) -> str:
    return formats.money(round(value), currency) if reading == "net" else formats.aligned_share(value, 1)


def _shade(value: float, top: float) -> int:
    return min(SHADES, 1 + int(value / top * SHADES)) if top > 0 and value > 0 else 1


def _average(formats: Format, answer: CohortsAnswer, number: int, reading: str, currency: Currency) -> str:
    known = [
        (one.customers, _value(one, month, reading, currency))
        for one in answer.cohorts
        for month in one.months
        if month.month == number and month.is_over
    ]
    customers = sum(many for many, _ in known)
    return (
        _show(formats, sum(many * value for many, value in known) / customers, reading, currency) if customers else ""
    )


def _customers_url(visit: Visit, view: AnalysisView, cohort: Cohort, month: int) -> str:
    """The customers of the cohort who bought in the month as a segment; those of month 0 are all."""
    match = cohort_conditions(cohort.first, month, segment_id=view.segment_id, store_ids=view.store_ids)
    return segment_url(visit, match)


def csv_rows(answer: CohortsAnswer) -> Iterator[list[str]]:
    for one in answer.cohorts:
        for month in one.months:
            counts = [str(month.month), str(month.is_over).lower(), str(month.bought), str(month.bought_so_far)]
            start = [one.first.isoformat(), str(one.customers), *counts]
            for currency, cents in month.net_so_far_cents.items():
                yield [*start, currency, str(cents)]
            if not month.net_so_far_cents:
                yield [*start, "", "0"]
