"""Specification 3.1, row by row: how a subscription's status changes."""

from typing import Any

from tests.support import samples
from tests.support.client import Api


def opt_in(api: Api, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = api.post("/v1/subscriptions/opt-in", body)
    return answer.status, answer.json()


def opt_out(api: Api, **body: Any) -> dict[str, Any]:
    answer = api.post("/v1/subscriptions/opt-out", body)
    assert answer.status == 200, answer.body
    result: dict[str, Any] = answer.json()
    return result


def test_opt_in_with_no_prior_subscription_is_created(api: Api) -> None:
    status, answer = opt_in(api, samples.opt_in())
    assert (status, answer["outcome"], answer["automation"]["state"]) == (201, "created", "eligible")
    assert answer["subscription"]["status"] == "SUBSCRIBED"
    assert answer["subscription"]["unsubscribed_at"] is None


def test_opt_in_of_a_number_that_had_withdrawn_is_resubscribed(api: Api) -> None:
    body = samples.opt_in(consented_at=samples.ago(hours=3))
    _, first = opt_in(api, body)
    opt_out(api, phone_number=body["phone_number"], unsubscribed_at=samples.ago(hours=2))
    status, answer = opt_in(api, {**body, "consented_at": samples.ago(hours=1)})
    assert (status, answer["outcome"], answer["automation"]["state"]) == (200, "resubscribed", "eligible")
    assert answer["subscription"]["status"] == "SUBSCRIBED"
    assert answer["subscription"]["unsubscribed_at"] is None
    assert answer["subscription"]["id"] == first["subscription"]["id"]


def test_opt_in_while_subscribed_with_another_proof_is_updated(api: Api) -> None:
    body = samples.opt_in()
    opt_in(api, body)
    proof = samples.proof(terms_version="2026-02")
    status, answer = opt_in(api, {**body, "consent_proof": proof})
    assert (status, answer["outcome"], answer["automation"]["state"]) == (200, "updated", "not_applicable")
    assert answer["subscription"]["consent_proof"] == proof
    assert answer["subscription"]["status"] == "SUBSCRIBED"


def test_opt_in_while_subscribed_with_nothing_changed_is_already_subscribed(api: Api) -> None:
    body = samples.opt_in()
    _, first = opt_in(api, body)
    status, answer = opt_in(api, body)
    assert (status, answer["outcome"], answer["automation"]["state"]) == (200, "already_subscribed", "not_applicable")
    assert answer["subscription"] == first["subscription"]


def test_opt_in_earlier_than_a_more_recent_consent_event_is_superseded(api: Api) -> None:
    body = samples.opt_in(consented_at=samples.ago(hours=1))
    _, first = opt_in(api, body)
    older = {**body, "consented_at": samples.ago(hours=2), "consent_source": "WEBSITE"}
    status, answer = opt_in(api, older)
    assert (status, answer["outcome"], answer["automation"]["state"]) == (200, "superseded", "not_applicable")
    assert answer["subscription"] == first["subscription"]
    history = api.pages(f"/v1/subscriptions/{first['subscription']['id']}/history")
    assert len(history) == 2


def test_opt_in_dated_before_a_withdrawal_is_superseded_and_stays_unsubscribed(api: Api) -> None:
    body = samples.opt_in(consented_at=samples.ago(hours=3))
    opt_in(api, body)
    opt_out(api, phone_number=body["phone_number"], unsubscribed_at=samples.ago(hours=1))
    status, answer = opt_in(api, {**body, "consented_at": samples.ago(hours=2)})
    assert (status, answer["outcome"]) == (200, "superseded")
    assert answer["subscription"]["status"] == "UNSUBSCRIBED"


def test_opt_out_withdraws_consent_and_the_status_is_unsubscribed(api: Api) -> None:
    body = samples.opt_in()
    opt_in(api, body)
    at = samples.ago(minutes=5)
    answer = opt_out(api, phone_number=body["phone_number"], unsubscribed_at=at, reason="too many", source="till")
    assert (answer["outcome"], answer["automation"]["state"]) == ("unsubscribed", "not_applicable")
    assert answer["subscription"]["status"] == "UNSUBSCRIBED"
    assert answer["subscription"]["unsubscribed_at"] == at
    assert answer["subscription"]["consented_at"] == body["consented_at"]


def test_opt_out_twice_is_already_unsubscribed(api: Api) -> None:
    body = samples.opt_in()
    opt_in(api, body)
    opt_out(api, phone_number=body["phone_number"])
    assert opt_out(api, phone_number=body["phone_number"])["outcome"] == "already_unsubscribed"


def test_opt_out_at_the_same_instant_as_the_opt_in_wins(api: Api) -> None:
    body = samples.opt_in()
    opt_in(api, body)
    answer = opt_out(api, phone_number=body["phone_number"], unsubscribed_at=body["consented_at"])
    assert (answer["outcome"], answer["subscription"]["status"]) == ("unsubscribed", "UNSUBSCRIBED")
    status, again = opt_in(api, body)
    assert (status, again["subscription"]["status"]) == (200, "UNSUBSCRIBED")


def test_opt_out_older_than_the_latest_opt_in_is_superseded(api: Api) -> None:
    body = samples.opt_in()
    opt_in(api, body)
    answer = opt_out(api, phone_number=body["phone_number"], unsubscribed_at=samples.ago(hours=2))
    assert (answer["outcome"], answer["subscription"]["status"]) == ("superseded", "SUBSCRIBED")


def test_opt_out_of_an_unknown_number_is_recorded_and_no_older_opt_in_revives_it(api: Api) -> None:
    number = samples.phone()
    answer = opt_out(api, phone_number=number)
    assert (answer["outcome"], answer["subscription"]["status"]) == ("unsubscribed", "UNSUBSCRIBED")
    consent_fields = ("consented_at", "consent_source", "consent_proof", "profile")
    assert all(answer["subscription"][name] is None for name in consent_fields)
    _, older = opt_in(api, samples.opt_in(phone_number=number))
    assert (older["outcome"], older["subscription"]["status"]) == ("superseded", "UNSUBSCRIBED")
    status, newer = opt_in(api, samples.opt_in(phone_number=number, consented_at=samples.ahead(seconds=60)))
    assert (status, newer["outcome"]) == (200, "resubscribed")
