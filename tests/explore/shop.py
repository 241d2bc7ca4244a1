"""A little shop behind the pages: one store, one customer with consent, a ticket, a return and a collision."""

from dataclasses import dataclass
from typing import Any

from tests.support import samples
from tests.support.client import Api


@dataclass(frozen=True)
class Shop:
    api: Api
    store: dict[str, Any]
    customer: dict[str, Any]
    ticket: dict[str, Any]
    number: dict[str, Any]


def open_shop(api: Api, *, text: str = "Odile", code: str = "") -> Shop:
    """`text` stands in every free text, `code` in every id of the caller's own."""
    store_id, profile_id, ticket_id = (f"{samples.unique(kind)}{code}" for kind in ("S", "C", "T"))
    address = samples.address(address_line1=text, locality=text)
    store = api.post("/v1/stores", {"external_id": store_id, "name": f"Lyon {text}", "address": address}).json()
    customer = api.post(
        "/v1/profiles",
        {
            "external_id": profile_id,
            "first_name": text,
            "last_name": f"Fictive {text}",
            "phone_number": samples.phone(),
            "attributes": {f"note{code}": text, "newsletter": "true", "size": "38½"},
        },
    ).json()
    line = samples.line(
        external_id=f"L{code}", product={"external_id": text, "name": text, "properties": {f"k{code}": text}}
    )
    body = {
        **samples.sale(store_id),
        "external_id": ticket_id,
        "profile_id": profile_id,
        "source": text,
        "metadata": {"m": text},
        "loyalty": {"card": text},
        "line_items": [line],
    }
    ticket = api.post("/v1/sales-events", body).json()["sales_event"]
    api.post("/v1/sales-events", {**body, "total_amount_cents": 1, "metadata": {"m": f"other {text}"}})
    api.post("/v1/sales-events", {**body, "external_id": f"{ticket_id}-R", "type": "RETURN"})
    consent = {
        **samples.opt_in(),
        "phone_number": customer["phone_number"],
        "profile_id": profile_id,
        "consent_proof": {"terms_url": "https://shop.example/t", "terms_version": text, "source_text": text},
    }
    number = api.post("/v1/subscriptions/opt-in", consent).json()["subscription"]
    return Shop(api, store, customer, ticket, number)
