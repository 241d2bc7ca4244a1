"""A key that may only ingest writes, and learns nothing that was stored before."""

import json
from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Answer, Api
from tests.support.tenant import Tenant, another_key

from regulars.http.route import DocumentRoute
from regulars.kit.settings import Settings
from regulars.organizations.model import Permission
from regulars.server import api_routes

OPEN_TO_INGEST = {
    "upsertProfile",
    "upsertProfiles",
    "setProfileAttributes",
    "upsertStore",
    "listStores",
    "getStore",
    "optIn",
    "optOut",
    "recordSalesEvent",
    "recordSalesEvents",
}


@pytest.fixture
def till(api: Api, tenant: Tenant, api_database_url: str) -> Api:
    """A caller of the same organization whose key may only ingest."""
    return api.as_tenant(another_key(api_database_url, tenant, permission=Permission.INGEST))


def test_the_operations_open_to_an_ingest_key_are_these() -> None:
    keyed = [route for route in api_routes(Settings()) if not isinstance(route, DocumentRoute)]
    assert {route.operation_id for route in keyed if route.takes_ingest_keys} == OPEN_TO_INGEST


def test_it_may_not_read_or_erase(api: Api, till: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    for path in ("/v1/profiles", f"/v1/profiles/{profile['id']}", "/v1/sales-events", "/v1/subscriptions"):
        assert till.get(path).refused == (403, "FORBIDDEN")
    assert till.delete(f"/v1/profiles/{profile['id']}").refused == (403, "FORBIDDEN")
    assert api.get(f"/v1/profiles/{profile['id']}").status == 200


def test_the_refusal_comes_before_the_rate_limit_is_charged(till: Api) -> None:
    assert till.get("/v1/profiles").header("ratelimit-remaining") is None


def test_it_reads_stores_and_the_description(till: Api, store: dict[str, Any]) -> None:
    assert till.get(f"/v1/stores/{store['id']}").json() == store
    assert till.get("/v1/stores").status == till.get("/v1/openapi.json").status == 200


def test_a_new_ticket_is_answered_as_it_was_sent(till: Api, store: dict[str, Any]) -> None:
    sent = samples.sale(store["external_id"], profile_id=samples.unique("customer"))
    answer = till.post("/v1/sales-events", sent)
    assert answer.status == 201
    assert answer.json()["sales_event"]["total_amount_cents"] == sent["total_amount_cents"]


@pytest.mark.parametrize("path", ["/v1/sales-events", "/v1/sales-events/batch"])
def test_a_known_ticket_is_answered_with_its_ids_only(
    api: Api, till: Api, second_server: Any, store: dict[str, Any], path: str
) -> None:
    first = samples.sale(store["external_id"], total_amount_cents=777_123, metadata={"note": "private"})
    stored = api.post("/v1/sales-events", first).json()["sales_event"]
    again = {**first, "total_amount_cents": 1, "metadata": None}
    for caller in (till, till.on(second_server)):
        answer = caller.post(path, {"items": [again]} if path.endswith("batch") else again)
        body = answer.json()["results"][0]["body"] if path.endswith("batch") else answer.json()
        assert answer.status == 200
        assert body == {
            "sales_event": {"id": stored["id"], "external_id": stored["external_id"]},
            "automation": {"state": "not_applicable"},
        }


def test_a_customer_named_by_canonical_id_does_not_give_away_the_external_id(
    api: Api, till: Api, store: dict[str, Any]
) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    answer = till.post("/v1/sales-events", samples.sale(store["external_id"], profile_id=profile["id"]))
    assert answer.status == 201
    assert says_nothing_of(profile["external_id"], answer)


def test_an_upsert_shows_a_new_profile_and_only_the_ids_of_a_known_one(api: Api, till: Api) -> None:
    sent = samples.profile()
    assert till.post("/v1/profiles", sent).json()["first_name"] == "Ada"
    api.post("/v1/profiles", {"external_id": sent["external_id"], "attributes": {"vip": "secretly"}})
    profile_id = api.get(f"/v1/profiles/{sent['external_id']}").json()["id"]
    answer = till.post("/v1/profiles", {"external_id": sent["external_id"], "first_name": "Eve"})
    receipt = {"id": profile_id, "external_id": sent["external_id"]}
    assert (answer.status, answer.json()) == (200, receipt)
    batch = till.post("/v1/profiles/batch", {"items": [{"external_id": sent["external_id"]}]})
    assert batch.json()["results"] == [{"status": 200, "body": receipt}]


def test_setting_attributes_shows_those_that_were_sent(api: Api, till: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(attributes={"vip": "secretly", "old": "x"})).json()
    changes = {"attributes": {"size": "M", "old": None}}
    by_id = till.post(f"/v1/profiles/{profile['id']}/attributes", changes).json()
    assert by_id == {"profile": {"id": profile["id"]}, "attributes": {"size": "M"}}
    by_name = till.post(f"/v1/profiles/{profile['external_id']}/attributes", changes).json()
    assert by_name["profile"] == {"id": profile["id"], "external_id": profile["external_id"]}


def test_a_consent_is_answered_without_the_customer_it_was_linked_to(api: Api, till: Api) -> None:
    number = samples.phone()
    profile = api.post("/v1/profiles", samples.profile(phone_number=number)).json()
    consent = {"phone_number": number, "consent_source": "WEBSITE", "consented_at": samples.ago(minutes=2)}
    created = till.post("/v1/subscriptions/opt-in", consent)
    assert created.status == 201
    assert set(created.json()["subscription"]) == {"id", "status", "phone_number"}
    again = till.post("/v1/subscriptions/opt-in", consent)
    assert (again.status, again.json()["outcome"]) == (200, "already_subscribed")
    assert says_nothing_of(profile["external_id"], created)
    assert says_nothing_of(profile["external_id"], again)


def test_a_withdrawal_by_profile_does_not_give_away_its_numbers(api: Api, till: Api) -> None:
    number = samples.phone()
    profile = api.post("/v1/profiles", samples.profile(phone_number=number)).json()
    consent = {"phone_number": number, "consent_source": "WEBSITE", "consented_at": samples.ago(minutes=2)}
    api.post("/v1/subscriptions/opt-in", consent)
    answer = till.post("/v1/subscriptions/opt-out", {"profile_id": profile["id"]})
    assert answer.json()["outcome"] == "unsubscribed"
    assert answer.json()["subscription"]["status"] == "UNSUBSCRIBED"
    assert says_nothing_of(number, answer)
    by_number = till.post("/v1/subscriptions/opt-out", {"phone_number": number}).json()
    assert by_number["subscription"]["phone_number"] == number


@pytest.mark.parametrize("first_is_full", [True, False])
def test_keys_of_different_permission_never_share_a_stored_answer(
    api: Api, till: Api, second_server: Any, store: dict[str, Any], *, first_is_full: bool
) -> None:
    sale = samples.sale(store["external_id"])
    first, second = (api, till) if first_is_full else (till, api)
    name = samples.unique("retry")
    answer = first.post("/v1/sales-events", sale, idempotency_key=name)
    assert first.post("/v1/sales-events", sale, idempotency_key=name).body == answer.body
    for caller in (second, second.on(second_server)):
        assert caller.post("/v1/sales-events", sale, idempotency_key=name).refused == (409, "IDEMPOTENCY_CONFLICT")


def says_nothing_of(text: str, answer: Answer) -> bool:
    return text not in json.dumps(answer.json(), ensure_ascii=False)
