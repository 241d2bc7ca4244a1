"""The measures of sales, such as net and return rate: for all pages, the definition, formatted text and CSV value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from regulars.analytics.pages.frame import Definition
from regulars.sales.totals.model import PerCurrency, Sums
from regulars.web.format import NOTHING, Format


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of sales tables. `name` identifies it in the CSV file and in the URL that sorts by it; `drop` is the CSS
    class that hides it in a narrow table: `drop-1` first, `drop-4` last, "" never. `show` formats the value for a page,
    `raw` is the value for the CSV file."""

    name: str
    label: str
    definition: str
    drop: str
    show: Callable[[Format, Sums, str], str]
    raw: Callable[[Sums], int | float | None]


def _format_money(cents: Callable[[Sums], int]) -> Callable[[Format, Sums, str], str]:
    return lambda formats, sums, currency: formats.money(cents(sums), currency)


def _format_rate(rate: Callable[[Sums], float | None]) -> Callable[[Format, Sums, str], str]:
    def show(formats: Format, sums: Sums, _: str) -> str:
        value = rate(sums)
        return NOTHING if value is None else formats.aligned_share(value, 1)

    return show


def _format_mean(formats: Format, sums: Sums, currency: str) -> str:
    return NOTHING if sums.ticket_cents is None else formats.money(sums.ticket_cents, currency)


def _format_units_per_ticket(formats: Format, sums: Sums, _: str) -> str:
    return NOTHING if sums.units_per_ticket is None else formats.aligned_number(sums.units_per_ticket)


def _rate_measure(name: str, label: str, definition: str, drop: str) -> Measure:
    rate: Callable[[Sums], float | None] = attrgetter(name)
    return Measure(name, label, definition, drop, _format_rate(rate), rate)


def _money_measure(name: str, label: str, definition: str, drop: str, *, sign: int = 1) -> Measure:
    cents: Callable[[Sums], int] = attrgetter(name)
    return Measure(name, label, definition, drop, _format_money(lambda sums: sign * cents(sums)), cents)


MEASURES: Final = (
    _money_measure("gross_cents", "Gross", "What customers paid for purchases, after discounts, with tax.", "drop-3"),
    _money_measure("returned_cents", "Returns", "What was paid back, on the day of the return.", "drop-3", sign=-1),
    _rate_measure("return_rate", "Return rate", "Returns ÷ gross, by value.", "drop-1"),
    _rate_measure("return_rate_by_tickets", "Share of returns", "Returns ÷ tickets, by number.", "drop-1"),
    _rate_measure("discount_rate", "Discount rate", "Discounts ÷ amount before discounts, of purchases.", "drop-2"),
    Measure(
        "tickets",
        "Tickets, returns included",
        "Purchases and returns.",
        "drop-3",
        lambda formats, sums, _: formats.number(sums.tickets),
        lambda sums: sums.tickets,
    ),
    Measure(
        "ticket_cents", "Value per purchase", "Gross ÷ purchases.", "drop-2", _format_mean, attrgetter("ticket_cents")
    ),
    Measure(
        "units_per_ticket",
        "Units per purchase",
        "Units bought ÷ purchases. An item sold by weight or length counts as one unit.",
        "drop-2",
        _format_units_per_ticket,
        attrgetter("units_per_ticket"),
    ),
    _rate_measure("identified_rate", "Tickets with a customer", "Tickets with a known customer ÷ tickets.", "drop-3"),
    _money_measure("net_cents", "Net", "Gross minus returns, with tax.", ""),
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
        return formats.delta(net_cents, self.compared.net_cents)


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
    return [row.key, row.name, currency, *values, compared, opt_ins]


CSV_HEADER: Final = ("key", "name", "currency", *BY_NAME, "compared_net_cents", "opt_ins_per_100")
SALES_DEFINITIONS: Final = (
    *(Definition(measure.label, measure.definition) for measure in MEASURES),
    Definition("Net change", "Net compared with that of the other period. Currencies are never added."),
    Definition(
        "Opt-ins per 100 tickets", "Opt-ins to texts for every 100 tickets; by store only for the last 30 days."
    ),
    Definition("Like-for-like", "Only stores with tickets in both periods."),
)
