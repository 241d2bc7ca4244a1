"""`POST /v1/sales-events/batch` (an addition): up to 500 sales in one call, each answered in its place."""

from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api


def test_each_item_is_answered_in_its_place_as_the_single_call_would_be(api: Api, store: dict[str, Any]) -> None:
    customer = samples.unique("customer")
    good = samples.sale(store["id"], profile_id=customer)
    items = [
        good,
        samples.sale("nowhere"),
        samples.without(samples.sale(store["id"]), "external_id"),
        samples.sale(store["id"], profile_id="prof_x"),
        good,
        samples.sale(store["id"], profile_id=customer, occurred_at=samples.ago(days=8)),
        samples.sale(store["id"]),
        None,
        samples.sale(store["id"], occurred_at=samples.ahead(hours=1)),
    ]
    answer = api.post("/v1/sales-events/batch", {"items": items})
    results = answer.json()["results"]
    assert answer.status == 200
    assert [result["status"] for result in results] == [201, 404, 400, 404, 200, 201, 201, 400, 400]
    states = {place: results[place]["body"]["automation"]["state"] for place in (0, 4, 5, 6)}
    assert states == {0: "eligible", 4: "not_applicable", 5: "stale_fact", 6: "not_applicable"}
    assert results[0]["body"]["sales_event"] == results[4]["body"]["sales_event"]
    codes = [results[place]["body"]["code"] for place in (1, 2, 3, 7, 8)]
    assert codes == [
        "STORE_NOT_FOUND",
        "VALIDATION_ERROR",
        "PROFILE_NOT_FOUND",
        "VALIDATION_ERROR",
        "OCCURRED_AT_IN_FUTURE",
    ]
    assert len(api.pages("/v1/sales-events")) == 3


def test_a_collision_is_marked_in_its_own_result_and_in_no_other(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"])
    items = [body, {**body, "total_amount_cents": 1}, body, samples.sale(store["id"]), samples.sale("nowhere")]
    results = api.post("/v1/sales-events/batch", {"items": items}).json()["results"]
    assert [result["status"] for result in results] == [201, 200, 200, 201, 404]
    assert [result.get("payload_mismatch") for result in results] == [None, True, None, None, None]


def test_500_sales_are_taken_in_one_call_and_again_without_effect(api: Api, store: dict[str, Any]) -> None:
    items = [samples.sale(store["id"], line_items=[{"quantity": 1, "total_price_cents": 1}]) for _ in range(500)]
    first = api.post("/v1/sales-events/batch", {"items": items}).json()["results"]
    again = api.post("/v1/sales-events/batch", {"items": items}).json()["results"]
    assert [result["status"] for result in first] == [201] * 500
    assert [result["status"] for result in again] == [200] * 500


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_depth_counts_from_the_item_whatever_the_other_items_are(api: Api, store: dict[str, Any]) -> None:
    """The ticket itself is a level."""
    for levels, status in ((31, 201), (32, 400)):
        for others in ([], [{"unknown": 1}]):
            tickets = [samples.sale(store["external_id"], metadata=nested(levels)), *others]
            assert api.post("/v1/sales-events", tickets[0]).status == status
            again = samples.sale(store["external_id"], metadata=nested(levels))
            results = api.post("/v1/sales-events/batch", {"items": [again, *others]}).json()["results"]
            assert results[0]["status"] == status


BAD_IN_AN_ITEM = {
    "U+0000": b'"\\u0000"',
    "a lone surrogate": b'"\\ud800"',
    "more than a double": b"1e400",
    "a huge integer": b"9" * 401,
    "depth 40": b"[" * 40 + b"]" * 40,
    "depth 100,000": b"[" * 100_000 + b"]" * 100_000,
    "depth 50,000 of objects": b'{"a":{},"b":' * 50_000 + b"1" + b"}" * 50_000,
}


@pytest.mark.parametrize("bad", BAD_IN_AN_ITEM.values(), ids=BAD_IN_AN_ITEM.keys())
def test_an_item_that_would_be_refused_alone_is_refused_at_its_place(
    api: Api, store: dict[str, Any], bad: bytes
) -> None:
    for path, sound in (("/v1/sales-events", lambda: samples.sale(store["id"])), ("/v1/profiles", samples.profile)):
        guilty = samples.json_bytes(sound())[:-1] + b',"unknown":' + bad + b"}"
        alone = api.post(path, content=guilty)
        first, last = samples.json_bytes(sound()), samples.json_bytes(sound())
        answer = api.post(f"{path}/batch", content=b'{"items":[' + b",".join([first, guilty, last]) + b"]}")
        results = answer.json()["results"]
        assert [result["status"] for result in results] == [201, 400, 201]
        assert results[1]["body"]["code"] == alone.code


@pytest.mark.parametrize("hidden", [b'"\xff"', b'"\\u0000"', b"1e400", b"[" * 40 + b"]" * 40], ids=repr)
@pytest.mark.parametrize("name", [b'"items"', b'"it\\u0065ms"'])
def test_a_list_that_another_replaces_is_checked_too(
    api: Api, store: dict[str, Any], hidden: bytes, name: bytes
) -> None:
    good = samples.json_bytes([samples.sale(store["external_id"])])
    body = b"{" + name + b":[" + hidden + b'],"items":' + good + b"}"
    assert api.post("/v1/sales-events/batch", content=body).status == 400
