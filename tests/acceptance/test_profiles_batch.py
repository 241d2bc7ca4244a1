"""`POST /v1/profiles/batch` (an addition): up to 500 upserts in one call, each answered in its place."""

import pytest
from tests.support import samples
from tests.support.client import Api


def test_it_refuses_a_caller_without_a_key(anonymous: Api) -> None:
    assert anonymous.post("/v1/profiles/batch", {"items": []}).refused == (401, "UNAUTHORIZED")


@pytest.mark.parametrize(
    "body", [{}, {"items": None}, {"items": []}, {"items": {}}, {"items": [{"external_id": "x"}] * 501}]
)
def test_it_refuses_a_body_without_a_list_of_1_to_500(api: Api, body: object) -> None:
    assert api.post("/v1/profiles/batch", body).refused == (400, "VALIDATION_ERROR")


def test_each_item_is_answered_in_its_place_as_the_single_call_would_be(api: Api) -> None:
    good, known = samples.profile(), samples.profile()
    stored = api.post("/v1/profiles", known).json()
    items = [good, {"external_id": "prof_x"}, {}, 7, known, good]
    answer = api.post("/v1/profiles/batch", {"items": items})
    results = answer.json()["results"]
    assert answer.status == 200
    assert [result["status"] for result in results] == [201, 400, 400, 400, 200, 200]
    assert results[0]["body"] == results[5]["body"] == api.get(f"/v1/profiles/{good['external_id']}").json()
    assert results[1]["body"]["code"] == "RESERVED_EXTERNAL_ID"
    assert results[2]["body"]["code"] == results[3]["body"]["code"] == "VALIDATION_ERROR"
    assert results[2]["body"]["errors"][0]["code"] == "REQUIRED"
    assert results[4]["body"] == stored


def test_later_items_of_one_profile_build_on_earlier_ones(api: Api) -> None:
    name = samples.unique()
    items = [
        {"external_id": name, "attributes": {"n": "1"}},
        {"external_id": name, "attributes": {"m": "2"}},
        {"external_id": name, "attributes": {"n": None}},
    ]
    results = api.post("/v1/profiles/batch", {"items": items}).json()["results"]
    assert [result["body"]["attributes"] for result in results] == [{"n": "1"}, {"n": "1", "m": "2"}, {"m": "2"}]


def test_500_items_are_taken(api: Api) -> None:
    items = [{"external_id": samples.unique()} for _ in range(500)]
    results = api.post("/v1/profiles/batch", {"items": items}).json()["results"]
    assert [result["status"] for result in results] == [201] * 500
