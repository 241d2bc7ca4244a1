"""`DELETE /v1/profiles/{profile_id}` (an addition): the person goes, the totals stay."""

from pathlib import Path
from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.server import Server

from regulars.kit.ids import PROFILE
from regulars.privacy.erasure_log import read_log


def test_it_erases_the_person_and_keeps_the_sale_as_an_anonymous_one(api: Api, store: dict[str, Any]) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    sale = api.post("/v1/sales-events", samples.sale(store["id"], profile_id=profile["id"])).json()["sales_event"]
    assert api.delete(f"/v1/profiles/{profile['external_id']}").status == 204
    for reference in (profile["id"], profile["external_id"]):
        assert api.get(f"/v1/profiles/{reference}").refused == (404, "PROFILE_NOT_FOUND")
    assert api.get(f"/v1/sales-events/{sale['id']}").json() == {**sale, "profile": None}
    assert api.delete(f"/v1/profiles/{profile['id']}").refused == (404, "PROFILE_NOT_FOUND")


def test_it_is_in_the_log_outside_the_database_when_it_is_answered(api: Api, server: Server) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number="+33612345678")).json()
    assert api.delete(f"/v1/profiles/{profile['id']}").status == 204
    logged = read_log(Path(server.environment["REGULARS_DATA_DIR"]) / "erasures.log").erasures
    (erasure,) = [one for one in logged if PROFILE.encode(one.profile_id) == profile["id"]]
    assert (len(erasure.number_hashes), erasure.is_certain) == (1, True)


PERSONAL = {"loyalty": {"card": "L-1"}, "payments": [{"iban": "FR76"}], "metadata": {"note": "for Ada"}}


def test_what_a_sale_says_of_the_person_goes_with_them_and_sending_it_again_is_no_collision(
    api: Api, store: dict[str, Any]
) -> None:
    customer = samples.unique("customer")
    body = samples.sale(store["id"], profile_id=customer, source="pos-1", **PERSONAL)
    sale = api.post("/v1/sales-events", body).json()["sales_event"]
    assert api.delete(f"/v1/profiles/{customer}").status == 204
    left = {**sale, "profile": None, "loyalty": None, "payments": None, "metadata": None}
    assert api.get(f"/v1/sales-events/{sale['id']}").json() == left
    for resent in (
        body,
        {**body, "profile_id": "somebody-else", "metadata": None},
        samples.without(body, "profile_id"),
    ):
        again = api.post("/v1/sales-events", resent)
        assert (again.status, again.header("x-payload-mismatch")) == (200, None)
        assert again.json()["sales_event"] == left
    differing = api.post("/v1/sales-events", {**body, "total_amount_cents": 1})
    assert (differing.status, differing.header("x-payload-mismatch")) == (200, "true")
    assert api.get(f"/v1/profiles/{customer}").status == 404


def test_a_number_that_is_anothers_subscription_stays_theirs(api: Api) -> None:
    number = samples.phone()
    erased, other = (api.post("/v1/profiles", samples.profile(phone_number=number)).json() for _ in range(2))
    api.post("/v1/subscriptions/opt-in", samples.opt_in(phone_number=number, profile_id=other["id"]))
    before = api.get("/v1/subscriptions", phone_number=number).json()["data"]
    assert api.delete(f"/v1/profiles/{erased['id']}").status == 204
    assert api.get("/v1/subscriptions", phone_number=number).json()["data"] == before
    assert before[0]["status"] == "SUBSCRIBED"


def test_it_withdraws_consent_and_an_older_opt_in_cannot_revive_it(api: Api) -> None:
    number = samples.phone()
    profile = api.post("/v1/profiles", samples.profile(phone_number=number)).json()
    body = samples.opt_in(phone_number=number, profile_id=profile["id"], consented_at=samples.ago(hours=2))
    assert api.post("/v1/subscriptions/opt-in", body).json()["outcome"] == "created"
    assert api.delete(f"/v1/profiles/{profile['id']}").status == 204
    older = {**body, "profile_id": None, "consented_at": samples.ago(hours=1)}
    answer = api.post("/v1/subscriptions/opt-in", older).json()
    assert answer["outcome"] == "superseded"
    assert answer["subscription"]["status"] == "UNSUBSCRIBED"
    assert answer["subscription"]["profile"] is None
    newer = {**older, "consented_at": samples.ahead(seconds=60)}
    assert api.post("/v1/subscriptions/opt-in", newer).json()["outcome"] == "resubscribed"


def test_a_stored_answer_that_holds_the_person_is_not_replayed(api: Api) -> None:
    body, key = samples.profile(first_name="Erased-Name"), samples.unique("key")
    profile = api.post("/v1/profiles", body, idempotency_key=key).json()
    api.delete(f"/v1/profiles/{profile['id']}")
    retry = api.post("/v1/profiles", body, idempotency_key=key)
    assert retry.refused == (404, "PROFILE_NOT_FOUND")
    assert retry.is_replay
    assert retry.json()["detail"].endswith("stop sending them.")
    assert b"Erased-Name" not in retry.body
    assert api.get(f"/v1/profiles/{body['external_id']}").status == 404


def test_of_a_stored_batch_only_the_results_that_hold_the_person_are_not_replayed(
    api: Api, second_server: Server, store: dict[str, Any]
) -> None:
    people = [samples.profile(first_name=name) for name in ("Ada", "Erased-Name", "Zoë")]
    sales = [samples.sale(store["id"], profile_id=person["external_id"]) for person in people]
    for path, items in (("/v1/profiles/batch", people), ("/v1/sales-events/batch", sales)):
        key = samples.unique("key")
        first = api.post(path, {"items": items}, idempotency_key=key).json()["results"]
        assert [result["status"] for result in first] == [201] * 3
        assert api.delete(f"/v1/profiles/{people[1]['external_id']}").status == 204
        for caller in (api, api.on(second_server)):
            retry = caller.post(path, {"items": items}, idempotency_key=key)
            replayed = retry.json()["results"]
            assert (retry.status, retry.is_replay) == (200, True)
            assert [replayed[0], replayed[2]] == [first[0], first[2]]
            assert (replayed[1]["status"], replayed[1]["body"]["code"]) == (404, "PROFILE_NOT_FOUND")
            assert b"Erased-Name" not in retry.body
        assert api.get(f"/v1/profiles/{people[1]['external_id']}").status == 404


@pytest.mark.parametrize("operation", ["opt-in", "opt-out"])
def test_a_stored_answer_about_a_number_that_was_linked_later_is_not_replayed(api: Api, operation: str) -> None:
    number, key = samples.phone(), samples.unique("key")
    body = samples.opt_in(phone_number=number) if operation == "opt-in" else {"phone_number": number}
    path = f"/v1/subscriptions/{operation}"
    assert number.encode() in api.post(path, body, idempotency_key=key).body
    profile = api.post("/v1/profiles", samples.profile(phone_number=samples.phone())).json()
    linked = samples.opt_in(phone_number=number, profile_id=profile["id"], consented_at=samples.ahead(seconds=60))
    assert api.post("/v1/subscriptions/opt-in", linked).status == 200
    assert api.delete(f"/v1/profiles/{profile['id']}").status == 204
    retry = api.post(path, body, idempotency_key=key)
    assert retry.refused == (404, "PROFILE_NOT_FOUND")
    assert retry.is_replay
    assert number.encode() not in retry.body
