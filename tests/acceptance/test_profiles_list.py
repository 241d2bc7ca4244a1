"""`GET /v1/profiles` (an addition with the conventions of the other lists)."""

import pytest
from tests.support import samples
from tests.support.client import Api


def test_it_refuses_a_caller_without_a_key(anonymous: Api) -> None:
    assert anonymous.get("/v1/profiles").refused == (401, "UNAUTHORIZED")


def test_it_refuses_an_unknown_parameter(api: Api) -> None:
    assert api.get("/v1/profiles", name="Ada").refused == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "query", ["external_id=", "external_id=%20", "external_id=%20x", "external_id=a%0Ab", f"external_id={'x' * 256}"]
)
def test_it_refuses_an_external_id_that_no_profile_can_have(api: Api, query: str) -> None:
    answer = api.raw("GET", f"/v1/profiles?{query}")
    assert (answer.status, answer.field_errors[0][0]) == (400, "external_id")


@pytest.mark.parametrize("number", ["", "%20", "1" * 1025])
def test_it_refuses_a_number_that_no_profile_can_have(api: Api, number: str) -> None:
    assert api.raw("GET", f"/v1/profiles?phone_number={number}").field_errors == [("phone_number", "LENGTH")]


def test_it_lists_profiles_in_the_order_they_were_created(api: Api) -> None:
    created = [api.post("/v1/profiles", samples.profile()).json() for _ in range(3)]
    assert api.pages("/v1/profiles", limit=2) == created


def test_it_never_lists_another_organizations_profile(api: Api, other_api: Api) -> None:
    api.post("/v1/profiles", samples.profile())
    assert other_api.get("/v1/profiles").json()["data"] == []
