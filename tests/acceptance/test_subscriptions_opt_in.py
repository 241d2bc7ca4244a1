"""`POST /v1/subscriptions/opt-in` (specification 4.7, 2.4)."""

import pytest
from tests.support import samples
from tests.support.client import Api

PATH = "/v1/subscriptions/opt-in"


def test_it_refuses_an_unknown_profile_and_records_nothing(api: Api) -> None:
    body = samples.opt_in(profile_id="nobody")
    assert api.post(PATH, body).refused == (404, "PROFILE_NOT_FOUND")
    assert api.pages("/v1/subscriptions", phone_number=body["phone_number"]) == []
    assert api.get("/v1/profiles/nobody").status == 404


def test_it_records_a_consent_and_shows_every_field(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    body = samples.opt_in(profile_id=profile["external_id"])
    answer = api.post(PATH, body)
    subscription = answer.json()["subscription"]
    assert answer.status == 201
    assert subscription["id"].startswith("sub_")
    assert subscription == {
        "id": subscription["id"],
        "profile": {"id": profile["id"], "external_id": profile["external_id"]},
        "store": None,
        "phone_number": body["phone_number"],
        "status": "SUBSCRIBED",
        "consent_source": "LOYALTY_PROGRAM",
        "consented_at": body["consented_at"],
        "unsubscribed_at": None,
        "consent_proof": body["consent_proof"],
        "created_at": subscription["created_at"],
        "updated_at": subscription["updated_at"],
    }


def test_the_number_is_stored_as_e164(api: Api) -> None:
    number = samples.phone()
    spaced = f"{number[:3]} {number[3:6]}-{number[6:9]}.{number[9:]}"
    subscription = api.post(PATH, samples.opt_in(phone_number=spaced)).json()["subscription"]
    assert subscription["phone_number"] == number


@pytest.mark.parametrize("absent", [True, False])
def test_a_proof_is_optional_and_shown_whole(api: Api, absent: bool) -> None:
    body = samples.opt_in(consent_proof=None)
    body = samples.without(body, "consent_proof") if absent else body
    assert api.post(PATH, body).json()["subscription"]["consent_proof"] is None
    partial = samples.opt_in(consent_proof={"terms_version": "7"})
    shown = api.post(PATH, partial).json()["subscription"]["consent_proof"]
    assert shown == {"terms_url": None, "terms_version": "7", "source_text": None}
    for empty in ({}, {"terms_url": None}):
        assert api.post(PATH, samples.opt_in(consent_proof=empty)).json()["subscription"]["consent_proof"] is None


def test_without_a_profile_it_links_the_only_one_with_that_number(api: Api) -> None:
    alone, shared = samples.phone(), samples.phone()
    profile = api.post("/v1/profiles", samples.profile(phone_number=alone)).json()
    for _ in range(2):
        api.post("/v1/profiles", samples.profile(phone_number=shared))
    linked = api.post(PATH, samples.opt_in(phone_number=alone)).json()["subscription"]
    assert linked["profile"] == {"id": profile["id"], "external_id": profile["external_id"]}
    assert api.post(PATH, samples.opt_in(phone_number=shared)).json()["subscription"]["profile"] is None
    assert api.post(PATH, samples.opt_in()).json()["subscription"]["profile"] is None


def test_it_never_writes_the_phone_of_the_profile(api: Api) -> None:
    profile = api.post("/v1/profiles", {"external_id": samples.unique()}).json()
    api.post(PATH, samples.opt_in(profile_id=profile["id"]))
    assert api.get(f"/v1/profiles/{profile['id']}").json() == profile


def test_a_resync_without_proof_or_profile_leaves_them_as_they_are(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number=None)).json()
    body = samples.opt_in(profile_id=profile["id"])
    first = api.post(PATH, body).json()["subscription"]
    again = api.post(PATH, samples.without(body, "profile_id", "consent_proof")).json()
    assert (again["outcome"], again["subscription"]) == ("already_subscribed", first)


def test_a_resent_proof_keeps_the_fields_it_leaves_out_while_subscribed(api: Api) -> None:
    body = samples.opt_in(consent_proof=samples.proof())
    first = api.post(PATH, body).json()["subscription"]
    whole = first["consent_proof"]
    for proof in ({}, dict.fromkeys(whole), {"terms_url": whole["terms_url"]}, {"source_text": whole["source_text"]}):
        again = api.post(PATH, {**body, "consent_proof": proof}).json()
        assert (again["outcome"], again["subscription"]) == ("already_subscribed", first)
    changed = api.post(PATH, {**body, "consent_proof": {"terms_version": "next", "source_text": None}}).json()
    assert (changed["outcome"], changed["subscription"]["consent_proof"]) == (
        "updated",
        {**whole, "terms_version": "next"},
    )
    api.post("/v1/subscriptions/opt-out", {"phone_number": body["phone_number"]})
    later = {**body, "consented_at": samples.ahead(seconds=1), "consent_proof": {"terms_version": "new"}}
    renewed = api.post(PATH, later).json()
    assert (renewed["outcome"], renewed["subscription"]["consent_proof"]) == (
        "resubscribed",
        {"terms_url": None, "terms_version": "new", "source_text": None},
    )
