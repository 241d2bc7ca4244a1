"""A sale is recorded once (specification 4.9): duplicates, collisions and light profiles."""

from typing import Any

from tests.support import samples
from tests.support.client import Api
from tests.support.server import Server

MISMATCH = "x-payload-mismatch"


def test_a_known_ticket_answers_200_with_the_first_sale(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"], profile_id=samples.unique())
    first, again = api.post("/v1/sales-events", body), api.post("/v1/sales-events", body)
    assert (first.status, again.status) == (201, 200)
    assert again.json() == {"sales_event": first.json()["sales_event"], "automation": {"state": "not_applicable"}}
    assert again.header(MISMATCH) is None


def test_the_same_content_spelled_differently_is_no_mismatch(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"], occurred_at="2024-05-01T12:00:00.000Z")
    api.post("/v1/sales-events", body)
    respelled = {
        **body,
        "store_id": store["external_id"],
        "occurred_at": "2024-05-01T14:00:00+02:00",
        "source": None,
        "unknown": 1,
    }
    again = api.post("/v1/sales-events", respelled)
    assert (again.status, again.header(MISMATCH)) == (200, None)


def test_another_ticket_under_a_known_id_answers_the_first_and_says_so(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"])
    first = api.post("/v1/sales-events", body).json()["sales_event"]
    again = api.post("/v1/sales-events", {**body, "total_amount_cents": 1})
    assert (again.status, again.header(MISMATCH)) == (200, "true")
    assert again.json()["sales_event"] == first


def test_every_replay_of_a_collision_reports_the_collision(
    api: Api, second_server: Server, store: dict[str, Any]
) -> None:
    body = samples.sale(store["id"])
    api.post("/v1/sales-events", body)
    other, key = {**body, "total_amount_cents": 1}, samples.unique("key")
    assert api.post("/v1/sales-events", other, idempotency_key=key).header(MISMATCH) == "true"
    for caller in (api, api.on(second_server)):
        replay = caller.post("/v1/sales-events", other, idempotency_key=key)
        assert (replay.is_replay, replay.header(MISMATCH)) == (True, "true")


def test_a_duplicate_is_answered_although_its_store_or_customer_is_unknown(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"])
    first = api.post("/v1/sales-events", body).json()["sales_event"]
    customer = samples.unique()
    for change in ({"store_id": "nowhere"}, {"profile_id": customer}, {"profile_id": "prof_x"}):
        again = api.post("/v1/sales-events", {**body, **change})
        assert (again.status, again.header(MISMATCH)) == (200, "true")
        assert again.json()["sales_event"] == first
    assert api.get(f"/v1/profiles/{customer}").status == 404


def test_an_invalid_duplicate_is_still_invalid(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"])
    api.post("/v1/sales-events", body)
    assert api.post("/v1/sales-events", {**body, "currency": "JPY"}).refused == (400, "VALIDATION_ERROR")


def test_an_unknown_customer_gets_a_light_profile_and_its_history_lines_up(api: Api, store: dict[str, Any]) -> None:
    customer = samples.unique("customer")
    event = api.post("/v1/sales-events", samples.sale(store["id"], profile_id=customer)).json()["sales_event"]
    light = api.get(f"/v1/profiles/{customer}").json()
    assert event["profile"] == {"id": light["id"], "external_id": customer}
    assert (light["first_name"], light["attributes"]) == (None, {})
    upserted = api.post("/v1/profiles", samples.profile(external_id=customer))
    assert (upserted.status, upserted.json()["id"]) == (200, light["id"])
    assert api.pages("/v1/sales-events", profile_id=customer) == [event]


def test_a_customer_may_be_named_by_canonical_id(api: Api, store: dict[str, Any]) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    event = api.post("/v1/sales-events", samples.sale(store["id"], profile_id=profile["id"])).json()["sales_event"]
    assert event["profile"]["external_id"] == profile["external_id"]


def test_an_anonymous_sale_has_no_profile(api: Api, store: dict[str, Any]) -> None:
    for body in (samples.sale(store["id"]), samples.sale(store["id"], profile_id=None)):
        event = api.post("/v1/sales-events", body).json()["sales_event"]
        assert event["profile"] is None
    assert api.get("/v1/profiles").json()["data"] == []


def test_two_organizations_may_use_the_same_ticket_number(api: Api, other_api: Api, store: dict[str, Any]) -> None:
    other_store = other_api.post("/v1/stores", samples.store()).json()
    body = samples.sale(store["id"])
    assert api.post("/v1/sales-events", body).status == 201
    assert other_api.post("/v1/sales-events", {**body, "store_id": other_store["id"]}).status == 201
