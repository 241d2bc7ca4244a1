"""Definitions with every kind of step and condition, as files say them."""

from typing import Any

_PROPERTY = {"key": "colour", "comparison": "is_not", "value": "red", "without_value": True}
_BETWEEN = {"comparison": "between", "from": "2026-01-01", "to": "2026-02-01"}
_SINCE = {"comparison": "after", "date": "2026-01-31"}
_WINDOW = {"from": "2026-01-01", "to": "2026-02-01"}

OF_CUSTOMERS: tuple[dict[str, Any], ...] = (
    {"type": "attribute", "key": "size", "comparison": "is", "value": "12"},
    {"type": "attribute", "key": "id", "comparison": "none_of", "values": ["12", "13"], "without_value": True},
    {"type": "attribute", "key": "code", "comparison": "is_set"},
    {"type": "consent", "state": "withdrawn", "is": False, "sources": ["WEBSITE"], "stores": ["S"], "since": _SINCE},
    {
        "type": "bought",
        "count": "articles",
        "at_least": 2,
        "at_most": 9,
        "window": _WINDOW,
        "stores": ["S"],
        "products": ["P"],
        "property": _PROPERTY,
    },
    {"type": "bought", "none": True, "window": {"last_days": 30}},
    {"type": "bought", "count": "days", "at_least": 2, "window": {"last_days": 730}},
    {"type": "returned", "at_least": 1, "at_most": 3, "window": {"last_days": 30}},
    {"type": "spend", "currency": "EUR", "at_least_cents": 100, "at_most_cents": 900, "window": {"last_days": 30}},
    {"type": "ticket_value", "currency": "EUR", "at_least_cents": 100, "at_most_cents": 900},
    {"type": "first_purchase", "when": _BETWEEN},
    {"type": "last_purchase", "when": {"comparison": "not_in_last_days", "days": 60, "without_value": True}},
    {"type": "texts", "days": 7, "got": False},
    {"type": "created", "when": {"comparison": "in_last_days", "days": 30}},
    {"type": "named", "is": False},
    {"type": "country", "any_of": ["FR"]},
)
OF_TICKETS: tuple[dict[str, Any], ...] = (
    {"type": "store", "any_of": ["S"]},
    {"type": "amount", "at_least_cents": 100, "at_most_cents": 900},
    {"type": "currency", "any_of": ["EUR"]},
    {"type": "product", "any_of": ["P"], "property": _PROPERTY},
)


def every_condition(*more: dict[str, Any]) -> dict[str, Any]:
    groups = [{"type": "any", "of": [*OF_CUSTOMERS, *more]}, {"type": "none", "of": [OF_CUSTOMERS[0]]}]
    return {"type": "all", "of": groups}


EVERY_STEP: tuple[dict[str, Any], ...] = (
    {"do": "wait", "id": "first", "minutes": 1, "hours": 2, "days": 3},
    {"do": "wait_until", "time": "10:00", "weekdays": ["monday", "friday"]},
    {
        "do": "wait_for_purchase",
        "hours": 1,
        "days": 2,
        "then": [{"do": "send_text", "text": "Thank you"}],
        "else": [{"do": "set_attribute", "key": "asked", "value": "yes"}],
    },
    {"do": "branch", "if": every_condition(*OF_TICKETS), "then": [{"do": "exit"}], "else": [{"do": "wait", "days": 1}]},
    {"do": "split", "percent": 30, "then": [{"do": "wait", "days": 1}], "else": [{"do": "exit"}]},
)
