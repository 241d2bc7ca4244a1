"""What the questions of analytics should be answered with, in plain Python over the rows."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from tests.columns.fed_shop import FedShop

from regulars.catalog.model import spell
from regulars.columns.questions import (
    BasketQuestion,
    Dimension,
    Period,
    ProductGroup,
    ProductKey,
    ProductsQuestion,
    SalesQuestion,
)
from regulars.kit.clock import in_zone
from regulars.kit.ids import STORE
from regulars.sales.totals.model import Sums

INTERVALS = ((1, 7), (8, 14), (15, 30), (31, 60), (61, 90), (91, 180), (181, 365), (366, None))


@dataclass
class Row:
    profile_id: UUID | None
    is_erased: bool
    is_return: bool
    at: datetime
    day: date
    store_id: UUID
    currency: str
    amount: int
    discount: int
    tax: int
    lines: list[dict[str, Any]]
    external_id: str

    @property
    def totals(self) -> list[int]:
        """Of the lines, negative if returned; those of a return that sum below 0 are signed already."""
        return self._signed([line["total_price_cents"] for line in self.lines])

    @property
    def units(self) -> list[Decimal]:
        """The same of quantities; a line with a unit of measure counts 1."""
        quantities = [Decimal(str(line["quantity"])) for line in self.lines]
        ones = [Decimal(1) if it > 0 else Decimal(-1) for it in quantities]
        measured = [line.get("unit") is not None for line in self.lines]
        return self._signed(
            [one if it else quantity for one, quantity, it in zip(ones, quantities, measured, strict=True)]
        )

    def _signed(self, values: list[Any]) -> list[Any]:
        return [-value for value in values] if self.is_return and sum(values) >= 0 else values

    @property
    def net(self) -> int:
        return -self.amount if self.is_return else self.amount


def read_rows(shop: FedShop) -> list[Row]:
    found = shop.sql(
        "SELECT profile_id, anonymised_at IS NOT NULL, type = 'RETURN', occurred_at, store_id, currency,"
        " total_amount_cents, total_discount_cents, COALESCE(total_tax_cents, 0), line_items, external_id FROM sales_events WHERE organization_id = %s"
    )
    zone = ZoneInfo(shop.zone)
    return [Row(*row[:4], in_zone(row[3], zone).date(), *row[4:]) for row in found]


class SoldLine(NamedTuple):
    row: Row
    line: dict[str, Any]
    cents: int
    units: Decimal

    def group(self, key: ProductKey) -> ProductGroup:
        product = self.line.get("product")
        if key.kind == "store":
            return ProductGroup(key, "value", STORE.encode(self.row.store_id))
        if product is None:
            return ProductGroup(key, "no_product")
        value = product.get("external_id") if key.kind == "product" else product.get("properties", {}).get(key.property)
        return ProductGroup(key, "unset") if value is None else ProductGroup(key, "value", spell(value))


@dataclass
class Oracle:
    """All rows, whom the question is about (None: all customers), and its stores (None: all)."""

    rows: Sequence[Row]
    today: date
    members: set[UUID] | None = None
    stores: set[UUID] | None = None

    def of_customers(self, *, everywhere: bool = False) -> list[Row]:
        return [
            row
            for row in self.rows
            if row.profile_id is not None
            and (self.members is None or row.profile_id in self.members)
            and (everywhere or self.stores is None or row.store_id in self.stores)
        ]

    def counted(self) -> list[Row]:
        """Also those without a customer, if the question has no segment."""
        return [
            row
            for row in self.rows
            if (self.members is None or row.profile_id in self.members)
            and (self.stores is None or row.store_id in self.stores)
        ]

    def groups(
        self, question: SalesQuestion, period: Period, named: Mapping[tuple[str, date], date]
    ) -> dict[Any, tuple[Sums, int]]:
        """The sums and the customers of each group, by its keys and currency. `named` has the names of compared
        days."""
        found: dict[Any, list[Sums]] = defaultdict(list)
        buyers: dict[Any, set[UUID]] = defaultdict(set)
        sales: dict[Any, set[int]] = defaultdict(set)
        for row in self.within(period):
            lines = [None] if question.lines_in is None else self._lines_of(row, question)
            for line in lines:
                keys = tuple(
                    self._key(it, row, line, question=question, period=period, named=named) for it in question.by
                )
                group = keys, row.currency
                found[group].append(_sums_of(row, line, is_counted=id(row) not in sales[group]))
                sales[group].add(id(row))
                if not row.is_return and row.profile_id is not None:
                    buyers[group].add(row.profile_id)
        return {group: (sum(sums[1:], sums[0]), len(buyers[group])) for group, sums in found.items()}

    def _lines_of(self, row: Row, question: SalesQuestion) -> list[SoldLine]:
        lines = [SoldLine(row, *it) for it in zip(row.lines, row.totals, row.units, strict=True)]
        is_counted = row.currency == question.lines_in
        return [it for it in lines if is_counted and all(it.group(one.key) == one for one in question.filters)]

    def _key(
        self,
        dimension: Dimension,
        row: Row,
        line: SoldLine | None,
        *,
        question: SalesQuestion,
        period: Period,
        named: Mapping[tuple[str, date], date],
    ) -> str | None:
        match dimension.kind:
            case "store":
                return str(row.store_id)
            case "country":
                return question.countries.get(row.store_id)
            case "newness":
                if row.profile_id is None:
                    return "unknown"
                first = self.first_purchases.get(row.profile_id)
                return "new" if first is not None and period.first <= first <= period.last else "known"
            case "product" | "property":
                assert line is not None
                return line.group(ProductKey(dimension.kind, dimension.property)).value or None
            case unit:
                if named:
                    return named[unit, row.day].isoformat()
                starts = {
                    "day": row.day,
                    "week": row.day - timedelta(days=row.day.weekday()),
                    "month": row.day.replace(day=1),
                }
                return max(starts[unit], period.first).isoformat()

    @cached_property
    def first_purchases(self) -> dict[UUID, date]:
        """Of all customers, at all stores."""
        bought = [row for row in self.rows if not row.is_return and row.profile_id is not None]
        return {who: days[0] for who, days in purchase_days(bought).items()}

    def within(self, period: Period) -> list[Row]:
        return [row for row in self.counted() if period.first <= row.day <= period.last]

    def lines(self, period: Period, currency: str, inside: Sequence[ProductGroup]) -> list[SoldLine]:
        return [
            line
            for row in self.within(period)
            if row.currency == currency
            for line in (SoldLine(row, *it) for it in zip(row.lines, row.totals, row.units, strict=True))
            if all(line.group(one.key) == one for one in inside)
        ]

    def products(self, question: ProductsQuestion) -> dict[ProductGroup, dict[str, Any]]:
        """For each group its figures."""
        last = question.period.last
        weeks = [Period(last - timedelta(days=7 * n + 6), last - timedelta(days=7 * n)) for n in range(11, -1, -1)]
        periods = [question.period, *weeks, *([question.comparison] if question.comparison else [])]
        lines = [self.lines(period, question.currency, question.filters) for period in periods]
        groups = {line.group(question.by) for some in (lines[0], *lines[13:]) for line in some}
        return {
            group: self.figures([[it for it in some if it.group(question.by) == group] for some in lines])
            for group in groups
        }

    def figures(self, lines: list[list[SoldLine]]) -> dict[str, Any]:
        """Of the lines of the period, of each week, and of the comparison."""
        bought = [line for line in lines[0] if not line.row.is_return]
        returned = [line for line in lines[0] if line.row.is_return]
        return {
            "net_cents": sum(line.cents for line in lines[0]),
            "sold_millionths": int(sum(line.units for line in bought) * 1_000_000),
            "returned_millionths": int(-sum(line.units for line in returned) * 1_000_000),
            "tickets": len({id(line.row) for line in bought}),
            "customers": len({line.row.profile_id for line in bought} - {None}),
            "weekly_net_cents": tuple(sum(line.cents for line in week) for week in lines[1:13]),
            "compared_net_cents": sum(line.cents for line in lines[13]) if len(lines) > 13 else None,
        }

    def basket(self, question: BasketQuestion) -> tuple[Counter[str], int]:
        inside = self.lines(question.period, question.currency, question.filters)
        rows = {id(line.row): line.row for line in inside if not line.row.is_return}
        counts: Counter[str] = Counter()
        for row in rows.values():
            lines = [SoldLine(row, *it) for it in zip(row.lines, row.totals, row.units, strict=True)]
            counts.update(
                {
                    line.group(ProductKey()).value
                    for line in lines
                    if line.group(ProductKey()).kind == "value"
                    and not all(line.group(one.key) == one for one in question.filters)
                }
            )
        return counts, len(rows)

    @cached_property
    def firsts(self) -> dict[UUID, date]:
        return {who: days[0] for who, days in purchase_days(self.of_customers(everywhere=True)).items()}

    @cached_property
    def of_customers_by_day(self) -> dict[date, list[Row]]:
        found: dict[date, list[Row]] = defaultdict(list)
        for row in self.of_customers():
            found[row.day].append(row)
        return found

    def customers(self, first: date, last: date) -> dict[str, Any]:
        """Of one period or bucket."""
        rows = [row for day, those in self.of_customers_by_day.items() if first <= day <= last for row in those]
        bought = purchase_days(rows)
        new = {who for who, day in self.firsts.items() if first <= day <= last}
        return {
            "first": first,
            "last": last,
            "new": len(bought.keys() & new),
            "returning": len(bought.keys() - new),
            "repeated": sum(len(days) > 1 for days in bought.values()),
            "new_net_cents": nets(row for row in rows if row.profile_id in new),
            "returning_net_cents": nets(row for row in rows if row.profile_id not in new),
        }

    def intervals(self, period: Period) -> tuple[list[tuple[int, int | None, int]], float | None]:
        days = purchase_days(self.of_customers(everywhere=True))
        found = [
            (day - max(it for it in days[who] if it < day)).days
            for who, those in purchase_days(self.of_customers()).items()
            for day in those
            if period.first <= day <= period.last and days[who][0] < day
        ]
        counts = [
            (low, high, sum(low <= it and (high is None or it <= high) for it in found)) for low, high in INTERVALS
        ]
        return counts, median(found) if found else None

    def cohorts(self) -> dict[date, dict[str, Any]]:
        """By the first day of the month, with sizes, and for each month after it the customers and the net."""
        firsts = self.firsts
        rows = self.of_customers()
        months: dict[UUID, set[int]] = defaultdict(set)
        for who, days in purchase_days(rows).items():
            months[who] = {month_number(day) for day in days}
        found: dict[date, dict[str, Any]] = {}
        for first in {day.replace(day=1) for day in firsts.values()}:
            start = month_number(first)
            people = {who for who, day in firsts.items() if month_number(day) == start and start in months[who]}
            theirs = [(month_number(row.day), row) for row in rows if row.profile_id in people]
            after = []
            for number in range(month_number(self.today) - start + 1):
                later = set(range(start + 1, start + number + 1))
                month = [row for when, row in theirs if when == start + number]
                before = [row for when, row in theirs if start <= when <= start + number]
                bought = sum(start + number in months[who] for who in people)
                after.append((bought, sum(bool(months[who] & later) for who in people), nets(month), nets(before)))
            found[first] = {"customers": len(people), "months": after}
        return found

    def rfm(self, currency: str) -> tuple[dict[str, tuple[int, dict[str, int]]], int]:
        """For each group its customers and nets, and how many customers there are."""
        first = self.today - timedelta(days=729)
        rows = self.of_customers()
        days = {who: those for who, those in purchase_days(rows).items() if those[-1] <= self.today}
        recent = [row for row in rows if first <= row.day <= self.today]
        frequency = {who: sum(first <= day <= self.today for day in those) for who, those in days.items()}
        money: Counter[UUID] = Counter()
        for row in recent:
            if row.currency == currency:
                money[row.profile_id] += row.net
        scored = [who for who in days if days[who][-1] >= first and money[who] > 0]
        r, f, m = (scores(scored, key) for key in (lambda who: days[who][-1], frequency.__getitem__, money.__getitem__))
        groups: dict[str, set[UUID]] = defaultdict(set)
        for who in days:
            if days[who][-1] < first:
                groups["lapsed"].add(who)
            elif money[who] <= 0:
                groups["no_net"].add(who)
            else:
                groups[name_of(r[who], f[who], m[who])].add(who)
        return {
            name: (len(people), nets(row for row in recent if row.profile_id in people))
            for name, people in groups.items()
        }, len(days)


def _sums_of(row: Row, line: SoldLine | None, *, is_counted: bool) -> Sums:
    """The sums of a ticket, or of one of its lines; `is_counted` says that the ticket counts here, once."""
    is_return = row.is_return
    units = sum(row.units, Decimal()) if line is None else line.units
    cents = row.amount if line is None else -line.cents if is_return else line.cents
    return Sums(
        purchases=int(is_counted and not is_return),
        returns=int(is_counted and is_return),
        identified=int(is_counted and (row.profile_id is not None or row.is_erased)),
        gross_cents=0 if is_return else cents,
        returned_cents=cents if is_return else 0,
        discount_cents=0 if is_return or line else row.discount,
        tax_cents=0 if line else -row.tax if is_return else row.tax,
        units=Decimal() if is_return else units,
        returned_units=-units if is_return else Decimal(),
        lines=0 if is_return else len(row.lines) if line is None else 1,
    )


def name_of(recency: int, frequency: int, money: int) -> str:
    if recency >= 4:
        if frequency >= 4:
            return "champions" if money >= 4 else "loyal"
        return "big_spenders" if money >= 4 else "recent"
    name = "slowing" if recency >= 2 else "at_risk"
    return f"{name}_high_value" if money >= 4 else name


def scores(people: Sequence[UUID], value: Callable[[UUID], Any]) -> dict[UUID, int]:
    values = [value(who) for who in people]
    return {who: 1 + 5 * sum(it < value(who) for it in values) // len(people) for who in people}


def purchase_days(rows: Iterable[Row]) -> dict[UUID, list[date]]:
    days: dict[UUID, set[date]] = defaultdict(set)
    for row in rows:
        if not row.is_return and row.profile_id is not None:
            days[row.profile_id].add(row.day)
    return {who: sorted(those) for who, those in days.items()}


def nets(rows: Iterable[Row]) -> dict[str, int]:
    """Without currencies whose net is 0."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row.currency] += row.net
    return {currency: cents for currency, cents in sums.items() if cents}


def month_number(day: date) -> int:
    return 12 * day.year + day.month


def buckets(first: date, last: date, by: str) -> list[tuple[date, date]]:
    """The days, weeks or months between two days, cut at both ends."""
    found: dict[Any, list[date]] = defaultdict(list)
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        found[{"day": day, "week": day.isocalendar()[:2], "month": (day.year, day.month)}[by]].append(day)
    return [(days[0], days[-1]) for days in found.values()]
