"""`POST /v1/profiles` (specification 4.1, 2.2, 2.3)."""

from tests.support import samples
from tests.support.client import Api


def test_it_creates_a_profile_and_shows_every_field(api: Api) -> None:
    body = samples.profile()
    answer = api.post("/v1/profiles", body)
    stored = answer.json()
    assert answer.status == 201
    assert stored["id"].startswith("prof_")
    assert {name: stored[name] for name in body} == body
    assert stored["created_at"] == stored["updated_at"]
    names = ["external_id", "phone_number", "first_name", "last_name", "attributes"]
    assert list(stored) == ["id", *names, "created_at", "updated_at"]
    more = api.post("/v1/profiles", {**body, "attributes": {"bb": "1", "c": "2", "a": "3"}}).json()["attributes"]
    assert list(more) == sorted(more)


def test_external_id_is_the_only_required_field(api: Api) -> None:
    external_id = samples.unique()
    stored = api.post("/v1/profiles", {"external_id": external_id}).json()
    shown = {name: stored[name] for name in ("external_id", "phone_number", "first_name", "last_name", "attributes")}
    assert shown == {
        "external_id": external_id,
        "phone_number": None,
        "first_name": None,
        "last_name": None,
        "attributes": {},
    }


def test_the_same_upsert_twice_answers_200_and_moves_nothing(api: Api) -> None:
    body = samples.profile()
    first, again = api.post("/v1/profiles", body), api.post("/v1/profiles", body)
    assert (first.status, again.status) == (201, 200)
    assert again.json() == first.json()


def test_an_omitted_field_is_unchanged_null_clears_and_attributes_merge(api: Api) -> None:
    body = samples.profile()
    first = api.post("/v1/profiles", body).json()
    change = {"external_id": body["external_id"], "last_name": None, "attributes": {"birthday": "1990-02-28"}}
    changed = api.post("/v1/profiles", change).json()
    assert (changed["id"], changed["first_name"], changed["last_name"]) == (first["id"], "Ada", None)
    assert changed["attributes"] == {"loyalty_tier": "gold", "birthday": "1990-02-28"}
    assert changed["updated_at"] > first["updated_at"]
    assert changed["created_at"] == first["created_at"]


def test_null_attributes_change_nothing_and_a_null_value_removes_a_key(api: Api) -> None:
    body = samples.profile(attributes={"a": "1", "b": "2"})
    api.post("/v1/profiles", body)
    unchanged = api.post("/v1/profiles", {"external_id": body["external_id"], "attributes": None}).json()
    assert unchanged["attributes"] == {"a": "1", "b": "2"}
    removed = api.post("/v1/profiles", {"external_id": body["external_id"], "attributes": {"a": None}}).json()
    assert removed["attributes"] == {"b": "2"}


def test_a_composed_and_a_decomposed_letter_are_two_ids(api: Api) -> None:
    name = samples.unique()
    first = api.post("/v1/profiles", {"external_id": f"{name}-\u00e9"})
    second = api.post("/v1/profiles", {"external_id": f"{name}-e\u0301"})
    assert (first.status, second.status) == (201, 201)
