"""`GET /v1/sales-events` (specification 4.10) and its filters."""

from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "purchase"),
        ("type", "REFUND"),
        ("currency", "eur"),
        ("currency", "JPY"),
        ("occurred_from", "yesterday"),
        ("occurred_to", "2024-01-01"),
        ("created_from", "2024-01-01T00:00:00"),
        ("created_to", ""),
        ("external_id", ""),
        ("store_id", ""),
        ("profile_id", " x"),
        ("colour", "red"),
    ],
)
def test_it_refuses_a_filter_it_cannot_read(api: Api, name: str, value: str) -> None:
    answer = api.get("/v1/sales-events", **{name: value})
    assert answer.refused == (400, "VALIDATION_ERROR")
    assert answer.field_errors[0][0] == name


@pytest.mark.parametrize("external_id", ["%", "%s", "a%%b", "100%", "%(x)s", "a%2Fb", "'; --"])
def test_the_external_id_filter_takes_any_spelling(api: Api, store: dict[str, Any], external_id: str) -> None:
    api.post("/v1/sales-events", samples.sale(store["external_id"]))
    api.post("/v1/sales-events", samples.sale(store["external_id"], external_id=external_id))
    found = api.get("/v1/sales-events", external_id=external_id).json()["data"]
    assert [sale["external_id"] for sale in found] == [external_id]


def test_an_unknown_reference_in_a_filter_is_404(api: Api) -> None:
    assert api.get("/v1/sales-events", store_id="nowhere").refused == (404, "STORE_NOT_FOUND")
    assert api.get("/v1/sales-events", profile_id="nobody").refused == (404, "PROFILE_NOT_FOUND")
    assert api.get("/v1/sales-events", store_id="prof_x").refused == (404, "STORE_NOT_FOUND")


def test_it_lists_sales_in_the_order_they_were_recorded(api: Api, other_api: Api, store: dict[str, Any]) -> None:
    recorded = [_record(api, store["id"]) for _ in range(3)]
    assert api.pages("/v1/sales-events", limit=2) == recorded
    assert other_api.get("/v1/sales-events").json()["data"] == []


def test_it_filters_by_store_customer_type_currency_and_ticket(api: Api, store: dict[str, Any]) -> None:
    second = api.post("/v1/stores", samples.store()).json()
    plain = _record(api, store["id"])
    elsewhere = _record(api, second["id"])
    returned = _record(api, store["id"], type="RETURN")
    swiss = _record(api, store["id"], currency="CHF")
    customer = samples.unique("customer")
    known = _record(api, store["id"], profile_id=customer)
    for reference in (second["id"], second["external_id"]):
        assert api.pages("/v1/sales-events", store_id=reference) == [elsewhere]
    for reference in (customer, known["profile"]["id"]):
        assert api.pages("/v1/sales-events", profile_id=reference) == [known]
    assert api.pages("/v1/sales-events", type="RETURN") == [returned]
    assert api.pages("/v1/sales-events", currency="CHF") == [swiss]
    assert api.pages("/v1/sales-events", external_id=plain["external_id"]) == [plain]
    assert api.pages("/v1/sales-events", external_id="no such ticket") == []
    assert api.pages("/v1/sales-events", type="PURCHASE", currency="CHF", store_id=store["id"]) == [swiss]


def test_a_time_filter_takes_its_start_and_leaves_its_end(api: Api, store: dict[str, Any]) -> None:
    days = [f"2024-01-0{day}T00:00:00.000Z" for day in (3, 1, 2)]
    third, first, second = (_record(api, store["id"], occurred_at=day) for day in days)
    by_time = api.pages("/v1/sales-events", occurred_from="2024-01-01T00:00:00Z", limit=1)
    assert by_time == [first, second, third]
    assert api.pages("/v1/sales-events", occurred_to="2024-01-02T00:00:00Z") == [first]
    assert api.pages("/v1/sales-events", occurred_from="2024-01-02T01:00:00+01:00", limit=1) == [second, third]
    assert api.pages("/v1/sales-events", created_from=third["created_at"], limit=2) == [third, first, second]
    assert api.pages("/v1/sales-events", created_to=third["created_at"]) == []


@pytest.mark.parametrize("name", ["occurred", "created"])
def test_a_time_filter_reaches_from_the_first_to_the_last_time(api: Api, store: dict[str, Any], name: str) -> None:
    recorded = [_record(api, store["id"], occurred_at="0001-01-01T00:00:00Z")]
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"
    for others in ({}, {"type": "PURCHASE"}, {"store_id": store["id"]}):
        for times in ({"from": first}, {"to": last}, {"from": first, "to": last}):
            filters = {**others, **{f"{name}_{end}": time for end, time in times.items()}}
            assert api.pages("/v1/sales-events", **filters) == recorded, filters
        for times in ({"from": last}, {"to": first}, {"from": last, "to": first}):
            filters = {**others, **{f"{name}_{end}": time for end, time in times.items()}}
            assert api.pages("/v1/sales-events", **filters) == [], filters


def test_sales_of_one_instant_are_paged_without_loss(api: Api, store: dict[str, Any]) -> None:
    instant = "2024-01-01T00:00:00.000Z"
    recorded = [_record(api, store["id"], occurred_at=instant) for _ in range(4)]
    assert api.pages("/v1/sales-events", occurred_from=instant, limit=1) == recorded


def test_a_cursor_is_bound_to_its_filters(api: Api, store: dict[str, Any]) -> None:
    for _ in range(2):
        _record(api, store["id"])
    cursor = api.get("/v1/sales-events", limit=1, type="PURCHASE").json()["next_cursor"]
    assert api.get("/v1/sales-events", limit=1, type="PURCHASE", cursor=cursor).status == 200
    for filters in ({}, {"type": "RETURN"}, {"type": "PURCHASE", "currency": "EUR"}):
        assert api.get("/v1/sales-events", cursor=cursor, **filters).refused == (400, "INVALID_CURSOR")


def _record(api: Api, store_id: str, **changes: Any) -> dict[str, Any]:
    answer = api.post("/v1/sales-events", samples.sale(store_id, **changes))
    assert answer.status == 201, answer.body
    event: dict[str, Any] = answer.json()["sales_event"]
    return event
