"""`POST /v1/subscriptions/check` (an addition): may I text these, since when, why."""

from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.contract import Contract

PATH = "/v1/subscriptions/check"


def ask(api: Api, *items: dict[str, Any]) -> list[dict[str, Any]]:
    answer = api.post(PATH, {"items": list(items)})
    assert answer.status == 200
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def opted_in(api: Api, **changes: Any) -> dict[str, Any]:
    subscription: dict[str, Any] = api.post("/v1/subscriptions/opt-in", samples.opt_in(**changes)).json()[
        "subscription"
    ]
    return subscription


def opted_out(api: Api, number: str) -> dict[str, Any]:
    body = {"phone_number": number}
    subscription: dict[str, Any] = api.post("/v1/subscriptions/opt-out", body).json()["subscription"]
    return subscription


def verdict(reason: str, **known: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(("phone_number", "profile", "status", "since"))
    return {**unknown, "may_text": reason == "SUBSCRIBED", "reason": reason, **known}


@pytest.mark.parametrize(
    ("item", "is_right"),
    [
        ({"phone_number": "+33612345678"}, True),
        ({"profile_id": "ada"}, True),
        ({"phone_number": "+33612345678", "profile_id": None}, True),
        ({"phone_number": None, "profile_id": "ada"}, True),
        ({"phone_number": "+33612345678", "profile_id": "ada"}, False),
        ({"phone_number": None, "profile_id": None}, False),
        ({}, False),
    ],
)
def test_the_description_takes_the_items_that_the_server_takes(
    api: Api, contract: Contract, item: dict[str, Any], is_right: bool
) -> None:
    assert contract.takes({"$ref": "#/components/schemas/CheckIn"}, {"items": [item]}) == is_right
    assert (api.post(PATH, {"items": [item]}, is_described=is_right).status == 200) == is_right


def test_every_number_is_judged_in_its_place(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number=None)).json()
    person = {"id": profile["id"], "external_id": profile["external_id"]}
    given, linked = opted_in(api), opted_in(api, profile_id=profile["id"])
    withdrawn = opted_out(api, samples.phone())
    unknown = samples.phone()
    numbers = [given["phone_number"], unknown, withdrawn["phone_number"], "0612345678", linked["phone_number"]]
    assert ask(api, *({"phone_number": number} for number in numbers)) == [
        verdict("SUBSCRIBED", phone_number=numbers[0], status="SUBSCRIBED", since=given["consented_at"]),
        verdict("NEVER_ASKED", phone_number=unknown),
        verdict("UNSUBSCRIBED", phone_number=numbers[2], status="UNSUBSCRIBED", since=withdrawn["unsubscribed_at"]),
        verdict("INVALID_PHONE_NUMBER"),
        verdict(
            "SUBSCRIBED", phone_number=numbers[4], status="SUBSCRIBED", since=linked["consented_at"], profile=person
        ),
    ]


def test_a_profile_is_judged_by_its_last_consent_else_its_last_withdrawal_else_never_asked(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number=samples.phone())).json()
    person = {"id": profile["id"], "external_id": profile["external_id"]}
    question = {"profile_id": profile["external_id"]}
    assert ask(api, question, {"profile_id": "nobody"}) == [
        verdict("NEVER_ASKED", profile=person),
        verdict("UNKNOWN_PROFILE"),
    ]
    newest = opted_in(api, profile_id=profile["id"], consented_at=samples.ago(hours=1))
    older = opted_in(api, profile_id=profile["id"], consented_at=samples.ago(hours=2))
    [judged] = ask(api, {"profile_id": profile["id"]})
    assert (judged["phone_number"], judged["since"]) == (newest["phone_number"], newest["consented_at"])
    opted_out(api, newest["phone_number"])
    [judged] = ask(api, question)
    assert (judged["reason"], judged["phone_number"]) == ("SUBSCRIBED", older["phone_number"])
    last = opted_out(api, older["phone_number"])
    assert ask(api, question) == [
        verdict(
            "UNSUBSCRIBED",
            phone_number=older["phone_number"],
            profile=person,
            status="UNSUBSCRIBED",
            since=last["unsubscribed_at"],
        )
    ]


def test_an_erased_person_is_not_to_be_contacted(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number=None)).json()
    number = opted_in(api, profile_id=profile["id"])["phone_number"]
    api.delete(f"/v1/profiles/{profile['id']}")
    by_number, by_profile = ask(api, {"phone_number": number}, {"profile_id": profile["id"]})
    assert (by_number["reason"], by_number["phone_number"], by_number["may_text"]) == ("DO_NOT_CONTACT", number, False)
    assert by_profile == verdict("UNKNOWN_PROFILE")


def test_it_only_reads_and_an_idempotency_key_is_ignored(api: Api) -> None:
    number, key = samples.phone(), samples.unique("key")
    body = {"items": [{"phone_number": number}], "unknown": 1}
    first = api.post(PATH, body, idempotency_key=key)
    opted_in(api, phone_number=number)
    again = api.post(PATH, body, idempotency_key=key)
    assert [it.json()["results"][0]["reason"] for it in (first, again)] == ["NEVER_ASKED", "SUBSCRIBED"]
    assert not again.is_replay
    assert again.header("x-ignored-fields") == "unknown"


def test_each_item_costs_a_request(api: Api) -> None:
    def left() -> int:
        return int(api.post(PATH, {"items": [{"profile_id": "x"}]}).header("ratelimit-remaining") or "")

    before = left()
    ask(api, *[{"profile_id": "x"}] * 500)
    assert left() <= before - 400


def test_another_organizations_consent_is_not_seen(api: Api, other_api: Api) -> None:
    number = opted_in(other_api)["phone_number"]
    assert ask(api, {"phone_number": number}) == [verdict("NEVER_ASKED", phone_number=number)]
