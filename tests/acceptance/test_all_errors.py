"""A refusal lists every wrong field (an addition to section 7): in the order of the tables, in words for people."""

from typing import Any

from tests.support import samples
from tests.support.client import Api


def test_every_wrong_field_of_a_ticket_is_listed_in_the_order_of_the_table(api: Api, store: dict[str, Any]) -> None:
    lines = [
        samples.line(quantity=0, product={"properties": {"colour": []}}),
        {"unit": 5},
        samples.line(total_price_cents=1.5),
    ]
    body = samples.sale(
        store["id"], line_items=lines, currency="JPY", type="SALE", total_amount_cents=-1, metadata=7, profile_id=" x"
    )
    answer = api.post("/v1/sales-events", samples.without(body, "external_id", "occurred_at"))
    assert answer.field_errors == [
        ("external_id", "REQUIRED"),
        ("type", "NOT_ALLOWED"),
        ("occurred_at", "REQUIRED"),
        ("currency", "NOT_ALLOWED"),
        ("total_amount_cents", "OUT_OF_RANGE"),
        ("profile_id", "WHITE_SPACE"),
        ("metadata", "WRONG_TYPE"),
        ("line_items[0].product.properties.colour", "WRONG_TYPE"),
        ("line_items[0].quantity", "OUT_OF_RANGE"),
        ("line_items[1].quantity", "REQUIRED"),
        ("line_items[1].unit", "WRONG_TYPE"),
        ("line_items[1].total_price_cents", "REQUIRED"),
        ("line_items[2].total_price_cents", "WRONG_TYPE"),
    ]
    assert answer.json()["detail"] == "external_id is required. 12 more faults are listed in errors."
    words = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert words["currency"] == "It must be one of CHF, EUR, GBP, USD."
    assert words["line_items[1].unit"] == "It must be text."
    assert words["total_amount_cents"].startswith("It must be at least 0. A return has type RETURN")


def test_the_code_is_that_of_the_first_and_the_clock_speaks_last(api: Api, store: dict[str, Any]) -> None:
    future = samples.ahead(days=1)
    both = api.post("/v1/sales-events", samples.sale(store["id"], occurred_at=future, external_id="evt_1", currency=1))
    assert both.refused == (400, "RESERVED_EXTERNAL_ID")
    assert both.field_errors == [("external_id", "RESERVED"), ("currency", "NOT_ALLOWED")]
    consent = samples.opt_in(phone_number="0612345678", consented_at=future, consent_source="FAX")
    answer = api.post("/v1/subscriptions/opt-in", consent)
    assert answer.refused == (400, "INVALID_PHONE_NUMBER")
    assert answer.field_errors == [("phone_number", "INVALID_PHONE_NUMBER"), ("consent_source", "NOT_ALLOWED")]


def test_members_of_maps_and_of_objects_are_named(api: Api) -> None:
    profile = samples.profile(attributes={"size": 42, "colour": "red", "long": "x" * 2049, "new": True}, first_name=1)
    assert api.post("/v1/profiles", profile).field_errors == [
        ("first_name", "WRONG_TYPE"),
        ("attributes.size", "WRONG_TYPE"),
        ("attributes.long", "LENGTH"),
        ("attributes.new", "WRONG_TYPE"),
    ]
    store = samples.store(address={"locality": 7, "country_code": "XX"}, name=1)
    assert api.post("/v1/stores", store).field_errors == [
        ("name", "WRONG_TYPE"),
        ("address.address_line1", "REQUIRED"),
        ("address.postal_code", "REQUIRED"),
        ("address.locality", "WRONG_TYPE"),
        ("address.country_code", "NOT_ALLOWED"),
    ]
    consent = samples.opt_in(consent_proof={"terms_url": "ftp://x", "terms_version": 1})
    assert api.post("/v1/subscriptions/opt-in", consent).field_errors == [
        ("consent_proof.terms_url", "FORMAT"),
        ("consent_proof.terms_version", "WRONG_TYPE"),
    ]
    assert api.post("/v1/subscriptions/opt-out", {"reason": 1}).field_errors == [
        ("phone_number", "REQUIRED"),
        ("reason", "WRONG_TYPE"),
    ]


def test_a_forbidden_character_is_named_wherever_it_stands(api: Api) -> None:
    body = samples.profile(attributes={"note": "a\x00b"}, unknown=[{"deep": "\x00"}])
    [(field, code)] = api.post("/v1/profiles", body).field_errors
    assert (field, code) == ("attributes.note", "FORBIDDEN_CHARACTER")


def test_of_very_many_faults_twenty_are_listed(api: Api, store: dict[str, Any]) -> None:
    answer = api.post("/v1/sales-events", samples.sale(store["id"], line_items=[{}] * 1000))
    assert len(answer.field_errors) == 20
    assert "At least 20 more faults" in answer.json()["detail"]
