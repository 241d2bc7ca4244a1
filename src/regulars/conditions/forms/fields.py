"""Converts a condition to the fields of its form, and the fields to a condition.

The field `cmp` has the comparison, `was` the key for which the form was rendered, and `without` whether customers
without a value match. Fields of product properties have the prefix `p`, those of a day the prefix `when_`.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import msgspec

from regulars.catalog.model import AttributeType
from regulars.conditions import tree
from regulars.conditions.check import BETWEEN_VALUES, Types
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE
from regulars.conditions.documents import describe_decode_error
from regulars.conditions.forms.draft import SAVED, Node
from regulars.conditions.labels import TICKET_KINDS

CENTS_PER_UNIT: Final = 100
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?")
_MONEY: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,2})?")
_WHOLE: Final = re.compile(r"[0-9]{1,7}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_COUNTED_KINDS: Final = ("bought", "purchase_days", "returned")
# Types whose values are chosen from a list.
LISTED_TYPES: Final = frozenset({AttributeType.BOOLEAN, AttributeType.ENUM})
# The form offers each way of counting purchases as a separate kind of condition: the kind, with its `count`.
ARTICLES: Final = "articles"
PURCHASE_DAYS: Final = "purchase_days"
_COUNTS: Final = {ARTICLES: "articles", PURCHASE_DAYS: "days"}


class IncompleteCondition(Exception):
    """The form lacks a value, or a value cannot be parsed; the message tells the user what to do."""


def fit_fields(node: Node, attributes: Types, properties: Types) -> None:
    """If the user changed the key, clear the values and select the first comparison that the type of the new key
    offers."""
    for prefix, types in (("", attributes), ("p", properties)):
        key = node.get(f"{prefix}key")
        if key != node.get(f"{prefix}was"):
            for name in (f"{prefix}cmp", f"{prefix}values", f"{prefix}value", f"{SAVED}{prefix}value"):
                node.set(name)
        if key not in types:
            continue
        declared, values = types[key]
        if not node.get(f"{prefix}cmp"):
            node.set(f"{prefix}cmp", COMPARISONS_BY_TYPE[declared][0])
        # A select shows its first value, so that value is the default.
        if declared in LISTED_TYPES and node.get(f"{prefix}cmp") in ONE_VALUE and not node.get(f"{prefix}value"):
            node.set(f"{prefix}value", "true" if declared is AttributeType.BOOLEAN else next(iter(values), ""))


def condition_of(node: Node) -> tree.Condition:
    """Convert the fields of a node to a condition."""
    data = _data_of(node)
    try:
        return msgspec.convert(data, tree.Condition)  # type: ignore[no-any-return]  # a union is not a class
    except msgspec.ValidationError as error:
        place, message = describe_decode_error(str(error))
        raise IncompleteCondition(f"{place}: {message}" if place else message) from None


def _data_of(node: Node) -> dict[str, Any]:
    """The condition as JSON data."""
    match node.kind:
        case "attribute":
            return {"type": "attribute", **_read_comparison(node, "", "Choose an attribute.")}
        case "consent":
            since = _read_when(node) if node.get("when_cmp") else None
            return _without_none(
                type="consent",
                state=node.get("state", "may_be_texted"),
                **{"is": node.get("is", "yes") == "yes"},
                sources=node.get_list("sources"),
                stores=node.get_list("stores"),
                since=since,
            )
        case "texts":
            got, journey = node.get("got", "yes") == "yes", node.get("journey") or None
            return _without_none(type="texts", got=got, days=_read_days(node, "days"), journey=journey)
        case "created":
            return {"type": "created", "when": _read_when(node)}
        case "named":
            return {"type": "named", "is": node.get("named", "yes") == "yes"}
        case "country":
            if not node.get_list("countries"):
                raise IncompleteCondition("Choose a country.")
            return {"type": "country", "any_of": [code.upper() for code in node.get_list("countries")]}
        case "segment" | "received_campaign" as kind:
            noun = kind.removeprefix("received_")
            if not node.get(noun):
                raise IncompleteCondition(f"Choose a {noun}.")
            return {"type": kind, "id": node.get(noun), "is": node.get("is", "yes") == "yes"}
        case kind:
            return _ticket_data(node) if kind in TICKET_KINDS else _sales_data(node)


def _ticket_data(node: Node) -> dict[str, Any]:
    """A condition on the ticket that triggered a journey."""
    match node.kind:
        case "amount":
            return {"type": "amount", **_read_limits(node, _read_cents, "_cents")}
        case "product":
            if not (node.get_list("products") or node.get("pkey")):
                raise IncompleteCondition("Name products, or choose a property.")
            data: dict[str, Any] = {"type": "product", "any_of": node.get_list("products")}
            return {**data, "property": _read_comparison(node, "p", "")} if node.get("pkey") else data
        case kind:
            chosen = node.get_list("stores" if kind == "store" else "currencies")
            if not chosen:
                raise IncompleteCondition(f"Choose a {kind}.")
            return {"type": kind, "any_of": chosen}


def _read_limits(node: Node, read: Callable[[Node, str], float], suffix: str) -> dict[str, float]:
    bound, data = node.get("bound", "at_least"), {}
    if bound in {"at_least", "between"}:
        data[f"at_least{suffix}"] = read(node, "low")
    if bound in {"at_most", "between"}:
        data[f"at_most{suffix}"] = read(node, "high")
    return data


def _sales_data(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"type": node.kind, "stores": node.get_list("stores"), "products": node.get_list("products")}
    if node.kind in _COUNTS:
        data |= {"type": "bought", "count": _COUNTS[node.kind]}
    if node.get("pkey"):
        data["property"] = _read_comparison(node, "p", "Choose a property.")
    if node.kind in {"first_purchase", "last_purchase"}:
        return {**data, "when": _read_when(node, may_be_missing=True)}
    window = _read_window(node)
    if window is not None:
        data["window"] = window
    if node.kind in {"spend", "ticket_value"}:
        data["currency"] = node.get("currency", "EUR")
    if node.get("bound") == "none" and node.kind != "ticket_value":
        return {**data, "none": True}
    read: Callable[[Node, str], float] = _read_times
    if node.kind not in _COUNTED_KINDS:
        read = _read_quantity if node.kind == ARTICLES else _read_cents
    suffix = "_cents" if node.kind in {"spend", "ticket_value"} else ""
    return {**data, **_read_limits(node, read, suffix)}


def _read_comparison(node: Node, prefix: str, message_without_key: str) -> dict[str, Any]:
    key, comparison = node.get(f"{prefix}key"), node.get(f"{prefix}cmp")
    if not key:
        raise IncompleteCondition(message_without_key)
    if not comparison:
        # The key is unknown, so the form offered no comparison. With any comparison, the check reports the unknown key.
        comparison = "is_set"
    data: dict[str, Any] = {"key": key, "comparison": comparison, **_read_value(node, prefix, comparison)}
    if comparison in NEGATIVE:
        data["without_value"] = node.get(f"{prefix}without", "no") == "yes"
    return data


def _read_value(node: Node, prefix: str, comparison: str) -> dict[str, Any]:
    """The value, values or days of the comparison."""
    if comparison in ONE_VALUE:
        value = node.get_exact(f"{prefix}value")
        if not value:
            raise IncompleteCondition("Fill in the value.")
        return {"value": value}
    if comparison == "between":
        values = [node.get_exact(f"{prefix}low"), node.get_exact(f"{prefix}high")]
        if not all(values):
            raise IncompleteCondition("Fill in both values.")
        return {"values": values}
    if comparison in {"any_of", "none_of"}:
        if not node.get_list(f"{prefix}values"):
            raise IncompleteCondition("Pick at least one value.")
        return {"values": node.get_list(f"{prefix}values")}
    return {"days": _read_days(node, f"{prefix}days")} if comparison in OF_DAYS else {}


def _read_when(node: Node, *, may_be_missing: bool = False) -> dict[str, Any]:
    comparison = node.get("when_cmp", "in_last_days")
    data: dict[str, Any] = {"comparison": comparison}
    if comparison in {"before", "after"}:
        data["date"] = _read_date(node, "when_date")
    elif comparison == "between":
        data["from"], data["to"] = _read_date(node, "when_from"), _read_date(node, "when_to")
    else:
        data["days"] = _read_days(node, "when_days")
    if may_be_missing and comparison == "not_in_last_days":
        data["without_value"] = node.get("when_without", "no") == "yes"
    return data


def _read_window(node: Node) -> dict[str, Any] | None:
    match node.get("window", "last"):
        case "last":
            return {"last_days": _read_days(node, "days")}
        case "between":
            return {"from": _read_date(node, "from"), "to": _read_date(node, "to")}
        case _:
            return None


def _read_days(node: Node, name: str) -> int:
    return int(_match(node.get(name), _WHOLE, "Fill in a whole number of days."))


def _read_times(node: Node, name: str) -> int:
    text = node.get(name, "1" if node.get("bound", "at_least") == "at_least" else "")
    unit = "days" if node.kind == PURCHASE_DAYS else "times"
    return int(_match(text, _WHOLE, f"Fill in how many {unit}, as a whole number."))


def _read_quantity(node: Node, name: str) -> float:
    return float(_match(node.get(name), _NUMBER, "Fill in how many articles, such as 2 or 0.5."))


def _read_cents(node: Node, name: str) -> int:
    return int(Decimal(_match(node.get(name), _MONEY, "Fill in an amount, such as 200 or 19.90.")) * CENTS_PER_UNIT)


def _read_date(node: Node, name: str) -> str:
    return _match(node.get(name), _DATE, "Fill in a date, such as 2026-11-15.")


def _match(text: str, pattern: re.Pattern[str], message: str) -> str:
    if not pattern.fullmatch(text):
        raise IncompleteCondition(message)
    return text


def _without_none(**data: Any) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def node_of(condition: tree.Condition) -> Node:
    """Convert a condition to a node with its fields."""
    if isinstance(condition, tree.Group):
        return Node(tree.kind_of(condition), inner=[node_of(inner) for inner in condition.of])
    kinds = {count: kind for kind, count in _COUNTS.items()}
    count = condition.count if isinstance(condition, tree.Bought) else ""
    node = Node(kinds.get(count, tree.kind_of(condition)))
    if isinstance(condition, tree.SalesCondition):
        _fill_sales(node, condition)
    elif isinstance(condition, tree.TicketCondition):
        _fill_ticket(node, condition)
    else:
        _fill(node, condition)
    return node


def _fill(node: Node, condition: tree.Condition) -> None:
    """Set the fields of a condition on the customer."""
    match condition:
        case tree.OfAttribute():
            _fill_comparison(node, "", condition)
        case tree.Consent():
            node.set("state", condition.state)
            node.set("is", "yes" if condition.is_ else "no")
            node.set("sources", *condition.sources)
            node.set("stores", *condition.stores)
            if condition.since is not None:
                _fill_when(node, condition.since)
        case tree.Texts():
            node.set("got", "yes" if condition.got else "no")
            node.set("days", str(condition.days))
            node.set("journey", condition.journey or "")
        case tree.Created():
            _fill_when(node, condition.when)
        case tree.Named():
            node.set("named", "yes" if condition.is_ else "no")
        case tree.Country():
            node.set("countries", *condition.any_of)
        case tree.InSegment() | tree.ReceivedCampaign():
            node.set("segment" if isinstance(condition, tree.InSegment) else "campaign", condition.id)
            node.set("is", "yes" if condition.is_ else "no")
        case _:
            pass


def _fill_ticket(node: Node, condition: tree.TicketCondition) -> None:
    match condition:
        case tree.OfStore(any_of=stores):
            node.set("stores", *stores)
        case tree.OfCurrency(any_of=currencies):
            node.set("currencies", *currencies)
        case tree.OfAmount(at_least_cents=low, at_most_cents=high):
            _fill_bounds(node, _money_text(low), _money_text(high))
        case tree.OfProduct(any_of=products, property=compared):
            node.set("products", *products)
            if compared is not None:
                _fill_comparison(node, "p", compared)


def _fill_sales(node: Node, condition: tree.SalesCondition) -> None:
    node.set("stores", *condition.stores)
    node.set("products", *condition.products)
    if condition.property is not None:
        _fill_comparison(node, "p", condition.property)
    if isinstance(condition, tree.FirstPurchase | tree.LastPurchase):
        _fill_when(node, condition.when)
        return
    _fill_window(node, condition.window)
    if isinstance(condition, tree.Spend | tree.TicketValue):
        node.set("currency", condition.currency)
        low, high = (_money_text(limit) for limit in (condition.at_least_cents, condition.at_most_cents))
    else:
        low, high = (_quantity_text(limit) for limit in (condition.at_least, condition.at_most))
    _fill_bounds(node, low, high)
    if not isinstance(condition, tree.TicketValue) and condition.none:
        node.set("bound", "none")


def _fill_bounds(node: Node, low: str | None, high: str | None) -> None:
    bound = "between" if low and high else "at_most" if high else "at_least"
    node.set("bound", bound)
    node.set("low", low or ("1" if bound == "at_least" else ""))
    node.set("high", high or "")


def _money_text(cents: int | None) -> str | None:
    return None if cents is None else f"{Decimal(cents) / CENTS_PER_UNIT:.2f}"


def _quantity_text(quantity: float | None) -> str | None:
    """The quantity as text with all digits, without an exponent."""
    return None if quantity is None else f"{Decimal(repr(quantity)):f}".removesuffix(".0")


def _fill_window(node: Node, window: tree.Window | None) -> None:
    if window is None:
        node.set("window", "ever")
    elif window.last_days is not None:
        node.set("window", "last")
        node.set("days", str(window.last_days))
    else:
        node.set("window", "between")
        node.set("from", "" if window.from_ is None else window.from_.isoformat())
        node.set("to", "" if window.to is None else window.to.isoformat())


def _fill_comparison(node: Node, prefix: str, compared: tree.ValueComparison) -> None:
    node.set(f"{prefix}key", compared.key)
    node.set(f"{prefix}was", compared.key)
    node.set(f"{prefix}cmp", compared.comparison)
    if compared.value is not None:
        _fill_exactly(node, f"{prefix}value", compared.value)
    if compared.comparison == "between" and len(compared.values) == BETWEEN_VALUES:
        _fill_exactly(node, f"{prefix}low", compared.values[0])
        _fill_exactly(node, f"{prefix}high", compared.values[1])
    else:
        node.set(f"{prefix}values", *compared.values)
    if compared.days is not None:
        node.set(f"{prefix}days", str(compared.days))
    node.set(f"{prefix}without", "yes" if compared.without_value else "no")


def _fill_exactly(node: Node, name: str, value: str) -> None:
    """Set a field; a value with outer spaces, which the visible field loses, is also set in a hidden field."""
    node.set(name, value)
    if value != value.strip():
        node.set(f"{SAVED}{name}", value)


def _fill_when(node: Node, when: tree.When) -> None:
    node.set("when_cmp", when.comparison)
    for name, day in (("when_date", when.date), ("when_from", when.from_), ("when_to", when.to)):
        node.set(name, "" if day is None else day.isoformat())
    node.set("when_days", "" if when.days is None else str(when.days))
    node.set("when_without", "yes" if when.without_value else "no")
