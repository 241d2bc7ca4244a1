"""`POST` and `GET /v1/profiles/{profile_id}/attributes` (specification 4.3, 4.4, 2.3)."""

import pytest
from tests.support import samples
from tests.support.client import Api, segment


def test_it_refuses_a_caller_without_a_key(anonymous: Api) -> None:
    assert anonymous.post("/v1/profiles/p1/attributes", {"attributes": {}}).refused == (401, "UNAUTHORIZED")
    assert anonymous.get("/v1/profiles/p1/attributes").refused == (401, "UNAUTHORIZED")


def test_it_does_not_create_a_profile(api: Api) -> None:
    answer = api.post("/v1/profiles/nobody/attributes", {"attributes": {"a": "b"}})
    assert answer.refused == (404, "PROFILE_NOT_FOUND")
    assert api.get("/v1/profiles/nobody").refused == (404, "PROFILE_NOT_FOUND")
    assert api.get("/v1/profiles/nobody/attributes").refused == (404, "PROFILE_NOT_FOUND")


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, ["a"], {"a": "b"}])
def test_one_bad_value_refuses_the_call_and_nothing_is_applied(api: Api, value: object) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    path = f"/v1/profiles/{profile['id']}/attributes"
    assert api.post(path, {"attributes": {"good": "yes", "bad": value}}).refused == (400, "VALIDATION_ERROR")
    assert api.get(path).json()["attributes"] == profile["attributes"]


@pytest.mark.parametrize("attributes", [[1], "x", 1, True])
def test_a_member_named_attributes_must_be_the_map(api: Api, attributes: object) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    answer = api.post(f"/v1/profiles/{profile['id']}/attributes", {"attributes": attributes})
    assert answer.refused == (400, "VALIDATION_ERROR")


def test_validation_comes_before_the_look_up(api: Api) -> None:
    assert api.post("/v1/profiles/nobody/attributes", {"a": 1}).refused == (400, "VALIDATION_ERROR")


def test_another_organizations_profile_is_like_an_absent_one(api: Api, other_api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    path = f"/v1/profiles/{profile['id']}/attributes"
    assert other_api.get(path).refused == (404, "PROFILE_NOT_FOUND")
    assert other_api.post(path, {"a": "b"}).refused == (404, "PROFILE_NOT_FOUND")


@pytest.mark.parametrize("wrapped", [True, False])
def test_it_merges_a_wrapped_or_a_bare_map_and_answers_all_attributes(api: Api, wrapped: bool) -> None:
    profile = api.post("/v1/profiles", samples.profile(attributes={"a": "1", "b": "2"})).json()
    change = {"b": None, "c": "3"}
    path = f"/v1/profiles/{segment(profile['external_id'])}/attributes"
    answer = api.post(path, {"attributes": change} if wrapped else change, is_described=wrapped)
    expected = {
        "profile": {"id": profile["id"], "external_id": profile["external_id"]},
        "attributes": {"a": "1", "c": "3"},
    }
    assert (answer.status, answer.json()) == (200, expected)
    assert api.get(path).json() == expected
    read = api.get(f"/v1/profiles/{profile['id']}").json()
    assert read["attributes"] == {"a": "1", "c": "3"}
    assert read["updated_at"] > profile["updated_at"]


def test_a_write_that_changes_nothing_does_not_move_updated_at(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(attributes={"a": "1"})).json()
    assert api.post(f"/v1/profiles/{profile['id']}/attributes", {"attributes": {"a": "1", "zzz": None}}).status == 200
    assert api.get(f"/v1/profiles/{profile['id']}").json() == profile


def test_it_refuses_a_501st_attribute(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile(attributes={f"k{n}": "v" for n in range(500)})).json()
    path = f"/v1/profiles/{profile['id']}/attributes"
    assert api.post(path, {"one_more": "v"}).refused == (400, "VALIDATION_ERROR")
    assert api.post(path, {"attributes": {"k1": None, "one_more": "v"}}).status == 200


def test_an_empty_list_is_an_empty_map_of_attributes(api: Api) -> None:
    customer = samples.profile(attributes={"size": "M"})
    api.post("/v1/profiles", customer)
    again = api.post("/v1/profiles", {**customer, "attributes": []}, is_described=False)
    assert (again.status, again.json()["attributes"]) == (200, {"size": "M"})
    changed = api.post(f"/v1/profiles/{customer['external_id']}/attributes", {"attributes": []}, is_described=False)
    assert (changed.status, changed.json()["attributes"]) == (200, {"size": "M"})
    batch = {"items": [{**samples.profile(), "attributes": []}]}
    [result] = api.post("/v1/profiles/batch", batch, is_described=False).json()["results"]
    assert (result["status"], result["body"]["attributes"]) == (201, {})
