"""Builds the tables of new and returning customers by day, week or month, and of the time between purchases, for the
page and the CSV files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.frame import CsvFile, name_part, raw_share, short_name_part
from regulars.analytics.period import Period, Unit
from regulars.columns.questions import CustomerFigures, CustomersAnswer, IntervalCount
from regulars.sales.model import Currency
from regulars.web.charts import Chart, stacked_chart
from regulars.web.format import NOTHING, Format


class BucketRow(NamedTuple):
    """New and returning customers, or their net in cents, in one day, week or month (bucket), or in the whole period;
    `new`, `returning` and the `share` of returning customers are text."""

    part: Period
    name: str
    url: str
    note: str
    values: tuple[int, int]
    new: str
    returning: str
    share: str


class IntervalRow(NamedTuple):
    """The number of purchases that came a range of days after the customer's previous purchase."""

    interval: IntervalCount
    name: str
    purchases: str
    share: str
    # The width of the bar, in percent of the largest.
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTable:
    """The table and chart of new and returning customers (or, with `is_net`, of their net), newest first."""

    is_net: bool
    currency: Currency
    currencies: Sequence[Currency]
    unit: Unit
    chart: Chart
    rows: Sequence[BucketRow]
    total: BucketRow


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalTable:
    rows: Sequence[IntervalRow]
    median_days: float | None
    median: str


def bucket_table(
    formats: Format, view: AnalysisView, answer: CustomersAnswer, *, unit: Unit, currency: Currency
) -> BucketTable:
    is_net = view.value("measure") == "net"

    def make_row(figures: CustomerFigures, name: str, url: str = "", note: str = "") -> BucketRow:
        values = _net_cents(figures, currency) if is_net else (figures.new, figures.returning)
        new, returning = [formats.money_rounded(it, currency) if is_net else formats.number(it) for it in values]
        share = formats.aligned_share(values[1], sum(values)) if sum(values) > 0 else NOTHING
        return BucketRow(Period(figures.first, figures.last), name, url, note, values, new, returning, share)

    rows = [
        make_row(
            bucket,
            name_part(formats, part, unit),
            view.url_of(part, by=None if unit == "day" else "day"),
            "until today" if view.today in part else "",
        )
        for bucket in answer.buckets
        for part in [Period(bucket.first, bucket.last)]
    ]
    return BucketTable(
        is_net=is_net,
        currency=currency,
        currencies=_currencies(answer),
        unit=unit,
        chart=_draw(formats, view, rows, unit, is_net=is_net),
        rows=rows[::-1],
        total=make_row(answer.whole, "Whole period"),
    )


def _draw(formats: Format, view: AnalysisView, rows: Sequence[BucketRow], unit: Unit, *, is_net: bool) -> Chart:
    # The chart shows whole currency units instead of cents.
    new, returning = [[max(0.0, row.values[kind] / (100 if is_net else 1)) for row in rows] for kind in (0, 1)]
    return stacked_chart(
        [returning, new],
        titles=[
            [f"{row.name}: {row.returning} returning" for row in rows],
            [f"{row.name}: {row.new} new" for row in rows],
        ],
        labels=[short_name_part(formats, row.part, unit) for row in rows],
        is_last_partial=view.period.last == view.today,
    )


def _net_cents(figures: CustomerFigures, currency: Currency) -> tuple[int, int]:
    return figures.new_net_cents.get(currency, 0), figures.returning_net_cents.get(currency, 0)


def _currencies(answer: CustomersAnswer) -> list[Currency]:
    nets = answer.whole.new_net_cents, answer.whole.returning_net_cents
    currencies = {currency for net in nets for currency in net}
    return sorted(currencies, key=lambda currency: (-sum(net.get(currency, 0) for net in nets), currency))


def bucket_file(table: BucketTable) -> CsvFile:
    suffix = f"_net_cents_{table.currency}" if table.is_net else ""
    header = ("key", "first_day", "last_day", f"new{suffix}", f"returning{suffix}", "share_returning")
    keyed = [*((row.part.first.isoformat(), row) for row in table.rows), ("total", table.total)]
    rows = [
        [
            key,
            row.part.first.isoformat(),
            row.part.last.isoformat(),
            *map(str, row.values),
            raw_share(row.values[1], sum(row.values)),
        ]
        for key, row in keyed
    ]
    return CsvFile("customers.csv", header, rows)


def interval_table(formats: Format, answer: CustomersAnswer) -> IntervalTable:
    counts, median_days = answer.intervals.counts, answer.intervals.median_days
    total, largest = sum(interval.count for interval in counts), max([interval.count for interval in counts], default=0)
    return IntervalTable(
        rows=[
            IntervalRow(
                interval,
                _interval_name(interval),
                formats.number(interval.count),
                formats.aligned_share(interval.count, total),
                round(100 * interval.count / largest) if largest else 0,
            )
            for interval in counts
        ],
        median_days=median_days,
        median=NOTHING if median_days is None else f"{formats.number(round(median_days, 1))} days",
    )


def _interval_name(interval: IntervalCount) -> str:
    first, last = interval.first_days, interval.last_days
    if last is None:
        return f"{first} days or more"
    return f"{first} days" if first == last else f"{first} to {last} days"


def interval_file(table: IntervalTable) -> CsvFile:
    total = sum(row.interval.count for row in table.rows)
    median = "" if table.median_days is None else str(table.median_days)
    rows = [
        [str(days.first_days), str(days.last_days or ""), str(days.count), raw_share(days.count, total), median]
        for days, *_ in table.rows
    ]
    header = ("days_from", "days_to", "purchases", "share", "median_days")
    return CsvFile("time-between-purchases.csv", header, rows)
