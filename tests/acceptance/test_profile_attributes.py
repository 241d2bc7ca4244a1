"""`POST` and `GET /v1/profiles/{profile_id}/attributes` (specification 4.3, 4.4, 2.3)."""

import pytest
from tests.support import samples
from tests.support.client import Api, segment


def test_it_does_not_create_a_profile(api: Api) -> None:
    answer = api.post("/v1/profiles/nobody/attributes", {"attributes": {"a": "b"}})
    assert answer.refused == (404, "PROFILE_NOT_FOUND")
    assert api.get("/v1/profiles/nobody").refused == (404, "PROFILE_NOT_FOUND")
    assert api.get("/v1/profiles/nobody/attributes").refused == (404, "PROFILE_NOT_FOUND")


def test_validation_comes_before_the_look_up(api: Api) -> None:
    assert api.post("/v1/profiles/nobody/attributes", {"a": 1}).refused == (400, "VALIDATION_ERROR")


def test_one_bad_value_among_good_ones_is_refused_and_nothing_is_applied(api: Api) -> None:
    profile = api.post("/v1/profiles", samples.profile()).json()
    path, mixed = f"/v1/profiles/{profile['id']}", {"attributes": {"good": "yes", "bad": 1}}
    assert api.post(f"{path}/attributes", mixed).refused == (400, "VALIDATION_ERROR")
    upsert = {"external_id": profile["external_id"], "first_name": "Grace", **mixed}
    assert api.post("/v1/profiles", upsert).refused == (400, "VALIDATION_ERROR")
    assert api.get(path).json() == profile


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
