"""The tables that `regulars explore` prints, as text, JSON or CSV, and how those of customers are made of answers."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from regulars.cli.output import err, pick, print_json, print_table
from regulars.columns import questions
from regulars.kit.clock import format_timestamp
from regulars.kit.text import safe_cell
from regulars.sales.model import Currency


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """A table for output, with rows of totals. Sales before `filled_until`, if it is set, are still being counted."""

    columns: Sequence[str]
    rows: Sequence[dict[str, Any]]
    totals: Sequence[dict[str, Any]]
    as_of: datetime
    filled_until: datetime | None = None

    def print(self, *, as_json: bool, as_csv: bool) -> None:
        if as_json:
            data = {"as_of": self.as_of, "filled_until": self.filled_until, "rows": self.rows, "whole": self.totals}
            print_json(data)
            return
        rows = [*self.rows, *self._total_rows()]
        cells = [["" if row.get(name) is None else str(row[name]) for name in self.columns] for row in rows]
        if as_csv:
            writer = csv.writer(sys.stdout)
            writer.writerows([safe_cell(cell) for cell in row] for row in (self.columns, *cells))
            return
        print_table([name.replace("_", " ").upper() for name in self.columns], cells)
        err.print(f"As of {format_timestamp(self.as_of)}.", markup=False)
        if self.filled_until is not None:
            until = format_timestamp(self.filled_until)
            err.print(f"Older sales are being counted, so far to {until}.", markup=False)

    def _total_rows(self) -> list[dict[str, Any]]:
        """The totals below the rows; none below rows that are totals of currencies, which are never added."""
        key = self.columns[0]
        return [{key: "total", **total} for total in self.totals if key not in total]


def make_customer_table(answer: questions.CustomersAnswer, by: questions.Bucket, only: Currency | None) -> PrintedTable:
    rows = [{by: figures.first.isoformat(), **_customer_figures(figures, only)} for figures in answer.buckets]
    return _make_table(by, rows, [_customer_total(answer, only)], answer.as_of)


def _customer_total(answer: questions.CustomersAnswer, only: Currency | None) -> dict[str, Any]:
    return {
        **_customer_figures(answer.whole, only),
        "tickets": answer.tickets,
        "identified": answer.identified,
        "median_days_between": answer.intervals.median_days,
    }


def _customer_figures(figures: questions.CustomerFigures, only: Currency | None) -> dict[str, Any]:
    return {
        **pick(figures, "customers", "new", "returning", "repeated"),
        "repeat_rate": _rounded(figures.repeat_rate),
        **_cents("new_net_cents", figures.new_net_cents, only),
        **_cents("returning_net_cents", figures.returning_net_cents, only),
    }


def make_cohort_table(answer: questions.CohortsAnswer, only: Currency | None) -> PrintedTable:
    rows = [
        {
            "cohort": cohort.first.isoformat(),
            "customers": cohort.customers,
            **pick(month, "month", "is_over", "bought", "bought_so_far"),
            **_cents("net_cents", month.net_cents, only),
        }
        for cohort in answer.cohorts
        for month in cohort.months
    ]
    return _make_table("cohort", rows, [], answer.as_of)


def make_rfm_table(answer: questions.RfmAnswer, only: Currency | None) -> PrintedTable:
    rows = [
        {
            "group": group.name,
            "customers": group.customers,
            **_bounds_by_name("recency_days", group.recency_days),
            **_bounds_by_name("purchase_days", group.purchase_days),
            **_bounds_by_name("net_cents", group.net),
            "threshold_currency": answer.currency,
            **_cents("net_cents", group.net_cents, only),
        }
        for group in answer.groups
    ]
    total = {
        "customers": answer.customers,
        "threshold_currency": answer.currency,
        **_cents("net_cents", answer.net_cents, only),
    }
    return _make_table("group", rows, [total], answer.as_of)


def _cents(name: str, money: questions.Money, only: Currency | None) -> dict[str, int]:
    return {f"{name}_{currency}": cents for currency, cents in sorted(money.items()) if only in {None, currency}}


def _bounds_by_name(name: str, bounds: questions.Range) -> dict[str, int | None]:
    return {f"{name}_from": bounds.low, f"{name}_to": bounds.high}


def _make_table(
    key: str, rows: Sequence[dict[str, Any]], totals: Sequence[dict[str, Any]], as_of: datetime
) -> PrintedTable:
    """Make a table whose first column is `key`."""
    columns = list(dict.fromkeys([key, *(name for row in (*rows, *totals) for name in row)]))
    return PrintedTable(columns=columns, rows=rows, totals=totals, as_of=as_of)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
