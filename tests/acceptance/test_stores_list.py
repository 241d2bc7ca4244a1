"""`GET /v1/stores` (specification 4.6): the list, and the rules of every list."""

from tests.support import samples
from tests.support.client import Api


def test_an_empty_list_is_a_page_like_any_other(api: Api) -> None:
    assert api.get("/v1/stores").json() == {"data": [], "has_more": False, "next_cursor": None}


def test_it_lists_stores_in_the_order_they_were_created(api: Api) -> None:
    created = [api.post("/v1/stores", samples.store()).json() for _ in range(5)]
    assert api.get("/v1/stores").json() == {"data": created, "has_more": False, "next_cursor": None}
    assert api.pages("/v1/stores", limit=2) == created
    assert api.pages("/v1/stores", limit=5) == created


def test_it_never_lists_another_organizations_store(api: Api, other_api: Api) -> None:
    api.post("/v1/stores", samples.store())
    assert other_api.get("/v1/stores").json()["data"] == []


def test_a_cursor_belongs_to_its_list_and_its_organization(api: Api, other_api: Api) -> None:
    for caller in (api, other_api):
        for _ in range(2):
            caller.post("/v1/stores", samples.store())
            caller.post("/v1/profiles", samples.profile())
    cursor = api.get("/v1/stores", limit=1).json()["next_cursor"]
    assert other_api.get("/v1/stores", cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get("/v1/profiles", cursor=cursor).refused == (400, "INVALID_CURSOR")
    assert api.get("/v1/stores", cursor=cursor[:-1]).refused == (400, "INVALID_CURSOR")
    assert api.get("/v1/stores", cursor=cursor, limit=200).status == 200


def test_a_page_has_50_items_unless_asked_and_never_more_than_200(api: Api) -> None:
    profiles = [{"external_id": f"p{number:03}"} for number in range(203)]
    assert api.post("/v1/profiles/batch", {"items": profiles}).status == 200
    assert len(api.get("/v1/profiles").json()["data"]) == 50
    for limit in (201, 10**9, "0" * 30 + "500"):
        page = api.get("/v1/profiles", limit=limit).json()
        assert (len(page["data"]), page["has_more"]) == (200, True)


def test_a_walk_during_inserts_returns_what_was_there_at_its_start_once(api: Api) -> None:
    before = [api.post("/v1/stores", samples.store()).json()["id"] for _ in range(6)]
    page = api.get("/v1/stores", limit=2).json()
    seen = [store["id"] for store in page["data"]]
    while page["has_more"]:
        if len(seen) < 6:
            api.post("/v1/stores", samples.store())
        page = api.get("/v1/stores", limit=2, cursor=page["next_cursor"]).json()
        seen += [store["id"] for store in page["data"]]
    assert seen[:6] == before
    assert len(seen) == len(set(seen))
