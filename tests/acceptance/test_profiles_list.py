"""`GET /v1/profiles` (an addition with the conventions of the other lists)."""

from tests.support import samples
from tests.support.client import Api


def test_it_refuses_a_caller_without_a_key(anonymous: Api) -> None:
    assert anonymous.get("/v1/profiles").refused == (401, "UNAUTHORIZED")


def test_it_refuses_an_unknown_parameter(api: Api) -> None:
    assert api.get("/v1/profiles", name="Ada").refused == (400, "VALIDATION_ERROR")


def test_it_lists_profiles_in_the_order_they_were_created(api: Api) -> None:
    created = [api.post("/v1/profiles", samples.profile()).json() for _ in range(3)]
    assert api.pages("/v1/profiles", limit=2) == created


def test_it_never_lists_another_organizations_profile(api: Api, other_api: Api) -> None:
    api.post("/v1/profiles", samples.profile())
    assert other_api.get("/v1/profiles").json()["data"] == []
