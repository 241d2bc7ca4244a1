"""The chart of net sales on the home page, by day, week or store, and the same numbers as a table."""

from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

from regulars.analytics.period import Period, parts_of
from regulars.explore.home.overview import HomeOverview
from regulars.sales.totals.model import PerCurrency, Sums, add_totals
from regulars.web.charts import Chart, bar_chart, short_label
from regulars.web.format import Format

BY_LABELS: Final = {"day": "Day", "week": "Week", "store": "Store"}
# With more bars, a bar would be too thin to point at; the table has all stores.
STORES_DRAWN_MAX: Final = 40


class SalesChart(NamedTuple):
    by: str
    currency: str
    chart: Chart
    # The columns are name, gross, returned and net.
    rows: list[tuple[str, str, str, str]]
    # The number of stores that are in the table, but not in the chart.
    left_out: int


class _Bar(NamedTuple):
    name: str
    # The name on the axis, which may be shortened.
    label: str
    sums: Sums


def draw_sales(formats: Format, overview: HomeOverview, currency: str, by: str) -> SalesChart:
    bars = [
        _Bar(name, label, total.sums.get(currency, Sums()))
        for name, label, total in (
            _bars_of_stores(overview.by_store, currency)
            if by == "store"
            else _bars_of_weeks(formats, overview.days)
            if by == "week"
            else _bars_of_days(formats, overview.days)
        )
    ]
    drawn = bars[:STORES_DRAWN_MAX] if by == "store" else bars
    chart = bar_chart(
        [bar.sums.net_cents / 100 for bar in drawn],
        titles=[f"{bar.name}: {formats.money_rounded(bar.sums.net_cents, currency)}" for bar in drawn],
        labels=[bar.label for bar in drawn],
        is_last_partial=by != "store",
    )
    rows = [
        (
            bar.name,
            formats.money(bar.sums.gross_cents, currency),
            formats.money(-bar.sums.returned_cents, currency),
            formats.money(bar.sums.net_cents, currency),
        )
        for bar in (bars if by == "store" else reversed(bars))
    ]
    return SalesChart(by, currency, chart, rows, len(bars) - len(drawn))


def _bars_of_days(formats: Format, days: Mapping[date, PerCurrency]) -> list[tuple[str, str, PerCurrency]]:
    return [(formats.list_day(day), formats.day(day), total) for day, total in days.items()]


def _bars_of_weeks(formats: Format, days: Mapping[date, PerCurrency]) -> list[tuple[str, str, PerCurrency]]:
    """Weeks from Monday; the first one may be incomplete."""
    weeks = parts_of(Period(min(days), max(days)), "week")
    names = [formats.day(week.first) for week in weeks]
    totals = [add_totals(days[day] for day in week) for week in weeks]
    return [(f"Week of {name}", name, total) for name, total in zip(names, totals, strict=True)]


def _bars_of_stores(by_store: Mapping[str, PerCurrency], currency: str) -> list[tuple[str, str, PerCurrency]]:
    """The stores with sales in the currency, the largest first."""
    selling = [(name, total) for name, total in by_store.items() if currency in total.sums]
    ranked = sorted(selling, key=lambda store: (-store[1].sums[currency].net_cents, store[0].casefold()))
    return [(name, short_label(name), total) for name, total in ranked]
