"""Builds the benchmark's tickets for runners without wrk, with the shape of load/tickets.lua."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

# The same numbers as in load/tickets.lua.
STORES = 20
CUSTOMERS = 10_000
# Per organization, where there are many.
CUSTOMERS_OF_MANY = 500
NEW_CUSTOMERS_SHARE = 0.2
THREE_LINES_SHARE = 0.2
AGE_SECONDS_MAX = 172_800
NAMES = ("Linen shirt", "Wool jumper", "Denim jacket", "Cotton socks", "Leather belt", "Rain coat")
CATEGORIES = ("shirts", "knitwear", "jackets", "underwear", "accessories", "coats")


def stored_lines(count: int) -> list[dict[str, Any]]:
    """The lines as the table stores them: omitted fields are null."""
    return [{"unit": None} | _line(random.Random(number), number) for number in range(1, count + 1)]


def requests(count: int, *, run: str, key: str, host: str, distinct: bool = False) -> list[bytes]:
    """Complete HTTP requests, built before the clock starts; `distinct`: each of the next existing customer."""
    source = random.Random(run)
    return [
        _request(source, f"{run}-{number}", key=key, host=host, customer=f"C{number + 1:06d}" if distinct else None)
        for number in range(count)
    ]


def _request(source: random.Random, name: str, *, key: str, host: str, customer: str | None) -> bytes:
    ticket = _ticket(source, name)
    if customer is not None:
        ticket["profile_id"] = customer
    body = json.dumps(ticket, separators=(",", ":")).encode()
    head = (
        f"POST /v1/sales-events HTTP/1.1\r\nHost: {host}\r\nx-api-key: {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _ticket(source: random.Random, name: str) -> dict[str, Any]:
    store = f"S{source.randint(1, STORES):03d}"
    is_new = source.random() < NEW_CUSTOMERS_SHARE
    occurred_at = datetime.now(UTC) - timedelta(seconds=source.randint(60, AGE_SECONDS_MAX))
    count = 3 if source.random() < THREE_LINES_SHARE else 2
    return {
        "external_id": f"{store}:{name}",
        "type": "PURCHASE",
        "occurred_at": occurred_at.isoformat(timespec="milliseconds"),
        "store_id": store,
        "currency": "EUR",
        "total_amount_cents": source.randint(1000, 30000),
        "total_discount_cents": source.randint(0, 900),
        "total_tax_cents": source.randint(100, 5000),
        "profile_id": f"N{name}" if is_new else f"C{source.randint(1, CUSTOMERS):06d}",
        "source": "pos",
        "line_items": [_line(source, number) for number in range(1, count + 1)],
    }


def _line(source: random.Random, number: int) -> dict[str, Any]:
    kind, price = source.randrange(len(NAMES)), source.randint(500, 15000)
    return {
        "external_id": str(number),
        "product": {
            "external_id": f"SKU-{source.randint(1, 200_000):06d}",
            "name": NAMES[kind],
            "properties": {"category": CATEGORIES[kind], "color": "navy", "size": "M"},
        },
        "quantity": 1,
        "unit_price_cents": price,
        "total_price_cents": price,
        "discount_cents": 0,
        "tax_cents": price // 6,
    }
