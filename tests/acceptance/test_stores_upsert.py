"""`POST /v1/stores` (specification 4.5, 2.5)."""

from tests.support import samples
from tests.support.client import Api


def test_it_creates_a_store_and_shows_every_field(api: Api) -> None:
    body = samples.store()
    answer = api.post("/v1/stores", body)
    stored = answer.json()
    assert answer.status == 201
    assert answer.header("content-type") == "application/json"
    assert list(stored) == ["id", "external_id", "name", "address", "created_at", "updated_at"]
    assert stored["id"].startswith("store_")
    assert (stored["external_id"], stored["name"]) == (body["external_id"], body["name"])
    assert stored["address"] == {
        **body["address"],
        "address_line2": None,
        "administrative_area1": None,
        "administrative_area2": None,
    }
    assert stored["created_at"] == stored["updated_at"]
    assert stored["created_at"].endswith("Z")


def test_a_store_may_have_no_name_and_no_address(api: Api) -> None:
    stored = api.post("/v1/stores", {"external_id": samples.unique()}).json()
    assert (stored["name"], stored["address"]) == (None, None)


def test_the_same_store_again_answers_200_and_moves_nothing(api: Api) -> None:
    body = samples.store()
    first, again = api.post("/v1/stores", body), api.post("/v1/stores", body)
    assert (first.status, again.status) == (201, 200)
    assert again.json() == first.json()


def test_an_omitted_field_is_unchanged_and_null_clears_it(api: Api) -> None:
    body = samples.store()
    first = api.post("/v1/stores", body).json()
    renamed = api.post("/v1/stores", {"external_id": body["external_id"], "name": "Paris Nord"}).json()
    assert (renamed["id"], renamed["name"], renamed["address"]) == (first["id"], "Paris Nord", first["address"])
    assert renamed["updated_at"] > first["updated_at"]
    assert renamed["created_at"] == first["created_at"]
    cleared = api.post("/v1/stores", {"external_id": body["external_id"], "name": None, "address": None}).json()
    assert (cleared["name"], cleared["address"]) == (None, None)


def test_an_address_is_replaced_whole(api: Api) -> None:
    body = samples.store(address=samples.address(address_line2="Floor 2", administrative_area1="Île-de-France"))
    api.post("/v1/stores", body)
    changed = api.post("/v1/stores", {**body, "address": samples.address(locality="Lyon")}).json()
    assert changed["address"]["locality"] == "Lyon"
    assert changed["address"]["address_line2"] is None
    assert changed["address"]["administrative_area1"] is None


def test_a_country_is_written_in_capitals(api: Api) -> None:
    stored = api.post("/v1/stores", samples.store(address=samples.address(country_code="fr"))).json()
    assert stored["address"]["country_code"] == "FR"


def test_two_organizations_may_use_the_same_store_code(api: Api, other_api: Api) -> None:
    body = samples.store()
    mine, theirs = api.post("/v1/stores", body), other_api.post("/v1/stores", body)
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json()["id"] != theirs.json()["id"]
