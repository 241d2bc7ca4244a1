"""How much is credited to texts, by the month in which the texts were sent."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

from regulars.attribution.model import Attributed, Origin
from regulars.attribution.month_tables import MonthTables

AttributedByCurrency = Mapping[str, Attributed]


class MonthSums(NamedTuple):
    """The sums of one origin and month in one currency; `month` is the first day of the month."""

    origin: Origin
    month: date
    currency: str
    sums: Attributed


CREDITED: Final = MonthTables(
    days="attribution_totals",
    months="attribution_months",
    group="currency",
    sums={"tickets": "bigint", "gross_cents": "numeric", "net_cents": "numeric", "unmatched_cents": "numeric"},
    make=lambda origin, month, currency, *sums: MonthSums(origin, month, currency, Attributed(*sums)),
)
read_sums_by_month: Final = CREDITED.read
read_sums_of: Final = CREDITED.read_origin


def sum_by(rows: Iterable[MonthSums], key: Callable[[MonthSums], Any]) -> dict[Any, AttributedByCurrency]:
    """The sums for each key, in the order in which the keys first occur."""
    sums_by_key: defaultdict[Any, defaultdict[str, Attributed]] = defaultdict(lambda: defaultdict(Attributed))
    for row in rows:
        sums_by_key[key(row)][row.currency] += row.sums
    return {name: dict(sums) for name, sums in sums_by_key.items()}
