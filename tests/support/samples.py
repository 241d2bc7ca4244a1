"""Valid request bodies; each call returns new identifiers."""

import itertools
import json
import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any

_numbers = itertools.count(random.Random(os.getpid()).randrange(10**6))

DAY = timedelta(days=1)


def next_number() -> int:
    """A number that no other call in this process returns."""
    return next(_numbers)


def unique(prefix: str = "x") -> str:
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def now() -> datetime:
    return datetime.now(UTC)


def at(moment: datetime) -> str:
    """Formats a moment like the API."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago(**span: float) -> str:
    return at(now() - timedelta(**span))


def ahead(**span: float) -> str:
    return at(now() + timedelta(**span))


def phone() -> str:
    """A French mobile number that no other test uses."""
    return f"+336{(os.getpid() % 1000):03d}{next(_numbers) % 10**5:05d}"


def address(**changes: Any) -> dict[str, Any]:
    return {
        "address_line1": "12 rue de la Paix",
        "postal_code": "75002",
        "locality": "Paris",
        "country_code": "FR",
        **changes,
    }


def store(**changes: Any) -> dict[str, Any]:
    return {"external_id": unique("store"), "name": "Paris Opéra", "address": address(), **changes}


def profile(**changes: Any) -> dict[str, Any]:
    return {
        "external_id": unique("customer"),
        "phone_number": "+33612345678",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "attributes": {"loyalty_tier": "gold"},
        **changes,
    }


def line(**changes: Any) -> dict[str, Any]:
    return {
        "external_id": "L1",
        "product": {"external_id": "SKU-1", "name": "Scarf", "properties": {"colour": "red"}},
        "quantity": 1,
        "unit_price_cents": 4900,
        "total_price_cents": 4900,
        "tax_cents": 817,
        **changes,
    }


def sale(store_id: str, **changes: Any) -> dict[str, Any]:
    """An anonymous sale, one hour old."""
    return {
        "external_id": unique("ticket"),
        "type": "PURCHASE",
        "occurred_at": ago(hours=1),
        "store_id": store_id,
        "currency": "EUR",
        "total_amount_cents": 4900,
        "total_discount_cents": 0,
        "line_items": [line()],
        **changes,
    }


def proof(**changes: Any) -> dict[str, Any]:
    return {
        "terms_url": "https://shop.example/terms",
        "terms_version": "2026-01",
        "source_text": "I agree to receive news by SMS.",
        **changes,
    }


def opt_in(**changes: Any) -> dict[str, Any]:
    return {
        "phone_number": phone(),
        "consent_source": "LOYALTY_PROGRAM",
        "consented_at": ago(hours=1),
        "consent_proof": proof(),
        **changes,
    }


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


def json_bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
