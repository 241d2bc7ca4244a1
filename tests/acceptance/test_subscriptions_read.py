"""`GET /v1/subscriptions`, `GET /v1/subscriptions/{id}` and its history (additions)."""

import pytest
from tests.support import samples
from tests.support.client import Api


@pytest.mark.parametrize("suffix", ["", "/history"])
def test_it_knows_no_subscription_that_does_not_exist(api: Api, suffix: str) -> None:
    for reference in ("sub_01h455vb4pex5vsknk084sn02q", "sub_x", "prof_x", "anything"):
        assert api.get(f"/v1/subscriptions/{reference}{suffix}").refused == (404, "SUBSCRIPTION_NOT_FOUND")


def test_another_organizations_subscription_is_like_an_absent_one(api: Api, other_api: Api) -> None:
    subscription = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]
    for suffix in ("", "/history"):
        answer = other_api.get(f"/v1/subscriptions/{subscription['id']}{suffix}")
        assert answer.refused == (404, "SUBSCRIPTION_NOT_FOUND")
    assert other_api.get("/v1/subscriptions").json()["data"] == []


def test_it_refuses_filters_it_cannot_read(api: Api) -> None:
    assert api.get("/v1/subscriptions", status="subscribed").refused == (400, "VALIDATION_ERROR")
    assert api.get("/v1/subscriptions", phone_number="12").refused == (400, "INVALID_PHONE_NUMBER")
    assert api.get("/v1/subscriptions", profile_id="").refused == (400, "VALIDATION_ERROR")
    for reference in ("nobody", "store_x"):
        assert api.get("/v1/subscriptions", profile_id=reference).refused == (404, "PROFILE_NOT_FOUND")
    # A cursor is read before a reference is looked up.
    assert api.get("/v1/subscriptions", profile_id="nobody", cursor="x").refused == (400, "INVALID_CURSOR")
    assert api.get("/v1/subscriptions", consent_source="OTHER").refused == (400, "VALIDATION_ERROR")


def test_it_reads_one_subscription(api: Api) -> None:
    subscription = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]
    assert api.get(f"/v1/subscriptions/{subscription['id']}").json() == subscription


def test_it_lists_and_filters_subscriptions(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number=None)).json()
    linked = api.post("/v1/subscriptions/opt-in", samples.opt_in(profile_id=profile["id"])).json()["subscription"]
    loose = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]
    gone = api.post("/v1/subscriptions/opt-out", {"phone_number": samples.phone()}).json()["subscription"]
    assert api.pages("/v1/subscriptions", limit=2) == [linked, loose, gone]
    assert api.pages("/v1/subscriptions", profile_id=profile["external_id"]) == [linked]
    assert api.pages("/v1/subscriptions", phone_number=loose["phone_number"]) == [loose]
    assert api.pages("/v1/subscriptions", status="UNSUBSCRIBED") == [gone]
    assert api.pages("/v1/subscriptions", profile_id=profile["id"], status="UNSUBSCRIBED") == []
    cursor = api.get("/v1/subscriptions", limit=1).json()["next_cursor"]
    for path in (
        f"/v1/subscriptions?status=SUBSCRIBED&cursor={cursor}",
        f"/v1/subscriptions/{gone['id']}/history?cursor={cursor}",
    ):
        assert api.get(path).refused == (400, "INVALID_CURSOR")


def test_a_leading_space_in_a_number_is_read_as_the_plus_it_was(api: Api) -> None:
    loose = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]
    page = api.get(f"/v1/subscriptions?phone_number={loose['phone_number']}").json()
    assert page["data"] == [loose]


def test_the_history_has_every_event_in_the_order_of_arrival(api: Api) -> None:
    body = samples.opt_in(consented_at=samples.ago(hours=3))
    subscription = api.post("/v1/subscriptions/opt-in", body).json()["subscription"]
    api.post("/v1/subscriptions/opt-out", {"phone_number": body["phone_number"]})
    api.post("/v1/subscriptions/opt-in", {**body, "consented_at": samples.ago(hours=2)})
    path = f"/v1/subscriptions/{subscription['id']}/history"
    events = api.pages(path)
    assert len(events) == 3
    assert [event["outcome"] for event in events] == ["created", "unsubscribed", "superseded"]
    assert api.pages(path, limit=1) == events
    other = api.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]
    cursor = api.get(path, limit=1).json()["next_cursor"]
    assert api.get(f"/v1/subscriptions/{other['id']}/history", cursor=cursor).refused == (400, "INVALID_CURSOR")
