"""Which columns a question needs: they are read before anything is computed."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from regulars.segments.analysis.engine.customers import ATTRIBUTE, TEXTS
from regulars.segments.definition import (
    Articles,
    Condition,
    Consent,
    Country,
    Created,
    FirstPurchase,
    Group,
    InSegment,
    LastPurchase,
    Named,
    OfAttribute,
    OfSales,
    Spend,
    Texts,
    TicketValue,
    walk,
)


class Need(NamedTuple):
    customers: set[str]
    sales: set[str]


def need_of(match: Group, segments: Mapping[str, Group | None]) -> Need:
    """For the split by consent, `alive`, `consent` and `own` are always needed."""
    need = Need({"alive", "consent", "own"}, set())
    for condition in _leaves(match, segments, set()):
        need.customers.update(_of_customers(condition))
        if isinstance(condition, OfSales):
            need.sales.update(_of_sales(condition))
    return need


def _leaves(match: Group, segments: Mapping[str, Group | None], seen: set[str]) -> Iterator[Condition]:
    for _, condition in walk(match):
        if isinstance(condition, InSegment):
            other = segments.get(condition.id)
            if other is not None and condition.id not in seen:
                seen.add(condition.id)
                yield from _leaves(other, segments, seen)
        else:
            yield condition


def _of_customers(condition: Condition) -> set[str]:
    match condition:
        case OfAttribute():
            return {ATTRIBUTE + condition.key}
        case Consent():
            wanted = {"source"} if condition.sources else set()
            wanted |= {"store"} if condition.stores else set()
            return wanted | ({"since"} if condition.since is not None else set())
        case Texts():
            return {TEXTS}
        case Created():
            return {"created"}
        case Named():
            return {"named"}
        case Country():
            return {"country"}
        case _:
            return set()


def _of_sales(condition: OfSales) -> set[str]:
    parts = {"customer", "kind"}
    has_lines = bool(condition.products) or condition.property is not None
    if isinstance(condition, FirstPurchase | LastPurchase) or condition.window is not None:
        parts.add("at_s")
    if condition.stores:
        parts.add("store")
    if has_lines or isinstance(condition, Articles):
        parts |= {"product", "sale"}
    if isinstance(condition, Articles):
        parts.add("quantity")
    elif isinstance(condition, Spend | TicketValue):
        parts.add("total" if has_lines else "amount")
    return parts
