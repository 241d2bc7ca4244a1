"""`GET /v1/profiles` (an addition with the conventions of the other lists)."""

import pytest
from tests.support import samples
from tests.support.client import Api


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


def test_it_finds_a_number_however_it_is_written_and_an_external_id(api: Api) -> None:
    numbers = ("+33 6 12 34 56 78", "+33612345679")
    first, second = (api.post("/v1/profiles", samples.profile(phone_number=number)).json() for number in numbers)
    for written in ("+33612345678", " 33612345678", "0033 6 12 34 56 78"):
        assert api.pages("/v1/profiles", phone_number=written) == [first]
    assert api.pages("/v1/profiles", external_id=second["external_id"]) == [second]
    assert api.get("/v1/profiles", external_id="nobody").json() == {"data": [], "has_more": False, "next_cursor": None}


def test_a_cursor_belongs_to_its_filters(api: Api) -> None:
    for name in ("a", "b"):
        api.post("/v1/profiles", {"external_id": name, "phone_number": "+33612345678"})
    cursor = api.get("/v1/profiles", limit=1).json()["next_cursor"]
    for filters in ({"phone_number": "+33612345678"}, {"external_id": "b"}):
        assert api.get("/v1/profiles", cursor=cursor, **filters).refused == (400, "INVALID_CURSOR")
