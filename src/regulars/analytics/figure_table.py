"""The answer to a query as a table of exact numbers: the rows of files and commands, and what pages format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from regulars.analytics.figures import Figures, Keys
from regulars.analytics.query import CUSTOMERS, TIMES, Measure, Query, Value, write_dimension
from regulars.columns.questions import Dimension
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT, STORE
from regulars.sales.model import Currency
from regulars.sales.totals.model import PerCurrency, Sums
from regulars.segments.saved.manage import find_names
from regulars.stores.find import name_stores

_RATE_DIGITS: Final = 4
# The dimensions whose groups have an id or code, and a name beside it.
_NAMED: Final = frozenset({"store", "product", "segment"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A row of the table in one currency: its keys as text, their names, and the value of each measure now and then."""

    keys: Keys
    texts: tuple[str, ...]
    names: tuple[str, ...]
    currency: str
    values: tuple[Value, ...]
    compared: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    query: Query
    groups: Sequence[Group]
    # The sums of all rows by currency; a measure that does not add up has none.
    totals: Sequence[Group]

    @property
    def columns(self) -> list[str]:
        keys = [name for it in self.query.by for name in _columns_of(write_dimension(it))]
        measures = [measure.name for measure in self.query.measures]
        compared = [] if self.query.comparison is None else [f"compared_{name}" for name in measures]
        return [*keys, "currency", *measures, *compared]

    def rows(self, groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
        """The groups as rows of files and commands."""
        names = self.columns[self.columns.index("currency") + 1 :]
        for group in groups:
            row: dict[str, Any] = {}
            for dimension, key, name in zip(self.query.by, group.texts, group.names, strict=False):
                row |= zip(_columns_of(write_dimension(dimension)), (key, name), strict=False)
            values = map(_to_data, self.query.measures * 2, (*group.values, *group.compared))
            yield {**row, "currency": group.currency, **dict(zip(names, values, strict=False))}


def _columns_of(dimension: str) -> tuple[str, ...]:
    return (dimension, f"{dimension}_name") if dimension in _NAMED else (dimension,)


def _to_data(measure: Measure, value: Value) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return round(value, _RATE_DIGITS) if measure.unit == "rate" or isinstance(value, float) else value


async def make_table(
    tx: Tx, organization_id: UUID, query: Query, figures: Figures, *, only: Currency | None = None
) -> FigureTable:
    """Make a table of the groups in one or all currencies: by time, or the largest first."""
    names = await _find_names(tx, organization_id, query, figures)
    groups = [
        Group(
            keys=keys,
            texts=tuple(map(_to_text, query.by, keys)),
            names=tuple(
                names.get(key, "") if it.kind in _NAMED else "" for it, key in zip(query.by, keys, strict=True)
            ),
            currency=currency,
            values=_values(query, figures.rows, figures.customers, keys, currency),
            compared=_values(query, figures.compared, figures.compared_customers, keys, currency),
        )
        for keys in dict.fromkeys([*figures.rows, *figures.compared])
        for currency in sorted({*_in(figures.rows, keys), *_in(figures.compared, keys)})
        if only in {None, currency}
    ]
    if query.by and query.by[0].kind in TIMES:
        groups.sort(key=lambda group: (group.keys[0], -_first_value(group)))
    else:
        groups.sort(key=lambda group: -_first_value(group))
    totals = [
        Group(
            keys=(),
            texts=(),
            names=(),
            currency=currency,
            values=_total_values(query, figures.total, currency),
            compared=_total_values(query, figures.compared_total, currency),
        )
        for currency, _ in figures.total.by_net_sales()
        if only in {None, currency} and any(map(query.adds_up, query.measures))
    ]
    return FigureTable(query=query, groups=groups, totals=totals)


def _in(rows: Mapping[Keys, PerCurrency], keys: Keys) -> Mapping[str, Sums]:
    return rows[keys].sums if keys in rows else {}


def _values(
    query: Query,
    rows: Mapping[Keys, PerCurrency],
    customers: Mapping[Keys, Mapping[str, int]],
    keys: Keys,
    currency: str,
) -> tuple[Value, ...]:
    sums = _in(rows, keys).get(currency, Sums())
    distinct = customers.get(keys, {})
    return tuple(distinct.get(currency) if measure == CUSTOMERS else measure.value(sums) for measure in query.measures)


def _total_values(query: Query, total: PerCurrency, currency: str) -> tuple[Value, ...]:
    sums = total.sums.get(currency, Sums())
    return tuple(measure.value(sums) if query.adds_up(measure) else None for measure in query.measures)


def _first_value(group: Group) -> float:
    return float(group.values[0] or 0)


def _to_text(dimension: Dimension, key: Any) -> str:
    match dimension.kind:
        case "store":
            return STORE.encode(key)
        case "segment":
            return SEGMENT.encode(key)
        case _:
            return "" if key is None else str(key)


async def _find_names(tx: Tx, organization_id: UUID, query: Query, figures: Figures) -> Mapping[Any, str]:
    names: dict[Any, str] = {}
    for position, dimension in enumerate(query.by):
        keys = {keys[position] for keys in (*figures.rows, *figures.compared)}
        match dimension.kind:
            case "store":
                names |= await name_stores(tx, organization_id, keys)
            case "segment":
                names |= await find_names(tx, organization_id, list(keys))
            case "product":
                names |= figures.names
            case _:
                pass
    return names
