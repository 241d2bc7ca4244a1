"""Finds the columns that conditions read, by running their answers without data."""

from collections.abc import Collection
from datetime import date
from typing import Literal
from uuid import UUID

from regulars.columns.engine.customer_columns import ATTRIBUTE_PREFIX, TEXTS
from regulars.columns.engine.sales_runs import PRODUCT_IDS, PROPERTY_PREFIX
from regulars.conditions import tree
from regulars.conditions.column_protocol import Code, Flag, Measure, Moment, SalesScope


class NoMask:
    """Instead of a mask of customers."""

    def __and__(self, other: "NoMask") -> "NoMask":
        return self

    def __invert__(self) -> "NoMask":
        return self


_NO_MASK = NoMask()


class RequiredColumns:
    """Implements `Columns` by recording the names of customer columns, and of the parts of sales, that an answer reads.
    `reads_consent` says that it depends on the do-not-contact numbers."""

    def __init__(self, today: date) -> None:
        self._today = today
        self.customers: set[str] = set()
        self.sales: set[str] = set()
        self.reads_consent = False

    @classmethod
    def of(cls, condition: tree.Leaf, today: date) -> "RequiredColumns":
        required = cls(today)
        condition.over_columns(required)
        return required

    @property
    def today(self) -> date:
        return self._today

    def unknown(self) -> NoMask:
        return _NO_MASK

    def flag(self, column: Flag) -> NoMask:
        return self._read(column)

    def code_in(self, column: Code, _values: Collection[str]) -> NoMask:
        return self._read(column)

    def on_day(self, column: Moment, _when: tree.When) -> NoMask:
        return self._read(column)

    def consent_is(self, _state: tree.ConsentState) -> NoMask:
        self.reads_consent = True
        return self._read("consent", "own")

    def compare(self, attribute: tree.ValueComparison) -> NoMask:
        return self._read(ATTRIBUTE_PREFIX + attribute.key)

    def has_anniversary(self, key: str, *, first: date, last: date) -> NoMask:
        return self._read(ATTRIBUTE_PREFIX + key)

    def got_text(self, *, senders: Collection[UUID] | None = None, days: int | None = None) -> NoMask:
        return self._read(TEXTS)

    def in_segment(self, _segment_id: str) -> NoMask:
        return _NO_MASK

    def within(self, scope: SalesScope, measure: Measure, *, low: int | None, high: int | None) -> NoMask:
        match measure:
            case "tickets":
                return self._read_sales(scope)
            case "days":
                return self._read_sales(scope, "at_s")
            case "articles":
                return self._read_sales(scope, "sale", "quantity")
            case "cents":
                return self._read_amounts(scope)

    def has_ticket(self, scope: SalesScope, *, low: int | None, high: int | None) -> NoMask:
        return self._read_amounts(scope)

    def purchased(self, scope: SalesScope, _which: Literal["first", "last"], _when: tree.When) -> NoMask:
        return self._read_sales(scope, "at_s")

    def _read(self, *columns: str) -> NoMask:
        self.customers.update(columns)
        return _NO_MASK

    def _read_amounts(self, scope: SalesScope) -> NoMask:
        return self._read_sales(scope, "total" if scope.products or scope.property is not None else "amount")

    def _read_sales(self, scope: SalesScope, *parts: str) -> NoMask:
        self.sales.update(("customer", "kind", *parts))
        if scope.window is not None:
            self.sales.add("at_s")
        if scope.stores:
            self.sales.add("store")
        if scope.products:
            self.sales.update(("sale", PRODUCT_IDS))
        if scope.property is not None:
            self.sales.update(("sale", PROPERTY_PREFIX + scope.property.key))
        return _NO_MASK
