"""Which columns a question needs: they are read before anything is computed."""

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from regulars.conditions.needs import innermost_first
from regulars.conditions.tree import (
    Condition,
    Consent,
    Country,
    Created,
    FirstPurchase,
    Group,
    LastPurchase,
    Named,
    OfAttribute,
    OfSales,
    Spend,
    Texts,
    TicketValue,
    is_net_articles,
    walk,
)
from regulars.segments.analysis.engine.customers import ATTRIBUTE, TEXTS
from regulars.segments.analysis.engine.sales import IDS, PROPERTY
from regulars.segments.analysis.model import Order


class Need(NamedTuple):
    customers: set[str]
    sales: set[str]


def need_of(match: Group, segments: Mapping[str, Group | None]) -> Need:
    """For the split by consent, `alive`, `consent` and `own` are always needed."""
    need = Need({"alive", "consent", "own"}, set())
    others = [segments[segment_id] for segment_id in innermost_first(match, segments)]
    for _, condition in chain.from_iterable(walk(one) for one in (match, *others) if one is not None):
        need.customers.update(_of_customers(condition))
        if isinstance(condition, OfSales):
            need.sales.update(_of_sales(condition))
    return need


def add_order(need: Need, order: Order | None) -> None:
    """What members are sorted by."""
    match order:
        case "created":
            need.customers.add("created")
        case "last_purchase":
            need.sales.update({"customer", "kind", "at_s"})
        case "spend":
            need.sales.update({"customer", "kind", "amount"})


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
    if has_lines or is_net_articles(condition):
        parts.add("sale")
    if condition.products:
        parts.add(IDS)
    if condition.property is not None:
        parts.add(PROPERTY + condition.property.key)
    if is_net_articles(condition):
        parts.add("quantity")
    elif isinstance(condition, Spend | TicketValue):
        parts.add("total" if has_lines else "amount")
    return parts
