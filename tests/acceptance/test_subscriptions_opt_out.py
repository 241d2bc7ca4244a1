"""`POST /v1/subscriptions/opt-out` (specification 4.8)."""

from tests.support import samples
from tests.support.client import Api
from tests.support.tenant import Tenant, in_country

PATH = "/v1/subscriptions/opt-out"


def test_a_number_that_is_possible_only_in_its_area_can_be_withdrawn_and_looked_up(api: Api) -> None:
    local = "+15551234"
    assert api.post("/v1/subscriptions/opt-in", samples.opt_in(phone_number=local)).code == "INVALID_PHONE_NUMBER"
    assert api.post("/v1/subscriptions/opt-out", {"phone_number": local}).json()["outcome"] == "unsubscribed"
    [found] = api.get("/v1/subscriptions", phone_number=local).json()["data"]
    assert (found["phone_number"], found["status"]) == (local, "UNSUBSCRIBED")


def test_by_profile_it_withdraws_every_linked_number(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(phone_number=None)).json()
    numbers = [samples.phone() for _ in range(2)]
    for number in numbers:
        api.post("/v1/subscriptions/opt-in", samples.opt_in(phone_number=number, profile_id=profile["id"]))
    answer = api.post(PATH, {"profile_id": profile["external_id"]})
    body = answer.json()
    assert (answer.status, body["outcome"]) == (200, "unsubscribed")
    assert sorted(item["phone_number"] for item in body["subscriptions"]) == sorted(numbers)
    assert {item["status"] for item in body["subscriptions"]} == {"UNSUBSCRIBED"}
    assert body["subscription"] in body["subscriptions"]


def test_by_profile_without_any_number_there_is_no_subscription(api: Api) -> None:
    profile = api.post("/v1/profiles", {"external_id": samples.unique()}).json()
    assert api.post(PATH, {"profile_id": profile["id"]}).refused == (404, "SUBSCRIPTION_NOT_FOUND")


def test_an_opt_out_without_a_time_is_never_superseded(api: Api) -> None:
    body = samples.opt_in(consented_at=samples.ahead(minutes=4))
    api.post("/v1/subscriptions/opt-in", body)
    answer = api.post(PATH, {"phone_number": body["phone_number"]}).json()
    assert (answer["outcome"], answer["subscription"]["status"]) == ("unsubscribed", "UNSUBSCRIBED")


def test_a_number_is_understood_exactly_as_a_profile_s_is(api: Api, tenant: Tenant, api_database_url: str) -> None:
    spellings = ["0033612345670", " 00 33 6 12 34 56 70\n", "+33 (0)6.12.34.56.70", "+٣٣٦١٢٣٤٥٦٧٠"]
    national = ["06 12 34 56 70", "0612345670", "33612345670"]
    for text in national:
        assert api.post("/v1/subscriptions/opt-out", {"phone_number": text}).refused == (400, "INVALID_PHONE_NUMBER")
        [result] = api.post("/v1/subscriptions/check", {"items": [{"phone_number": text}]}).json()["results"]
        assert result["reason"] == "INVALID_PHONE_NUMBER"
    api = api.as_tenant(in_country(api_database_url, tenant, "FR"))
    for text in [*spellings, *national]:
        profile = api.post("/v1/profiles", samples.profile(phone_number=text)).json()
        withdrawn = api.post("/v1/subscriptions/opt-out", {"phone_number": text})
        assert withdrawn.status == 200, text
        [result] = api.post("/v1/subscriptions/check", {"items": [{"phone_number": text}]}).json()["results"]
        assert profile["phone_number"] == withdrawn.json()["subscription"]["phone_number"] == result["phone_number"]
        assert (result["phone_number"], result["reason"]) == ("+33612345670", "UNSUBSCRIBED")
    # Consent stays strict: a misread number would reach a stranger.
    refused = api.post("/v1/subscriptions/opt-in", samples.opt_in(phone_number="06 12 34 56 70"))
    assert refused.refused == (400, "INVALID_PHONE_NUMBER")


def test_a_national_number_is_no_further_fault_where_a_country_reads_it(
    api: Api, tenant: Tenant, api_database_url: str
) -> None:
    api = api.as_tenant(in_country(api_database_url, tenant, "FR"))
    body = {"phone_number": "06 12 34 56 70", "reason": 7}
    assert api.post("/v1/subscriptions/opt-out", body).field_errors == [("reason", "WRONG_TYPE")]
    body["phone_number"] = "12"
    assert [field for field, _ in api.post("/v1/subscriptions/opt-out", body).field_errors] == [
        "phone_number",
        "reason",
    ]
