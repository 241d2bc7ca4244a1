"""`POST /v1/sales-events` (specification 4.9, 2.6): refusals, then the good path."""

import json
from decimal import Decimal
from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api


def test_stores_are_never_created_by_a_sale(api: Api) -> None:
    sale = samples.sale("nowhere", profile_id=samples.unique())
    assert api.post("/v1/sales-events", sale).refused == (404, "STORE_NOT_FOUND")
    assert api.get("/v1/stores/nowhere").status == 404
    assert api.get(f"/v1/profiles/{sale['profile_id']}").status == 404
    assert api.get(f"/v1/sales-events/{sale['external_id']}").status == 404


def test_a_register_may_run_half_a_minute_fast(api: Api, store: dict[str, Any]) -> None:
    fast = samples.sale(store["id"], occurred_at=samples.ahead(seconds=20))
    assert api.post("/v1/sales-events", fast).status == 201
    faster = samples.sale(store["id"], occurred_at=samples.ahead(seconds=45))
    assert api.post("/v1/sales-events", faster).refused == (400, "OCCURRED_AT_IN_FUTURE")


def test_it_records_a_sale_and_shows_every_field(api: Api, store: dict[str, Any]) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    body = samples.sale(store["external_id"], profile_id=profile["external_id"], source="till-7")
    answer = api.post("/v1/sales-events", body)
    event = answer.json()["sales_event"]
    assert answer.status == 201
    assert answer.json()["automation"] == {"state": "eligible"}
    assert event["id"].startswith("evt_")
    assert event == {
        "id": event["id"],
        "external_id": body["external_id"],
        "type": "PURCHASE",
        "occurred_at": body["occurred_at"],
        "store": {"id": store["id"], "external_id": store["external_id"]},
        "profile": {"id": profile["id"], "external_id": profile["external_id"]},
        "currency": "EUR",
        "total_amount_cents": 4900,
        "total_discount_cents": 0,
        "total_tax_cents": None,
        "loyalty": None,
        "payments": None,
        "metadata": None,
        "source": "till-7",
        "line_items": [{**body["line_items"][0], "unit": None, "discount_cents": None}],
        "created_at": event["created_at"],
    }


def test_what_a_line_leaves_out_is_null_and_properties_are_empty(api: Api, store: dict[str, Any]) -> None:
    lines = [{"quantity": 2, "total_price_cents": -500}, {"quantity": 1, "total_price_cents": 1, "product": {}}]
    event = api.post("/v1/sales-events", samples.sale(store["id"], line_items=lines)).json()["sales_event"]
    empty = {"external_id": None, "unit": None, "unit_price_cents": None, "discount_cents": None, "tax_cents": None}
    product = {"external_id": None, "name": None, "properties": {}}
    assert event["line_items"] == [
        {**empty, "product": None, "quantity": 2, "total_price_cents": -500},
        {**empty, "product": product, "quantity": 1, "total_price_cents": 1},
    ]


def test_every_spelling_of_iso_8601_is_one_moment_in_tickets_and_filters(api: Api, store: dict[str, Any]) -> None:
    spellings = (
        "2024-05-01T14:30+02:00",
        "2024-05-01T14:30:00,000+0200",
        "2024-05-01T14:30:00+02",
        "20240501T123000Z",
        "2024-05-01T12:29:60-00",
    )
    shown = [
        api.post("/v1/sales-events", samples.sale(store["id"], occurred_at=sent)).json()["sales_event"]["occurred_at"]
        for sent in spellings
    ]
    assert shown == ["2024-05-01T12:30:00.000Z"] * 4 + ["2024-05-01T12:29:59.999Z"]
    for sent in spellings[:4]:
        assert len(api.get("/v1/sales-events", occurred_from=sent).json()["data"]) == 4
    assert len(api.get("/v1/sales-events", occurred_to="2024-04-30T24:00Z").json()["data"]) == 0


def test_amounts_may_be_zero_and_line_amounts_negative(api: Api, store: dict[str, Any]) -> None:
    line = samples.line(total_price_cents=-100, unit_price_cents=-100, discount_cents=-5, tax_cents=-17)
    sale = samples.sale(store["id"], total_amount_cents=0, total_tax_cents=-3, line_items=[line])
    assert api.post("/v1/sales-events", sale).status == 201


def test_free_objects_come_back_as_they_were_sent(api: Api, store: dict[str, Any]) -> None:
    text = b'{"z":1.10,"a":[1e2,{"n":null}],"\\u00e9":"\xc3\xa9"}'
    sale = samples.sale(store["id"], payments=[{"method": "CARD"}], loyalty={"points": 3})
    content = b'{"metadata":' + text + b"," + _encoded(sale)[1:]
    answer = api.post("/v1/sales-events", content=content)
    assert answer.status == 201
    assert b'"metadata":' + text in answer.body
    assert answer.json()["sales_event"]["payments"] == [{"method": "CARD"}]
    assert b'"metadata":' + text in api.get(f"/v1/sales-events/{sale['external_id']}").body


def test_a_product_has_at_most_50_properties_and_4_kib(api: Api, store: dict[str, Any]) -> None:
    def with_properties(properties: dict[str, Any]) -> dict[str, Any]:
        return samples.sale(store["id"], line_items=[samples.line(product={"properties": properties})])

    fifty = {f"k{number}": number for number in range(50)}
    assert api.post("/v1/sales-events", with_properties(fifty)).status == 201
    full = {"k": "é" * ((4096 - len('{"k":""}')) // 2)}
    assert api.post("/v1/sales-events", with_properties(full)).status == 201
    for bad in ({**fifty, "one_more": 1}, {"k": full["k"] + "x"}, {"k": {}}, {"k": []}, {"k": None}):
        assert api.post("/v1/sales-events", with_properties(bad)).refused == (400, "VALIDATION_ERROR")


def test_a_return_never_changes_the_purchase(api: Api, store: dict[str, Any]) -> None:
    purchase = api.post("/v1/sales-events", samples.sale(store["id"])).json()["sales_event"]
    returned = api.post("/v1/sales-events", samples.sale(store["id"], type="RETURN")).json()["sales_event"]
    assert returned["type"] == "RETURN"
    assert api.get(f"/v1/sales-events/{purchase['id']}").json() == purchase


def test_a_thousand_lines_are_taken_and_one_more_is_not(api: Api, store: dict[str, Any]) -> None:
    lines = [{"quantity": 1, "total_price_cents": 1}] * 1000
    assert api.post("/v1/sales-events", samples.sale(store["id"], line_items=lines)).status == 201
    answer = api.post("/v1/sales-events", samples.sale(store["id"], line_items=[*lines, lines[0]]))
    assert answer.refused == (400, "VALIDATION_ERROR")


def test_reserved_prefixes_are_allowed_in_skus_and_line_codes(api: Api, store: dict[str, Any]) -> None:
    line = samples.line(external_id="evt_1", product={"external_id": "prof_1"})
    assert api.post("/v1/sales-events", samples.sale(store["id"], line_items=[line])).status == 201


def _encoded(value: object) -> bytes:
    return samples.json_bytes(value)


def test_numbers_in_properties_come_back_as_they_were_sent(api: Api, store: dict[str, Any]) -> None:
    numbers = (
        "123456789012345678",
        "-" + "9" * 400,
        "1.10",
        "0.12345678901234567890123",
        "1e2",
        "12345678901234567890.5",
    )
    for number in numbers:
        sale = samples.sale(store["id"], line_items=[samples.line(product={"properties": {"n": "N"}})])
        sent = json.dumps(sale).replace('"N"', number).encode()
        answer = api.post("/v1/sales-events", content=sent)
        assert answer.status == 201, answer.body
        assert b'"properties":{"n":%b}' % number.encode() in answer.body
        assert b'"properties":{"n":%b}' % number.encode() in api.get(f"/v1/sales-events/{sale['external_id']}").body
        assert "x-payload-mismatch" not in api.post("/v1/sales-events", content=sent).headers
    for number in ("1e400", "9" * 401):
        sale = samples.sale(store["id"], line_items=[samples.line(product={"properties": {"n": "N"}})])
        assert api.post("/v1/sales-events", content=json.dumps(sale).replace('"N"', number).encode()).status == 400


def test_an_amount_with_an_exponent_too_large_to_compute_is_no_whole_number(api: Api, store: dict[str, Any]) -> None:
    body = samples.json_bytes(samples.sale(store["id"], total_amount_cents=123456789))
    for spelled in (b"1e-99999999999999999999", b"-1e-99999999999999999999", b"1e-400"):
        answer = api.raw(
            "POST",
            "/v1/sales-events",
            headers=[(b"Content-Type", b"application/json")],
            body=body.replace(b"123456789", spelled),
        )
        assert (answer.status, answer.json()["errors"][0]["field"]) == (400, "total_amount_cents"), spelled


def test_an_amount_may_be_written_like_a_fraction_if_it_is_whole(api: Api, store: dict[str, Any]) -> None:
    line = samples.line(total_price_cents=4990.0, tax_cents=-0.0, unit_price_cents=1e2, product={"name": "x"})
    sale = samples.sale(store["id"], total_amount_cents=4990.0, total_tax_cents=-1e1, line_items=[line])
    event = api.post("/v1/sales-events", sale).json()["sales_event"]
    assert (event["total_amount_cents"], event["total_tax_cents"]) == (4990, -10)
    assert {name: event["line_items"][0][name] for name in ("total_price_cents", "tax_cents", "unit_price_cents")} == {
        "total_price_cents": 4990,
        "tax_cents": 0,
        "unit_price_cents": 100,
    }
    stored = api.get(f"/v1/sales-events/{sale['external_id']}").body
    assert b'"total_price_cents":4990,' in stored
    assert b'"tax_cents":0}' in stored
    for amount in ("100.00000000000000000001", "1e16", "1.5", "9007199254740991.4"):
        body = json.dumps({**sale, "external_id": samples.unique(), "total_amount_cents": "N"}).replace('"N"', amount)
        refused = api.post("/v1/sales-events", content=body.encode())
        assert refused.refused == (400, "VALIDATION_ERROR")
        assert [error["field"] for error in refused.json()["errors"]] == ["total_amount_cents"]


def test_an_empty_list_is_an_empty_map_of_properties(api: Api, store: dict[str, Any]) -> None:
    sale = samples.sale(store["id"], line_items=[samples.line(product={"properties": []})])
    answer = api.post("/v1/sales-events", sale, is_described=False)
    assert answer.json()["sales_event"]["line_items"][0]["product"]["properties"] == {}
    bad = samples.sale(store["id"], line_items=[samples.line(product={"properties": [1]})])
    [error] = api.post("/v1/sales-events", bad).json()["errors"]
    assert error["message"] == "It must be an object."


def test_null_is_no_property(api: Api, store: dict[str, Any]) -> None:
    sale = samples.sale(store["id"], line_items=[samples.line(product={"properties": {"k": None}})])
    [error] = api.post("/v1/sales-events", sale).json()["errors"]
    assert (error["field"], error["code"]) == ("line_items[0].product.properties.k", "WRONG_TYPE")
    assert error["message"].startswith("null is no scalar")


def test_null_properties_are_the_same_as_none(api: Api, store: dict[str, Any]) -> None:
    lines = [samples.line(product={"external_id": "SKU-1", "properties": None})]
    answer = api.post("/v1/sales-events", samples.sale(store["external_id"], line_items=lines))
    assert answer.status == 201
    assert answer.json()["sales_event"]["line_items"][0]["product"]["properties"] == {}


@pytest.mark.parametrize(
    "quantity",
    [
        "0.30000000000000000000001",
        "1.00000000000000000001",
        "100000000.00000000001",
        "1.00000000000000000001e1",
        "10000000000000001e-16",
        "0.300000000000000040",
        "3.0000000000000004e-1",
        "1000000000000000.1e-10",
    ],
)
def test_a_quantity_with_more_digits_than_a_double_keeps_is_refused(
    api: Api, store: dict[str, Any], quantity: str
) -> None:
    body = samples.json_bytes(samples.sale(store["external_id"])).replace(
        b'"quantity":1', b'"quantity":' + quantity.encode()
    )
    answer = api.post("/v1/sales-events", content=body)
    assert answer.refused == (400, "VALIDATION_ERROR")
    assert answer.field_errors == [("line_items[0].quantity", "TOO_PRECISE")]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("0.30000000000000004", 0.3),
        ("-1.1500000000000001", -1.15),
        ("2.9999999999999996", 3.0),
        ("123456789.12345678", 123456789.123457),
        ("1.2345678901234568e-05", 1.23456789012346e-05),
    ],
)
def test_what_a_double_made_of_a_quantity_is_rounded_away(
    api: Api, store: dict[str, Any], sent: str, stored: float
) -> None:
    """Whatever else is in the ticket, and in a batch too."""
    for more in ({}, {"unknown": 1}, {"metadata": {"a": 1}}):
        sale = samples.json_bytes(samples.sale(store["external_id"], **more))
        body = sale.replace(b'"quantity":1', b'"quantity":' + sent.encode())
        answer = api.post("/v1/sales-events", content=body)
        assert answer.json()["sales_event"]["line_items"][0]["quantity"] == stored
        again = api.post("/v1/sales-events/batch", content=b'{"items":[' + body + b"]}").json()["results"][0]
        assert (again["status"], again.get("payload_mismatch")) == (200, None)


def test_a_quantity_that_rounds_to_the_limit_is_refused(api: Api, store: dict[str, Any]) -> None:
    sale = samples.json_bytes(samples.sale(store["external_id"]))
    body = sale.replace(b'"quantity":1', b'"quantity":999999999.9999999')
    assert api.post("/v1/sales-events", content=body).field_errors == [("line_items[0].quantity", "OUT_OF_RANGE")]


@pytest.mark.parametrize(
    "quantity", ["0.755", "0.1234567891", "12345678.1234567", "1.500000000000000000000", "1e-7", "-2", "999999999"]
)
def test_a_quantity_comes_back_equal_however_it_is_spelled(api: Api, store: dict[str, Any], quantity: str) -> None:
    body = samples.json_bytes(samples.sale(store["external_id"])).replace(
        b'"quantity":1', b'"quantity":' + quantity.encode()
    )
    answer = api.post("/v1/sales-events", content=body)
    assert answer.status == 201
    assert Decimal(repr(answer.json()["sales_event"]["line_items"][0]["quantity"])) == Decimal(quantity)
