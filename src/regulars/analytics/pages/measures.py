"""The measures of sales, such as net and return rate: for all pages, the definition, formatted text and CSV value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from regulars.analytics.pages.frame import Definition
from regulars.sales.totals.model import PerCurrency, Sums
from regulars.web.format import NOTHING, Format


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of sales tables. `name` is its property of `Sums`, and identifies it in the CSV file and in the URL that
    sorts by it; `drop` is the CSS class that hides it in a narrow table: `drop-1` first, `drop-4` last, "" never.
    `format` formats a value for a page."""

    name: str
    label: str
    definition: str
    drop: str
    format: Callable[[Format, Any, str], str]

    def raw(self, sums: Sums) -> int | float | None:
        """The value for the CSV file."""
        value: int | float | None = getattr(sums, self.name)
        return value

    def show(self, formats: Format, sums: Sums, currency: str) -> str:
        """The value for a page."""
        value = self.raw(sums)
        return NOTHING if value is None else self.format(formats, value, currency)


def _format_rate(formats: Format, rate: float, _: str) -> str:
    return formats.aligned_share(rate, 1)


def _format_returned(formats: Format, cents: int, currency: str) -> str:
    return formats.money(-cents, currency)


def _format_count(formats: Format, count: int, _: str) -> str:
    return formats.number(count)


MEASURES: Final = (
    Measure(
        "gross_cents", "Gross", "What customers paid for purchases, after discounts, with tax.", "drop-3", Format.money
    ),
    Measure("returned_cents", "Returns", "What was paid back, on the day of the return.", "drop-3", _format_returned),
    Measure("return_rate", "Return rate", "Returns ÷ gross, by value.", "drop-1", _format_rate),
    Measure("return_rate_by_tickets", "Share of returns", "Returns ÷ tickets, by number.", "drop-1", _format_rate),
    Measure(
        "discount_rate", "Discount rate", "Discounts ÷ amount before discounts, of purchases.", "drop-2", _format_rate
    ),
    Measure("tickets", "Tickets, returns included", "Purchases and returns.", "drop-3", _format_count),
    Measure("ticket_cents", "Value per purchase", "Gross ÷ purchases.", "drop-2", Format.money),
    Measure(
        "units_per_ticket",
        "Units per purchase",
        "Units bought ÷ purchases. An item sold by weight or length counts as one unit.",
        "drop-2",
        lambda formats, units, _: formats.aligned_number(units),
    ),
    Measure(
        "identified_rate", "Tickets with a customer", "Tickets with a known customer ÷ tickets.", "drop-3", _format_rate
    ),
    Measure("net_cents", "Net", "Gross minus returns, with tax.", "", Format.money),
)
BY_NAME: Final[Mapping[str, Measure]] = {measure.name: measure for measure in MEASURES}


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


def csv_row(row: MeasureRow, currency: str) -> list[str]:
    values = ["" if (value := measure.raw(row.sums)) is None else str(value) for measure in MEASURES]
    compared = "" if row.compared is None else str(row.compared.net_cents)
    opt_ins = "" if row.opt_ins_per_100 is None else str(row.opt_ins_per_100)
    return [row.key, row.name, currency, *values, compared, opt_ins, str(row.current_hour_net_cents)]


# `current_hour_net_cents` is the part of `net_cents` that is not compared: `compared_net_cents` ends at the last full
# hour if the period ends today.
CSV_HEADER: Final = (
    "key", "name", "currency", *BY_NAME, "compared_net_cents", "opt_ins_per_100", "current_hour_net_cents",
)  # fmt: skip
SALES_DEFINITIONS: Final = (
    *(Definition(measure.label, measure.definition) for measure in MEASURES),
    Definition("Net change", "Net compared with that of the other period. Currencies are never added."),
    Definition(
        "Opt-ins per 100 tickets", "Opt-ins to texts for every 100 tickets; by store only for the last 30 days."
    ),
    Definition("Like-for-like", "Only stores with tickets in both periods."),
)
