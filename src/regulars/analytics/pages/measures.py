"""The rows of tables of measures of sales, as pages show them and as CSV files have them."""

from decimal import Decimal
from typing import Final, NamedTuple

from regulars.analytics.pages.frame import Definition
from regulars.analytics.query import MEASURES, SALES_MEASURES, Measure, Value
from regulars.sales.totals.model import PerCurrency, Sums
from regulars.web.format import NOTHING, Format


def show_value(formats: Format, measure: Measure, value: Value, currency: str) -> str:
    if value is None:
        return NOTHING
    match measure.unit:
        case "money":
            return formats.money(int(value), currency)
        case "refund":
            return formats.money(-int(value), currency)
        case "rate":
            return formats.aligned_share(float(value), 1)
        case "units" if not isinstance(value, Decimal):
            return formats.aligned_number(value)
        case _:
            return formats.number(value)


class MeasureRow(NamedTuple):
    """A row of a table: its sums in one currency, and its sums in the compared period. `url` leads to the analysis of
    the row, `tickets_url` to its tickets."""

    # Identifies the row in the CSV file.
    key: str
    name: str
    url: str
    note: str
    tickets_url: str
    sums: Sums
    compared: Sums | None
    # Why there is no comparison.
    no_comparison: str = ""
    # The net of the current hour of today, which is left out of the comparison.
    current_hour_net_cents: int = 0
    # None if opt-ins are not counted for this row.
    opt_ins_per_100: float | None = None

    def show(self, formats: Format, measure: Measure, currency: str) -> str:
        return show_value(formats, measure, measure.value(self.sums), currency)

    def change(self, formats: Format) -> str:
        if self.compared is None:
            return ""
        net_cents = self.sums.net_cents - self.current_hour_net_cents
        if self.current_hour_net_cents and not net_cents:
            # All tickets are of the current hour.
            return NOTHING
        return formats.aligned_delta(net_cents, self.compared.net_cents)


def choose_currency(requested: str, *totals: PerCurrency) -> tuple[str, list[str]]:
    """Choose the currency to show; also return all currencies: those of the period (the first of `totals`), largest net
    sales first, then those of the compared period only."""
    by_net_sales = [currency for currency, _ in totals[0].by_net_sales()]
    only_compared = sorted({currency for total in totals for currency in total.sums} - set(by_net_sales))
    currencies = [*by_net_sales, *only_compared]
    return (requested if requested in currencies else next(iter(currencies), requested or "EUR")), currencies


def sums_in(total: PerCurrency | None, currency: str) -> Sums:
    return Sums() if total is None else total.sums.get(currency, Sums())


def sort_rows(rows: list[MeasureRow], sort: str) -> list[MeasureRow]:
    """Sort rows by a measure, largest first, rows without a value last; without a measure, keep the order."""
    measure = MEASURES.get(sort)
    if measure is None:
        return rows
    values = [(row, measure.value(row.sums)) for row in rows]
    return [row for row, _ in sorted(values, key=lambda pair: (pair[1] is None, -(pair[1] or 0)))]


def csv_row(row: MeasureRow, currency: str) -> list[str]:
    values = ["" if (value := measure.value(row.sums)) is None else str(value) for measure in SALES_MEASURES]
    compared = "" if row.compared is None else str(row.compared.net_cents)
    opt_ins = "" if row.opt_ins_per_100 is None else str(row.opt_ins_per_100)
    return [row.key, row.name, currency, *values, compared, opt_ins, str(row.current_hour_net_cents)]


# `current_hour_net_cents` is the part of `net_cents` that is not compared: `compared_net_cents` ends at the last full
# hour if the period ends today.
CSV_HEADER: Final = (
    "key", "name", "currency", *(measure.name for measure in SALES_MEASURES), "compared_net_cents", "opt_ins_per_100",
    "current_hour_net_cents",
)  # fmt: skip
SALES_DEFINITIONS: Final = (
    *(Definition(measure.label, measure.definition) for measure in SALES_MEASURES),
    Definition("Net change", "Net compared with that of the other period. Currencies are never added."),
    Definition(
        "Opt-ins per 100 tickets", "Opt-ins to texts for every 100 tickets; by store only for the last 30 days."
    ),
    Definition("Like-for-like", "Only stores with tickets in both periods."),
)
