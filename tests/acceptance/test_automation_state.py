"""Specification 3.2, row by row: the automation state of a sale and of an opt-in."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.support import samples
from tests.support.client import Api

WINDOW = timedelta(days=7)
# Longer than a request and its clock difference can take, and far shorter than the window.
MARGIN = timedelta(seconds=20)


def test_eligible_the_sale_is_recent_enough(api: Api, store: dict[str, Any]) -> None:
    for occurred_at in (samples.ago(minutes=1), samples.at(samples.now() - WINDOW + MARGIN)):
        assert _state_of_sale(api, store, occurred_at=occurred_at) == (201, "eligible")


def test_eligible_the_consent_is_recent_enough(api: Api) -> None:
    for consented_at in (samples.ago(minutes=1), samples.at(samples.now() - WINDOW + MARGIN)):
        answer = api.post("/v1/subscriptions/opt-in", samples.opt_in(consented_at=consented_at)).json()
        assert (answer["outcome"], answer["automation"]) == ("created", {"state": "eligible"})


def test_stale_fact_the_sale_is_older_than_7_days_and_is_recorded(api: Api, store: dict[str, Any]) -> None:
    for occurred_at in (samples.at(samples.now() - WINDOW - timedelta(milliseconds=1)), "1999-12-31T23:59:59Z"):
        assert _state_of_sale(api, store, occurred_at=occurred_at) == (201, "stale_fact")
    assert len(api.pages("/v1/sales-events")) == 2


def test_stale_fact_a_consent_older_than_7_days_is_recorded_but_triggers_nothing(api: Api) -> None:
    old = samples.at(samples.now() - WINDOW - timedelta(milliseconds=1))
    answer = api.post("/v1/subscriptions/opt-in", samples.opt_in(consented_at=old)).json()
    assert (answer["outcome"], answer["automation"]) == ("created", {"state": "stale_fact"})
    assert answer["subscription"]["status"] == "SUBSCRIBED"


def test_not_applicable_the_external_id_was_already_ingested(api: Api, store: dict[str, Any]) -> None:
    body = samples.sale(store["id"], profile_id=samples.unique())
    assert api.post("/v1/sales-events", body).json()["automation"] == {"state": "eligible"}
    for _ in range(2):
        again = api.post("/v1/sales-events", body)
        assert (again.status, again.json()["automation"]) == (200, {"state": "not_applicable"})


def test_not_applicable_the_sale_is_anonymous(api: Api, store: dict[str, Any]) -> None:
    for occurred_at in (samples.ago(minutes=1), samples.ago(days=30)):
        assert _state_of_sale(api, store, occurred_at=occurred_at, profile_id=None) == (201, "not_applicable")


@pytest.mark.parametrize("outcome", ["already_subscribed", "updated", "superseded"])
def test_not_applicable_every_opt_in_that_is_neither_created_nor_resubscribed(api: Api, outcome: str) -> None:
    body = samples.opt_in()
    api.post("/v1/subscriptions/opt-in", body)
    change = {
        "already_subscribed": {},
        "updated": {"consent_proof": samples.proof(terms_version="2026-02")},
        "superseded": {"consented_at": samples.ago(hours=3)},
    }[outcome]
    answer = api.post("/v1/subscriptions/opt-in", {**body, **change}).json()
    assert (answer["outcome"], answer["automation"]) == (outcome, {"state": "not_applicable"})


def test_a_given_sale_triggers_at_most_once_whatever_retry_presents_it(
    api: Api, store: dict[str, Any], api_database_url: str
) -> None:
    body, key = samples.sale(store["id"], profile_id=samples.unique()), samples.unique("key")
    states = [
        api.post("/v1/sales-events", body, idempotency_key=key).json()["automation"]["state"],
        api.post("/v1/sales-events", body).json()["automation"]["state"],
        api.post("/v1/sales-events", body, idempotency_key=samples.unique("key")).json()["automation"]["state"],
        api.post("/v1/sales-events/batch", {"items": [body]}).json()["results"][0]["body"]["automation"]["state"],
    ]
    assert states == ["eligible", "not_applicable", "not_applicable", "not_applicable"]
    replay = api.post("/v1/sales-events", body, idempotency_key=key)
    assert (replay.is_replay, replay.json()["automation"]["state"]) == (True, "eligible")
    assert api.tenant is not None
    with psycopg.connect(api_database_url) as connection:
        rows = connection.execute(
            "SELECT count(*) FROM sales_events WHERE organization_id = %s", (api.tenant.organization_id,)
        ).fetchone()
    assert rows == (1,)


def _state_of_sale(api: Api, store: dict[str, Any], **changes: Any) -> tuple[int, str]:
    answer = api.post("/v1/sales-events", samples.sale(store["id"], **{"profile_id": samples.unique(), **changes}))
    return answer.status, answer.json()["automation"]["state"]
