"""Converts a condition to the fields of its form, and the fields to a condition, by the parts of the form.

The field `cmp` has the comparison, `was` the key for which the form was rendered, and `without` whether customers
without a value match. Fields of product properties have the prefix `p`, those of a day the prefix `when_`.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

import msgspec

from regulars.catalog.model import AttributeType
from regulars.conditions import tree
from regulars.conditions.check import BETWEEN_VALUES, Types
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE
from regulars.conditions.documents import describe_decode_error
from regulars.conditions.field_types import OfProperty, ValueComparison, When, Window
from regulars.conditions.forms import parts
from regulars.conditions.forms.catalog import FORMS_BY_KIND
from regulars.conditions.forms.node import MORE, SAVED, Node

Data = dict[str, Any]
T = TypeVar("T")

CENTS_PER_UNIT: Final = 100
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?")
_MONEY: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,2})?")
_WHOLE: Final = re.compile(r"[0-9]{1,7}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Types whose values are chosen from a list.
LISTED_TYPES: Final = frozenset({AttributeType.BOOLEAN, AttributeType.ENUM})


class IncompleteCondition(Exception):
    """The form lacks a value, or a value cannot be parsed; the message tells the user what to do."""


def fit_fields(node: Node, attributes: Types, properties: Types) -> None:
    """If the user changed the key, clear the values, select the first comparison that the type of the new key offers,
    and move the focus to its value."""
    for prefix, types in (("", attributes), ("p", properties)):
        key = node.get(f"{prefix}key")
        if key != node.get(f"{prefix}was"):
            for name in (
                f"{prefix}cmp",
                f"{prefix}values",
                f"{MORE}{prefix}values",
                f"{prefix}value",
                f"{SAVED}{prefix}value",
            ):
                node.set(name)
        if key not in types:
            continue
        declared, values = types[key]
        if not node.get(f"{prefix}cmp"):
            node.set(f"{prefix}cmp", COMPARISONS_BY_TYPE[declared][0])
        if key != node.get(f"{prefix}was"):
            node.focus = _first_field(prefix, node.get(f"{prefix}cmp"))
        # A select shows its first value, so that value is the default.
        if declared in LISTED_TYPES and node.get(f"{prefix}cmp") in ONE_VALUE and not node.get(f"{prefix}value"):
            node.set(f"{prefix}value", "true" if declared is AttributeType.BOOLEAN else next(iter(values), ""))


def _first_field(prefix: str, comparison: str) -> str:
    """The field in which the user fills in the value of a comparison."""
    if comparison in {"any_of", "none_of"}:
        return f"{MORE}{prefix}values"
    if comparison in ONE_VALUE:
        return f"{prefix}value"
    if comparison in OF_DAYS:
        return f"{prefix}days"
    return f"{prefix}low" if comparison == "between" else f"{prefix}cmp"


def condition_of(node: Node) -> tree.Condition:
    """Convert the fields of a node to a condition."""
    for name, search in node.searches.items():
        typed = node.get(f"{MORE}{name}")
        raise IncompleteCondition(search.message if not search.found else f"Choose what you mean by “{typed}”.")
    data = _data_of(node)
    try:
        return msgspec.convert(data, tree.Condition)  # type: ignore[no-any-return]  # a union is not a class
    except msgspec.ValidationError as error:
        place, message = describe_decode_error(str(error))
        raise IncompleteCondition(f"{place}: {message}" if place else message) from None


def _data_of(node: Node) -> Data:
    """The condition as JSON data."""
    form = FORMS_BY_KIND[node.kind]
    data: Data = {"type": form.kind, **form.fixed}
    for part in form.parts:
        data |= _read_part(node, part)
    return data


def node_of(condition: tree.Condition) -> Node:
    """Convert a condition to a node with its fields."""
    if isinstance(condition, tree.Group):
        return Node(tree.kind_of(condition), inner=[node_of(inner) for inner in condition.of])
    form = condition.form()
    node = Node(form.kind)
    values = {field.encode_name: getattr(condition, field.name) for field in msgspec.structs.fields(condition)}
    for part in form.parts:
        _write_part(node, part, condition, values)
    return node


def _read_part(node: Node, part: parts.Part) -> Data:  # noqa: C901, PLR0912  # a case for each part
    match part:
        case parts.Label():
            return {}
        case parts.YesNo():
            return {part.field: node.get(part.name, part.default) == "yes"}
        case parts.Choice():
            return {part.field: node.get(part.name, part.default)}
        case parts.ObjectChoice():
            return {part.field: _require(node.get(part.name), f"Choose a {part.noun}.")}
        case parts.PickedList():
            # Countries and currencies, whose codes are upper case.
            codes = [code.upper() for code in node.get_list(part.name)]
            return {part.field: _require(codes, f"Choose a {part.noun}.")}
        case parts.StoreList():
            return {part.field: _require(node.get_list(part.name), f"Choose a {part.noun}.")}
        case parts.Limits():
            return _read_limits(node, part)
        case parts.SalesWindow():
            return _without_none(window=_read_window(node, "window"))
        case parts.SalesFilter():
            products = {"stores": node.get_list("stores"), "products": node.get_list("products")}
            return {**products, **_without_none(property=_read_property(node, "p"))}
        case parts.Day():
            return {part.field: _read_when(node, "when", may_be_missing=part.never)}
        case parts.AttributeKey():
            return {"key": _require(node.get("key"), "Choose an attribute.")}
        case parts.AttributeComparison():
            return _read_comparison(node, "")
        case parts.TicketProduct():
            found = {"any_of": node.get_list("products"), **_without_none(property=_read_property(node, "p"))}
            return _require(found if any(found.values()) else {}, "Name products, or choose a property.")
        case parts.ConsentDetails():
            since = _read_when(node, "when") if node.get("when_cmp") else None
            lists = {"sources": node.get_list("sources"), "stores": node.get_list("stores")}
            return {**lists, **_without_none(since=since)}
        case parts.TextDetails():
            return {"days": _read_days(node, "days"), **_without_none(journey=node.get("journey") or None)}


def _write_part(  # noqa: C901, PLR0912  # a case for each part
    node: Node, part: parts.Part, condition: tree.Leaf, values: Mapping[str, Any]
) -> None:
    match part:
        case parts.Label():
            pass
        case parts.YesNo():
            node.set(part.name, "yes" if values[part.field] else "no")
        case parts.Choice() | parts.ObjectChoice():
            node.set(part.name, values[part.field])
        case parts.PickedList() | parts.StoreList():
            node.set(part.name, *values[part.field])
        case parts.Limits():
            _write_limits(node, part, values)
        case parts.SalesWindow():
            _write_window(node, "window", values["window"])
        case parts.SalesFilter():
            node.set("stores", *values["stores"])
            node.set("products", *values["products"])
            _write_property(node, "p", values["property"])
        case parts.Day():
            _write_when(node, "when", values[part.field])
        case parts.AttributeKey():
            node.set("key", values["key"])
            node.set("was", values["key"])
        case parts.AttributeComparison() if isinstance(condition, tree.OfAttribute):
            _write_comparison(node, "", condition)
        case parts.TicketProduct():
            node.set("products", *values["any_of"])
            _write_property(node, "p", values["property"])
        case parts.ConsentDetails():
            node.set("sources", *values["sources"])
            node.set("stores", *values["stores"])
            _write_when(node, "when", values["since"])
        case parts.TextDetails():
            node.set("days", str(values["days"]))
            node.set("journey", values["journey"] or "")


def _require(value: T, message: str) -> T:
    """The value, unless it is empty."""
    if not value:
        raise IncompleteCondition(message)
    return value


def _without_none(**values: Any) -> Data:
    return {name: value for name, value in values.items() if value is not None}


def _read_limits(node: Node, part: parts.Limits) -> Data:
    bound, data = node.get("bound", "at_least"), {}
    if bound == "none" and part.none:
        return {"none": True}
    if bound in {"at_least", "between"}:
        data[f"at_least{part.suffix}"] = _read_limit(node, "low", part.unit)
    if bound in {"at_most", "between"}:
        data[f"at_most{part.suffix}"] = _read_limit(node, "high", part.unit)
    return data


def _read_limit(node: Node, name: str, unit: parts.Unit) -> float:
    match unit:
        case "times" | "days":
            text = node.get(name, "1" if node.get("bound", "at_least") == "at_least" else "")
            return int(_match(text, _WHOLE, f"Fill in how many {unit}, as a whole number."))
        case "articles":
            return float(_match(node.get(name), _NUMBER, "Fill in how many articles, such as 2 or 0.5."))
        case "cents":
            text = _match(node.get(name), _MONEY, "Fill in an amount, such as 200 or 19.90.")
            return int(Decimal(text) * CENTS_PER_UNIT)


def _write_limits(node: Node, part: parts.Limits, values: Mapping[str, Any]) -> None:
    show = _show_money if part.unit == "cents" else _show_quantity
    limits = (values[f"{name}{part.suffix}"] for name in ("at_least", "at_most"))
    low, high = ("" if limit is None else show(limit) for limit in limits)
    bound = "between" if low and high else "at_most" if high else "at_least"
    node.set("bound", "none" if values.get("none") else bound)
    node.set("low", low or ("1" if bound == "at_least" else ""))
    node.set("high", high)


def _read_comparison(node: Node, prefix: str) -> Data:
    # If the key is unknown, the form offered no comparison. With any comparison, the check reports the unknown key.
    comparison = node.get(f"{prefix}cmp", "is_set")
    data: Data = {"comparison": comparison, **_read_value(node, prefix, comparison)}
    if comparison in NEGATIVE:
        data["without_value"] = node.get(f"{prefix}without", "no") == "yes"
    return data


def _read_value(node: Node, prefix: str, comparison: str) -> Data:
    """The value, values or days of the comparison."""
    if comparison in ONE_VALUE:
        value = node.get_exact(f"{prefix}value")
        is_stored = bool(node.fields.get(f"{SAVED}{prefix}value"))
        if not value and not is_stored:
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


def _write_comparison(node: Node, prefix: str, compared: ValueComparison) -> None:
    node.set(f"{prefix}cmp", compared.comparison)
    if compared.value is not None:
        _write_exactly(node, f"{prefix}value", compared.value)
    if compared.comparison == "between" and len(compared.values) == BETWEEN_VALUES:
        _write_exactly(node, f"{prefix}low", compared.values[0])
        _write_exactly(node, f"{prefix}high", compared.values[1])
    else:
        node.set(f"{prefix}values", *compared.values)
    if compared.days is not None:
        node.set(f"{prefix}days", str(compared.days))
    node.set(f"{prefix}without", "yes" if compared.without_value else "no")


def _write_exactly(node: Node, name: str, value: str) -> None:
    """Set a field. A stored value that is empty or has outer spaces, which the visible field loses, is also set in a
    hidden field."""
    node.set(name, value)
    if not value or value != value.strip():
        node.set(f"{SAVED}{name}", value)


def _read_property(node: Node, prefix: str) -> Data | None:
    key = node.get(f"{prefix}key")
    return {"key": key, **_read_comparison(node, prefix)} if key else None


def _write_property(node: Node, prefix: str, compared: OfProperty | None) -> None:
    if compared is not None:
        node.set(f"{prefix}key", compared.key)
        node.set(f"{prefix}was", compared.key)
        _write_comparison(node, prefix, compared)


def _read_when(node: Node, prefix: str, *, may_be_missing: bool = False) -> Data:
    comparison = node.get(f"{prefix}_cmp", "in_last_days")
    data: Data = {"comparison": comparison}
    if comparison in {"before", "after"}:
        data["date"] = _read_date(node, f"{prefix}_date")
    elif comparison == "between":
        data["from"], data["to"] = _read_date(node, f"{prefix}_from"), _read_date(node, f"{prefix}_to")
    else:
        data["days"] = _read_days(node, f"{prefix}_days")
    if may_be_missing and comparison == "not_in_last_days":
        data["without_value"] = node.get(f"{prefix}_without", "no") == "yes"
    return data


def _write_when(node: Node, prefix: str, when: When | None) -> None:
    if when is None:
        return
    node.set(f"{prefix}_cmp", when.comparison)
    for name, day in (("date", when.date), ("from", when.from_), ("to", when.to)):
        node.set(f"{prefix}_{name}", "" if day is None else day.isoformat())
    node.set(f"{prefix}_days", "" if when.days is None else str(when.days))
    node.set(f"{prefix}_without", "yes" if when.without_value else "no")


def _read_window(node: Node, name: str) -> Data | None:
    match node.get(name, "last"):
        case "last":
            return {"last_days": _read_days(node, "days")}
        case "between":
            return {"from": _read_date(node, "from"), "to": _read_date(node, "to")}
        case _:
            return None


def _write_window(node: Node, name: str, window: Window | None) -> None:
    if window is None:
        node.set(name, "ever")
    elif window.last_days is not None:
        node.set(name, "last")
        node.set("days", str(window.last_days))
    else:
        node.set(name, "between")
        node.set("from", "" if window.from_ is None else window.from_.isoformat())
        node.set("to", "" if window.to is None else window.to.isoformat())


def _read_days(node: Node, name: str) -> int:
    return int(_match(node.get(name), _WHOLE, "Fill in a whole number of days."))


def _read_date(node: Node, name: str) -> str:
    return _match(node.get(name), _DATE, "Fill in a date, such as 2026-11-15.")


def _match(text: str, pattern: re.Pattern[str], message: str) -> str:
    if not pattern.fullmatch(text):
        raise IncompleteCondition(message)
    return text


def _show_money(cents: int) -> str:
    return f"{Decimal(cents) / CENTS_PER_UNIT:.2f}"


def _show_quantity(quantity: float) -> str:
    """The quantity as text with all digits, without an exponent."""
    return f"{Decimal(repr(quantity)):f}".removesuffix(".0")
