"""Converts a condition to the fields of its form, and the fields to a condition.

`_FORMS` lists the values of each kind of condition, with their names in the form. The field `cmp` has the comparison,
`was` the key for which the form was rendered, and `without` whether customers without a value match. Fields of product
properties have the prefix `p`, those of a day the prefix `when_`.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from regulars.catalog.model import AttributeType
from regulars.conditions import tree
from regulars.conditions.check import BETWEEN_VALUES, Types
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE
from regulars.conditions.documents import describe_decode_error
from regulars.conditions.forms.draft import MORE, SAVED, Node

Data = dict[str, Any]

CENTS_PER_UNIT: Final = 100
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?")
_MONEY: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,2})?")
_WHOLE: Final = re.compile(r"[0-9]{1,7}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Types whose values are chosen from a list.
LISTED_TYPES: Final = frozenset({AttributeType.BOOLEAN, AttributeType.ENUM})
# The form offers each way of counting purchases as a separate kind of condition: the kind, with its `count`.
ARTICLES: Final = "articles"
PURCHASE_DAYS: Final = "purchase_days"
_COUNTS: Final = {ARTICLES: "articles", PURCHASE_DAYS: "days"}


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
    kind = node.kind
    if kind == "attribute":
        if not node.get("key"):
            raise IncompleteCondition("Choose an attribute.")
        return {"type": "attribute", **_read_comparison(node, "")}
    data: Data = {"type": "bought", "count": _COUNTS[kind]} if kind in _COUNTS else {"type": kind}
    for name, (form_name, codec) in _FORMS[kind].items():
        value = codec.read(node, form_name)
        if value is not None:
            data[name] = value
    if kind in _CHOICES and not (data.get("id") or data.get("any_of")):
        raise IncompleteCondition(f"Choose a {kind.removeprefix('received_')}.")
    if kind == "product" and not (data["any_of"] or "property" in data):
        raise IncompleteCondition("Name products, or choose a property.")
    return data if kind not in _UNITS else {**data, **_read_limits(node, _UNITS[kind])}


def node_of(condition: tree.Condition) -> Node:
    """Convert a condition to a node with its fields."""
    if isinstance(condition, tree.Group):
        return Node(tree.kind_of(condition), inner=[node_of(inner) for inner in condition.of])
    kinds = {count: kind for kind, count in _COUNTS.items()}
    count = condition.count if isinstance(condition, tree.Bought) else ""
    node = Node(kinds.get(count, tree.kind_of(condition)))
    if isinstance(condition, tree.OfAttribute):
        _write_comparison(node, "", condition)
        return node
    values = {field.encode_name: getattr(condition, field.name) for field in msgspec.structs.fields(condition)}
    for name, (form_name, codec) in _FORMS[node.kind].items():
        codec.write(node, form_name, values[name])
    if node.kind in _UNITS:
        _write_limits(node, _UNITS[node.kind], values)
    return node


def _read_limits(node: Node, unit: "_Unit") -> Data:
    bound, data = node.get("bound", "at_least"), {}
    if bound == "none" and unit.offers_none:
        return {"none": True}
    if bound in {"at_least", "between"}:
        data[f"at_least{unit.suffix}"] = unit.read(node, "low")
    if bound in {"at_most", "between"}:
        data[f"at_most{unit.suffix}"] = unit.read(node, "high")
    return data


def _write_limits(node: Node, unit: "_Unit", values: Data) -> None:
    limits = (values[f"{name}{unit.suffix}"] for name in ("at_least", "at_most"))
    low, high = ("" if limit is None else unit.show(limit) for limit in limits)
    bound = "between" if low and high else "at_most" if high else "at_least"
    node.set("bound", "none" if values.get("none") else bound)
    node.set("low", low or ("1" if bound == "at_least" else ""))
    node.set("high", high)


def _read_comparison(node: Node, prefix: str) -> Data:
    # If the key is unknown, the form offered no comparison. With any comparison, the check reports the unknown key.
    comparison = node.get(f"{prefix}cmp", "is_set")
    data: Data = {"key": node.get(f"{prefix}key"), "comparison": comparison, **_read_value(node, prefix, comparison)}
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


def _write_comparison(node: Node, prefix: str, compared: tree.ValueComparison) -> None:
    node.set(f"{prefix}key", compared.key)
    node.set(f"{prefix}was", compared.key)
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
    return _read_comparison(node, prefix) if node.get(f"{prefix}key") else None


def _write_property(node: Node, prefix: str, compared: tree.OfProperty | None) -> None:
    if compared is not None:
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


def _read_optional_when(node: Node, prefix: str) -> Data | None:
    return _read_when(node, prefix) if node.get(f"{prefix}_cmp") else None


def _write_when(node: Node, prefix: str, when: tree.When | None) -> None:
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


def _write_window(node: Node, name: str, window: tree.Window | None) -> None:
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


def _show_money(cents: int) -> str:
    return f"{Decimal(cents) / CENTS_PER_UNIT:.2f}"


def _show_quantity(quantity: float) -> str:
    """The quantity as text with all digits, without an exponent."""
    return f"{Decimal(repr(quantity)):f}".removesuffix(".0")


class _Codec(NamedTuple):
    """How a value of a condition is read from the form, and written to it; None means that there is no value."""

    read: Callable[[Node, str], Any]
    write: Callable[[Node, str, Any], None]


def _text(default: str = "") -> _Codec:
    return _Codec(
        lambda node, name: node.get(name, default) or None, lambda node, name, text: node.set(name, text or "")
    )


_YES_NO: Final = _Codec(
    lambda node, name: node.get(name, "yes") == "yes",
    lambda node, name, value: node.set(name, "yes" if value else "no"),
)
_LIST: Final = _Codec(Node.get_list, lambda node, name, values: node.set(name, *values))
_COUNTRIES: Final = _LIST._replace(read=lambda node, name: [code.upper() for code in node.get_list(name)])
_DAYS: Final = _Codec(_read_days, lambda node, name, days: node.set(name, str(days)))
_WHEN: Final = _Codec(_read_when, _write_when)
_PROPERTY: Final = ("p", _Codec(_read_property, _write_property))
_SALES_FILTER: Final = {"stores": ("stores", _LIST), "products": ("products", _LIST), "property": _PROPERTY}
_IN_WINDOW: Final = {**_SALES_FILTER, "window": ("window", _Codec(_read_window, _write_window))}
_AMOUNT_IN_WINDOW: Final = {**_IN_WINDOW, "currency": ("currency", _text("EUR"))}
_PURCHASE_DAY: Final = {
    **_SALES_FILTER,
    "when": ("when", _WHEN._replace(read=partial(_read_when, may_be_missing=True))),
}
# The values of each kind of condition: the name of each in the form, and its codec.
_FORMS: Final[dict[str, dict[str, tuple[str, _Codec]]]] = {
    "consent": {
        "state": ("state", _text("may_be_texted")),
        "is": ("is", _YES_NO),
        "sources": ("sources", _LIST),
        "stores": ("stores", _LIST),
        "since": ("when", _WHEN._replace(read=_read_optional_when)),
    },
    "texts": {"got": ("got", _YES_NO), "days": ("days", _DAYS), "journey": ("journey", _text())},
    "created": {"when": ("when", _WHEN)},
    "named": {"is": ("named", _YES_NO)},
    "country": {"any_of": ("countries", _COUNTRIES)},
    "segment": {"id": ("segment", _text()), "is": ("is", _YES_NO)},
    "received_campaign": {"id": ("campaign", _text()), "is": ("is", _YES_NO)},
    "bought": _IN_WINDOW,
    PURCHASE_DAYS: _IN_WINDOW,
    ARTICLES: _IN_WINDOW,
    "returned": _IN_WINDOW,
    "spend": _AMOUNT_IN_WINDOW,
    "ticket_value": _AMOUNT_IN_WINDOW,
    "first_purchase": _PURCHASE_DAY,
    "last_purchase": _PURCHASE_DAY,
    "store": {"any_of": ("stores", _LIST)},
    "currency": {"any_of": ("currencies", _LIST)},
    "amount": {},
    "product": {"any_of": ("products", _LIST), "property": _PROPERTY},
}
# Kinds that are incomplete until the user has chosen an object or at least one value.
_CHOICES: Final = frozenset({"country", "segment", "received_campaign", "store", "currency"})


class _Unit(NamedTuple):
    """What limits are counted in: how a limit is read and shown, and how its name in the condition ends."""

    read: Callable[[Node, str], float]
    show: Callable[[Any], str]
    suffix: str = ""
    # Whether the form also offers none at all.
    offers_none: bool = True


_TIMES: Final = _Unit(_read_times, _show_quantity)
_SPENT: Final = _Unit(_read_cents, _show_money, "_cents")
_TICKET_AMOUNT: Final = _SPENT._replace(offers_none=False)
_UNITS: Final = {
    "bought": _TIMES,
    PURCHASE_DAYS: _TIMES,
    ARTICLES: _Unit(_read_quantity, _show_quantity),
    "returned": _TIMES,
    "spend": _SPENT,
    "ticket_value": _TICKET_AMOUNT,
    "amount": _TICKET_AMOUNT,
}
