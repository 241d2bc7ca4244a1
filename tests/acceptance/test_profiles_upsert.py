"""`POST /v1/profiles` (specification 4.1, 2.2, 2.3)."""

import pytest
from tests.support import samples
from tests.support.client import Api


def test_it_refuses_a_caller_without_a_key(anonymous: Api) -> None:
    assert anonymous.post("/v1/profiles", samples.profile()).refused == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("external_id", ["prof_x", "sub_", "store_9", "evt_01h455vb4pex5vsknk084sn02q"])
def test_it_refuses_every_reserved_prefix(api: Api, external_id: str) -> None:
    assert api.post("/v1/profiles", {"external_id": external_id}).refused == (400, "RESERVED_EXTERNAL_ID")


@pytest.mark.parametrize("value", [1, True, ["a"], {"b": "c"}, 1.5])
def test_it_refuses_an_attribute_that_is_not_a_string_and_applies_nothing(api: Api, value: object) -> None:
    body = samples.profile(attributes={"good": "yes", "bad": value})
    assert api.post("/v1/profiles", body).refused == (400, "VALIDATION_ERROR")
    assert api.get(f"/v1/profiles/{body['external_id']}").status == 404


def test_it_refuses_too_many_too_long_and_empty_attribute_keys(api: Api) -> None:
    for attributes in ({f"k{number}": "v" for number in range(501)}, {"k" * 129: "v"}, {"k": "v" * 2049}, {"": "v"}):
        assert api.post("/v1/profiles", samples.profile(attributes=attributes)).refused == (400, "VALIDATION_ERROR")


def test_it_refuses_more_than_500_attributes_on_one_profile_over_several_calls(api: Api) -> None:
    body = samples.profile(attributes={f"k{number}": "v" for number in range(500)})
    assert api.post("/v1/profiles", body).status == 201
    assert api.post("/v1/profiles", {**body, "attributes": {"one_more": "v"}}).refused == (400, "VALIDATION_ERROR")
    swapped = {"k0": None, "one_more": "v"}
    assert api.post("/v1/profiles", {**body, "attributes": swapped}).status == 200


def test_it_creates_a_profile_and_shows_every_field(api: Api) -> None:
    body = samples.profile()
    answer = api.post("/v1/profiles", body)
    stored = answer.json()
    assert answer.status == 201
    assert stored["id"].startswith("prof_")
    assert {name: stored[name] for name in body} == body
    assert stored["created_at"] == stored["updated_at"]
    assert set(stored) == {*body, "id", "created_at", "updated_at"}


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


def test_unknown_fields_are_ignored(api: Api) -> None:
    answer = api.post("/v1/profiles", samples.profile(favourite_colour="red", nested={"a": [1, 2.5, None]}))
    assert answer.status == 201
    assert "favourite_colour" not in answer.json()


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("+33 6 12 34 56 78", "+33612345678"),
        ("0033612345678", "+33612345678"),
        ("+1 (415) 555-2671", "+14155552671"),
        ("12", "12"),
        ("call me", "call me"),
        ("1" * 40, "1" * 40),
    ],
)
def test_a_phone_number_is_normalised_or_stored_as_sent(api: Api, sent: str, stored: str) -> None:
    assert api.post("/v1/profiles", samples.profile(phone_number=sent)).json()["phone_number"] == stored


def test_types_of_attribute_values_never_raise_an_error(api: Api) -> None:
    for value in ("12", "true", "2024-02-30", "not a number", ""):
        assert api.post("/v1/profiles", samples.profile(attributes={"score": value})).status in (200, 201)


def test_a_composed_and_a_decomposed_letter_are_two_ids(api: Api) -> None:
    name = samples.unique()
    first = api.post("/v1/profiles", {"external_id": f"{name}-\u00e9"})
    second = api.post("/v1/profiles", {"external_id": f"{name}-e\u0301"})
    assert (first.status, second.status) == (201, 201)
