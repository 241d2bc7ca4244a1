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


def test_an_anonymous_sale_has_no_profile(api: Api, store: dict[str, Any]) -> None:
    for body in (samples.sale(store["id"]), samples.sale(store["id"], profile_id=None)):
        event = api.post("/v1/sales-events", body).json()["sales_event"]
        assert event["profile"] is None
    assert api.get("/v1/profiles").json()["data"] == []
