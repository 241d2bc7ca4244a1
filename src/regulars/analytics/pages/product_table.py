"""Builds the table of products, with its rows, total and groupings, for the page and the CSV file. A row is a group of
lines of tickets with the same product, the same value of a product property, or the same store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from regulars.analytics.pages.filters import LIST_VALUES_MAX, AnalysisView
from regulars.analytics.pages.frame import CsvFile, raw_share
from regulars.analytics.pages.net_chart import NetBar, RankedChart, draw_ranked
from regulars.columns.questions import (
    MILLIONTHS,
    PRODUCT_ROWS_MAX,
    BasketAnswer,
    BasketRow,
    ProductFigures,
    ProductGroup,
    ProductKey,
    ProductRow,
    ProductsAnswer,
)
from regulars.kit.ids import STORE
from regulars.sales.model import Currency
from regulars.web.charts import sparkline
from regulars.web.format import NOTHING, Format

ROWS_SHOWN_MAX: Final = 50
# Characters of a product code below its bar: more would overlap the next code on a phone.
CODE_CHARACTERS_MAX: Final = 7
# The table marks a return rate above this multiple of the average.
HIGH_RETURNS_FACTOR: Final = 2
# With fewer units sold, a single return would decide whether the rate is high, so it is not marked.
HIGH_RETURNS_UNITS_MIN: Final = 20
CSV_HEADER: Final = (
    "kind", "key", "name", "currency", "net_cents", "units", "units_returned", "tickets", "return_rate", "customers",
    "compared_net_cents",
)  # fmt: skip


class Column(NamedTuple):
    """`drop` is the CSS class that hides the column in a narrow table."""

    name: str
    label: str
    drop: str


COLUMNS: Final = (
    Column("units", "Net units", "drop-3"),
    Column("tickets", "Purchases", "drop-3"),
    Column("return_rate", "Return rate", "drop-3"),
    Column("customers", "Customers", "drop-4"),
)


class ProductTableRow(NamedTuple):
    """A row of the table, as text."""

    name: str
    note: str
    url: str
    units: str
    tickets: str
    return_rate: str
    # Whether the return rate is high.
    is_high: bool
    customers: str
    sparkline: str
    change: str
    net: str
    # The width of the bar, in percent of the largest.
    width: int


class BasketTableRow(NamedTuple):
    """A product that was bought together with those of the page; `share` is its share of their tickets."""

    row: BasketRow
    name: str
    # Empty if the product has no other name.
    code: str
    url: str
    tickets: str
    share: str


class _TableTotals(NamedTuple):
    """The values with which rows are compared: the largest net, and the return rate of all rows."""

    largest_net_cents: int
    return_rate: float | None
    currency: Currency


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTable:
    key_name: str
    net: RankedChart
    rows: Sequence[ProductTableRow]
    total: ProductTableRow
    # The purchases of all rows, and how many of them have a known customer.
    purchases: int
    identified: int
    groups: int
    # Whether the user can request more rows.
    has_more_rows: bool


class ProductGrouping(NamedTuple):
    """What the user chose: the key by which lines are grouped, and the groups to which the table is filtered."""

    by: ProductKey
    filters: tuple[ProductGroup, ...]


def rows_max_of(view: AnalysisView) -> int:
    """How many rows to request. The analysis process sorts by net, so another sort needs all rows."""
    return PRODUCT_ROWS_MAX if view.value("sort") or view.value("rows") == "all" else ROWS_SHOWN_MAX


def read_grouping(view: AnalysisView) -> ProductGrouping | None:
    """Read the grouping from the URL; None, with an error in the form, if it contains an invalid group."""
    try:
        filters = tuple(msgspec.json.decode(text, type=ProductGroup) for text in view.get_list("in"))
        by: ProductKey | None = ProductKey()
        if view.value("group"):
            by = msgspec.json.decode(view.value("group"), type=ProductKey)
    except msgspec.DecodeError:
        filters, by = (), None
    keys = [key for key in (by, *(group.key for group in filters)) if key is not None]
    has_no_name = any(key.kind == "property" and not key.property for key in keys)
    if by is None or has_no_name or any(group.kind == "others" for group in filters):
        view.form.refuse("group", "We cannot read the group of products in this address.")
        return None
    return ProductGrouping(by, filters)


def _encode(value: ProductKey | ProductGroup) -> str:
    return msgspec.json.encode(value).decode()


def _key_name(key: ProductKey) -> str:
    return {"product": "Product code", "store": "Store"}.get(key.kind, key.property)


def list_keys(grouping: ProductGrouping, properties: Sequence[str]) -> list[tuple[str, str, bool]]:
    """The keys by which lines can be grouped: name, value in the URL, and whether it is chosen."""
    keys = [ProductKey(), *(ProductKey("property", name) for name in properties), ProductKey("store")]
    filtered = {group.key for group in grouping.filters} - {grouping.by}
    return [(_key_name(key), _encode(key), key == grouping.by) for key in keys if key not in filtered]


def list_filters(view: AnalysisView, grouping: ProductGrouping) -> list[tuple[str, str]]:
    """The groups to which the page is filtered, each with the URL without this filter."""
    names = [f"{_key_name(group.key)}: {_name_group(view, group, None)}" for group in grouping.filters]
    texts = [_encode(group) for group in grouping.filters]
    urls = [view.url(in_=[other for other in texts if other != text]) for text in texts]
    return list(zip(names, urls, strict=True))


def _name_group(view: AnalysisView, group: ProductGroup, name: str | None) -> str:
    if group.kind == "unset":
        return f"No {group.key.property or 'code'}"
    if group.kind == "no_product":
        return "No product"
    if group.kind == "others":
        return "All others"
    if group.key.kind == "store":
        store_id = STORE.decode(group.value)
        return group.value if store_id is None else view.known_stores.get(store_id, group.value)
    return name or group.value


def _describe_group(group: ProductGroup, name: str | None) -> str:
    if group.kind == "unset":
        return "The product has no value for it"
    if group.kind == "no_product":
        return "The ticket line names no product"
    return group.value if group.key.kind == "product" and name else ""


def _group_url(view: AnalysisView, grouping: ProductGrouping, group: ProductGroup) -> str:
    """The URL that shows the products of a group, or one product by store; empty if there are too many filters."""
    if group.kind == "others" or len(grouping.filters) >= LIST_VALUES_MAX:
        return ""
    next_key = ProductKey("store") if group.key.kind == "product" else ProductKey()
    if any(chosen.key == next_key for chosen in grouping.filters) or (next_key == group.key):
        next_key = ProductKey("store")
    encoded = [_encode(chosen) for chosen in (*grouping.filters, group)]
    return view.url(in_=encoded, group=_encode(next_key), sort=None, rows=None)


def _format_row(
    formats: Format, view: AnalysisView, grouping: ProductGrouping, row: ProductRow, totals: _TableTotals
) -> ProductTableRow:
    figures, group = row.figures, row.group
    rate = figures.return_rate
    return ProductTableRow(
        _name_group(view, group, row.name),
        _describe_group(group, row.name),
        _group_url(view, grouping, group),
        formats.number(_units(figures)),
        formats.number(figures.tickets),
        NOTHING if rate is None else formats.aligned_share(rate, 1),
        has_high_returns(figures, totals.return_rate),
        formats.number(figures.customers),
        sparkline(figures.weekly_net_cents) if any(figures.weekly_net_cents) else "",
        _describe_change(formats, figures),
        formats.money_rounded(figures.net_cents, totals.currency),
        max(0, round(100 * figures.net_cents / totals.largest_net_cents))
        if totals.largest_net_cents > 0 and group.kind != "others"
        else 0,
    )


def _describe_change(formats: Format, figures: ProductFigures) -> str:
    compared = figures.compared_net_cents
    if compared is None:
        return ""
    return "new" if compared == 0 and figures.net_cents > 0 else formats.aligned_delta(figures.net_cents, compared)


def has_high_returns(figures: ProductFigures, average: float | None) -> bool:
    rate, is_enough = figures.return_rate, figures.sold_millionths >= HIGH_RETURNS_UNITS_MIN * MILLIONTHS
    return is_enough and rate is not None and average is not None and rate > HIGH_RETURNS_FACTOR * average


def _units(figures: ProductFigures) -> Decimal:
    return (Decimal(figures.net_millionths) / MILLIONTHS).normalize()


def product_table(
    formats: Format, view: AnalysisView, grouping: ProductGrouping, currency: Currency, answer: ProductsAnswer
) -> ProductTable:
    rows = sort_rows(view, answer.rows)
    totals = _TableTotals(
        max([row.figures.net_cents for row in rows if row.group.kind != "others"], default=0),
        answer.whole.return_rate,
        currency,
    )
    nets = [_net_bar(view, row) for row in rows if row.group.kind != "others"]
    # Formatted like the row of all other groups, without a link or a bar.
    total = ProductRow(ProductGroup(grouping.by, "others"), answer.whole)
    return ProductTable(
        key_name=_key_name(grouping.by),
        net=draw_ranked(formats, nets, currency),
        rows=[_format_row(formats, view, grouping, row, totals) for row in rows],
        total=_format_row(formats, view, grouping, total, totals),
        purchases=answer.whole.tickets,
        identified=answer.identified,
        groups=answer.groups,
        has_more_rows=any(row.group.kind == "others" for row in rows) and rows_max_of(view) < PRODUCT_ROWS_MAX,
    )


def _net_bar(view: AnalysisView, row: ProductRow) -> NetBar:
    name, code = _name_group(view, row.group, row.name), row.group.value if row.name else ""
    figures = row.figures
    label = code[:CODE_CHARACTERS_MAX]
    return NetBar(f"{name} {code}".strip(), figures.net_cents, figures.compared_net_cents, label)


def sort_rows(view: AnalysisView, rows: Sequence[ProductRow]) -> list[ProductRow]:
    """Sort rows by the chosen measure, the largest first; “Others” and rows without a value come last."""
    orders: dict[str, Callable[[ProductFigures], float]] = {
        "units": lambda figures: figures.net_millionths,
        "tickets": lambda figures: figures.tickets,
        "return_rate": lambda figures: figures.return_rate or 0.0,
        "customers": lambda figures: figures.customers,
    }
    order = orders.get(view.value("sort"))
    if order is None:
        return list(rows)
    with_value = [row for row in rows if row.group.kind == "value"]
    without_value = [row for row in rows if row.group.kind != "value"]
    return [*sorted(with_value, key=lambda row: -order(row.figures)), *without_value]


def basket_rows(formats: Format, view: AnalysisView, basket: BasketAnswer) -> list[BasketTableRow]:
    return [
        BasketTableRow(
            row,
            row.name or row.product,
            row.product if row.name else "",
            _group_url(view, ProductGrouping(ProductKey(), ()), ProductGroup(ProductKey(), "value", row.product)),
            formats.number(row.tickets),
            formats.aligned_share(row.tickets, basket.tickets),
        )
        for row in basket.rows
    ]


def basket_file(rows: Sequence[BasketTableRow], tickets: int) -> CsvFile:
    return CsvFile(
        "bought-together.csv",
        ("product", "name", "purchases", "share"),
        [
            [shown.row.product, shown.name, str(shown.row.tickets), raw_share(shown.row.tickets, tickets)]
            for shown in rows
        ],
    )


def csv_rows(
    view: AnalysisView, currency: Currency, rows: Sequence[ProductRow], total: ProductFigures
) -> Iterator[list[str]]:
    lines = [(row.group.kind, row.group.value, _name_group(view, row.group, row.name), row.figures) for row in rows]
    for kind, value, name, figures in [*lines, ("total", "", "All", total)]:
        rate, compared = figures.return_rate, figures.compared_net_cents
        yield [
            kind,
            value,
            name,
            currency,
            str(figures.net_cents),
            str(_units(figures)),
            str((Decimal(figures.returned_millionths) / MILLIONTHS).normalize()),
            str(figures.tickets),
            "" if rate is None else str(round(rate, 6)),
            str(figures.customers),
            "" if compared is None else str(compared),
        ]
