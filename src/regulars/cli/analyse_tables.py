"""The tables that `regulars analyse` prints, as text, JSON or CSV, and how they are made of sums and answers."""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

from regulars.analytics.sales_figures import By
from regulars.cli.output import err, pick, print_json, print_table
from regulars.kit.clock import format_timestamp
from regulars.kit.ids import STORE
from regulars.kit.text import safe_cell
from regulars.sales.totals.model import PerCurrency, Sums
from regulars.segments.analysis import questions

_RATES: Final = ("units_per_ticket", "return_rate", "return_rate_by_tickets", "discount_rate", "identified_rate")


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
        cells = [["" if row.get(name) is None else str(row[name]) for name in self.columns] for row in self.rows]
        if as_csv:
            writer = csv.writer(sys.stdout)
            writer.writerow(self.columns)
            writer.writerows([safe_cell(cell) for cell in row] for row in cells)
            return
        print_table([name.replace("_", " ").upper() for name in self.columns], cells)
        err.print(f"As of {format_timestamp(self.as_of)}.", markup=False)
        if self.filled_until is not None:
            until = format_timestamp(self.filled_until)
            err.print(f"Older sales are being counted, so far to {until}.", markup=False)


def make_sales_table(
    by: By, rows: Mapping[Any, PerCurrency], totals: PerCurrency, names: Mapping[UUID, str], *, as_of: datetime
) -> PrintedTable:
    """Make a table of sums, whose rows are stores, with their names, or days, hours or currencies."""
    printed_rows = [
        {
            by.value: _encode_key(key),
            **({"name": names.get(key, "")} if by is By.STORE else {}),
            "currency": currency,
            **_as_data(sums),
        }
        for key, total in rows.items()
        for currency, sums in total.by_net_sales()
    ]
    name_column = ("name",) if by is By.STORE else ()
    return PrintedTable(
        columns=list(dict.fromkeys([by.value, *name_column, "currency", *_as_data(Sums())])),
        rows=printed_rows,
        totals=[{"currency": currency, **_as_data(sums)} for currency, sums in totals.by_net_sales()],
        as_of=as_of,
    )


def _encode_key(key: object) -> str:
    if isinstance(key, UUID):
        return STORE.encode(key)
    return key.isoformat() if isinstance(key, date) else str(key)


def _as_data(sums: Sums) -> dict[str, Any]:
    return {
        **pick(sums, "net_cents", "gross_cents", "returned_cents", "discount_cents", "tax_cents"),
        **pick(sums, "tickets", "purchases", "returns", "identified"),
        "units": _int_if_whole(sums.units),
        "returned_units": _int_if_whole(sums.returned_units),
        **pick(sums, "lines", "ticket_cents"),
        **{name: _rounded(rate) for name, rate in pick(sums, *_RATES).items()},
    }


def _int_if_whole(value: Any) -> int | float:
    return int(value) if value == int(value) else float(value)


def make_customer_table(answer: questions.CustomersAnswer, by: questions.Bucket) -> PrintedTable:
    rows = [{by: figures.first.isoformat(), **_customer_figures(figures)} for figures in answer.buckets]
    totals = [
        {
            **_customer_figures(answer.whole),
            "tickets": answer.tickets,
            "identified": answer.identified,
            "median_days_between": answer.intervals.median_days,
        }
    ]
    return _make_table(rows, totals, answer)


def _customer_figures(figures: questions.CustomerFigures) -> dict[str, Any]:
    return {
        **pick(figures, "customers", "new", "returning", "repeated"),
        "repeat_rate": _rounded(figures.repeat_rate),
        **_cents("new_net_cents", figures.new_net_cents),
        **_cents("returning_net_cents", figures.returning_net_cents),
    }


def make_cohort_table(answer: questions.CohortsAnswer) -> PrintedTable:
    rows = [
        {
            "cohort": cohort.first.isoformat(),
            "customers": cohort.customers,
            **pick(month, "month", "is_over", "bought", "bought_so_far"),
            **_cents("net_cents", month.net_cents),
        }
        for cohort in answer.cohorts
        for month in cohort.months
    ]
    return _make_table(rows, [], answer)


def make_rfm_table(answer: questions.RfmAnswer) -> PrintedTable:
    rows = [
        {
            "group": group.name,
            "customers": group.customers,
            **_bounds_by_name("recency_days", group.recency_days),
            **_bounds_by_name("purchase_days", group.purchase_days),
            **_bounds_by_name("net_cents", group.net),
            **_cents("net_cents", group.net_cents),
        }
        for group in answer.groups
    ]
    return _make_table(rows, [{"customers": answer.customers, **_cents("net_cents", answer.net_cents)}], answer)


def make_product_table(answer: questions.ProductsAnswer, by: str, stores: Mapping[str, str]) -> PrintedTable:
    rows = [
        {
            by: row.group.value,
            "kind": row.group.kind,
            "name": row.name or stores.get(row.group.value),
            **_product_figures(row.figures),
        }
        for row in answer.rows
    ]
    return _make_table(rows, [{**_product_figures(answer.whole), "groups": answer.groups}], answer)


def _product_figures(figures: questions.ProductFigures) -> dict[str, Any]:
    return {
        "net_cents": figures.net_cents,
        "units_sold": figures.sold_millionths / questions.MILLIONTHS,
        "units_returned": figures.returned_millionths / questions.MILLIONTHS,
        "return_rate": _rounded(figures.return_rate),
        "tickets": figures.tickets,
        "customers": figures.customers,
    }


def _cents(name: str, money: questions.Money) -> dict[str, int]:
    return {f"{name}_{currency}": cents for currency, cents in sorted(money.items())}


def _bounds_by_name(name: str, bounds: questions.Range) -> dict[str, int | None]:
    return {f"{name}_from": bounds.low, f"{name}_to": bounds.high}


def _make_table(rows: Sequence[dict[str, Any]], totals: Sequence[dict[str, Any]], answer: Any) -> PrintedTable:
    columns = list(dict.fromkeys(name for row in rows or totals for name in row))
    return PrintedTable(columns=columns, rows=rows, totals=totals, as_of=answer.as_of)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
