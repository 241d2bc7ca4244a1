"""`POST /v1/profiles/batch` (an addition): up to 500 upserts in one call, each answered in its place."""

from tests.support import samples
from tests.support.client import Api


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


def test_500_items_are_taken_and_listed_in_their_order(api: Api) -> None:
    # Descending, so that their own order is another one.
    names = sorted([samples.unique() for _ in range(500)], reverse=True)
    results = api.post("/v1/profiles/batch", {"items": [{"external_id": name} for name in names]}).json()["results"]
    assert [result["status"] for result in results] == [201] * 500
    assert [profile["external_id"] for profile in api.pages("/v1/profiles", limit=200)] == names
