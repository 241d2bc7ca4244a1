"""Upserting, listing and reading stores."""

import asyncio
import json
from uuid import UUID, uuid4

import pytest
from tests.support.database_fixtures import request
from tests.support.waiting import until_locked

from regulars.http.request import Write
from regulars.kit.db import Database
from regulars.kit.errors import InvalidCursor, ValidationError
from regulars.kit.ids import STORE, ByExternalId, ById, new_uuid
from regulars.stores import api
from regulars.stores.find import find_store, find_stores
from regulars.stores.model import COUNTRY_CODES, Address, StoreNotFound, StoreRef, StoreUpsert
from regulars.stores.upsert import UpsertedStore, upsert_stores

pytestmark = pytest.mark.anyio

ADDRESS = {"address_line1": "12 rue de la Paix", "postal_code": "75002", "locality": "Paris", "country_code": "FR"}


def prepare(body: object) -> StoreUpsert:
    return api.prepare_store(request(UUID(int=1), body=json.dumps(body).encode()))


async def upsert(database: Database, organization_id: UUID, *upserts: StoreUpsert) -> list[UpsertedStore]:
    async with database.transaction() as tx:
        return await upsert_stores(tx, organization_id, upserts)


async def post(database: Database, organization_id: UUID, body: object):
    asked = request(organization_id, body=json.dumps(body).encode())
    async with database.transaction() as tx:
        (answer,) = await api.run_stores(tx, organization_id, [Write(asked, api.prepare_store(asked))])
    return answer.status, json.loads(answer.body)


async def get(database: Database, organization_id: UUID, handle, **sent):
    async with database.transaction() as tx:
        return json.loads((await handle(tx, request(organization_id, **sent))).body)


@pytest.mark.parametrize("missing", list(ADDRESS))
@pytest.mark.parametrize("how", ["absent", "null", "empty", "number"])
def test_an_address_needs_its_four_fields(missing, how):
    address = {name: value for name, value in ADDRESS.items() if name != missing}
    if how != "absent":
        address[missing] = {"null": None, "empty": "", "number": 1}[how]
    with pytest.raises(ValidationError) as refusal:
        prepare({"external_id": "s", "address": address})
    assert refusal.value.errors[0].field == f"address.{missing}"


@pytest.mark.parametrize("code", ["XX", "FRA", "F", "UK", "ß", "ﬁ", "ＦＲ", "F ", "12", "XK"])
def test_it_refuses_what_is_no_country(code):
    with pytest.raises(ValidationError) as refusal:
        prepare({"external_id": "s", "address": {**ADDRESS, "country_code": code}})
    assert refusal.value.errors[0].field == "address.country_code"


@pytest.mark.parametrize("code", ["fr", "Fr", "FR"])
def test_a_country_code_is_stored_in_capitals(code):
    assert prepare({"external_id": "s", "address": {**ADDRESS, "country_code": code}}).address.country_code == "FR"


def test_the_list_of_countries_is_whole():
    assert len(COUNTRY_CODES) == 249
    assert {"FR", "GB", "US", "CH", "TW", "PS", "AX", "SS"} <= COUNTRY_CODES


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"external_id": None},
        {"external_id": "s", "name": "n" * 1025},
        {"external_id": "s", "name": 1},
        {"external_id": "s", "address": "Paris"},
        {"external_id": "s", "address": []},
    ],
)
def test_it_refuses_what_does_not_fit(body):
    with pytest.raises(ValidationError):
        prepare(body)


async def test_an_answer_has_every_field(database, organization_id):
    status, body = await post(
        database, organization_id, {"external_id": "s", "address": ADDRESS, "opening_hours": "9-5"}
    )
    assert status == 201
    assert list(body) == ["id", "external_id", "name", "address", "created_at", "updated_at"]
    assert body["name"] is None
    assert body["address"] == {
        **ADDRESS,
        "address_line2": None,
        "administrative_area1": None,
        "administrative_area2": None,
    }
    for reference in ("s", body["id"]):
        assert await get(database, organization_id, api.handle_store, references=(reference,)) == body
    assert await get(database, organization_id, api.handle_list) == {
        "data": [body],
        "has_more": False,
        "next_cursor": None,
    }


async def test_omitted_is_unchanged_null_clears_and_an_address_is_replaced_whole(database, organization_id):
    await post(
        database,
        organization_id,
        {"external_id": "s", "name": "Paris", "address": {**ADDRESS, "address_line2": "floor 2"}},
    )
    status, body = await post(database, organization_id, {"external_id": "s", "name": None})
    assert (status, body["name"], body["address"]["address_line2"]) == (200, None, "floor 2")
    _, body = await post(
        database, organization_id, {"external_id": "s", "address": {**ADDRESS, "administrative_area1": None}}
    )
    assert body["address"]["address_line2"] is None
    _, body = await post(database, organization_id, {"external_id": "s", "address": None})
    assert body["address"] is None
    assert await get(database, organization_id, api.handle_store, references=("s",)) == body


async def test_a_write_that_changes_nothing_does_not_move_updated_at(database, organization_id):
    sent = {"external_id": "s", "name": "Paris", "address": ADDRESS}
    _, first = await post(database, organization_id, sent)
    assert await post(database, organization_id, sent) == (200, first)
    _, moved = await post(database, organization_id, {"external_id": "s", "name": "Lyon"})
    assert moved["updated_at"] > first["updated_at"]
    assert moved["created_at"] == first["created_at"]


async def test_several_upserts_of_one_store_in_a_batch_each_see_their_own_state(database, organization_id):
    address = Address(**ADDRESS)
    outcomes = await upsert(
        database,
        organization_id,
        StoreUpsert(external_id="s", name="Paris"),
        StoreUpsert(external_id="t"),
        StoreUpsert(external_id="s", address=address),
        StoreUpsert(external_id="s", name="Paris"),
    )
    assert [outcome.change for outcome in outcomes] == ["created", "created", "updated", "unchanged"]
    assert [outcome.store.address for outcome in outcomes] == [None, None, address, address]
    async with database.transaction() as tx:
        assert await find_store(tx, organization_id, ByExternalId("s")) == outcomes[-1].store


async def test_an_upsert_that_loses_the_race_to_create_updates_the_store_of_the_winner(database, organization_id):
    async with database.transaction() as tx:
        await upsert_stores(tx, organization_id, [StoreUpsert(external_id="s", name="Paris")])
        late = asyncio.create_task(
            upsert(database, organization_id, StoreUpsert(external_id="s", address=Address(**ADDRESS)))
        )
        await until_locked(database)
        assert not late.done()
    (outcome,) = await late
    assert (outcome.change, outcome.store.name, outcome.store.address) == ("updated", "Paris", Address(**ADDRESS))


async def test_parallel_upserts_create_a_store_once(database, organization_id):
    outcomes = await asyncio.gather(
        *(upsert(database, organization_id, StoreUpsert(external_id="s", name=str(number))) for number in range(32))
    )
    assert sum(outcome.change == "created" for (outcome,) in outcomes) == 1


async def test_it_finds_stores_by_either_name_and_leaves_out_the_unknown(database, organization_id):
    (made,) = await upsert(database, organization_id, StoreUpsert(external_id="s"))
    ref = StoreRef(made.store.id, "s")
    references = [ById(ref.id), ByExternalId("s"), ById(new_uuid()), ById(None), ByExternalId("z"), ByExternalId("\0")]
    async with database.transaction() as tx:
        assert await find_stores(tx, organization_id, references) == {ById(ref.id): ref, ByExternalId("s"): ref}
        assert await find_stores(tx, uuid4(), references) == {}


@pytest.mark.parametrize("reference", ["nowhere", "store_x", "prof_01h455vb4pex5vsknk084sn02q", "\0"])
async def test_a_reference_to_nothing_is_not_found(database, organization_id, reference):
    with pytest.raises(StoreNotFound):
        await get(database, organization_id, api.handle_store, references=(reference,))


async def test_a_walk_over_the_list_meets_every_store_once(database, organization_id):
    names = [f"s{number:02}" for number in range(7)]
    await upsert(database, organization_id, *(StoreUpsert(external_id=name) for name in names))
    await upsert(database, uuid4(), StoreUpsert(external_id="theirs"))
    seen, query = [], {"limit": "3"}
    for _ in range(3):
        page = await get(database, organization_id, api.handle_list, query=query)
        seen += page["data"]
        query = {"limit": "3", "cursor": page["next_cursor"]}
    assert [store["external_id"] for store in seen] == names
    assert page["has_more"] is False
    assert [STORE.decode(store["id"]) for store in seen] == sorted(STORE.decode(store["id"]) for store in seen)


@pytest.mark.parametrize("cursor", ["", "garbage", "é", "A" * 2000])
async def test_an_unknown_cursor_is_refused(database, organization_id, cursor):
    with pytest.raises(InvalidCursor):
        await get(database, organization_id, api.handle_list, query={"cursor": cursor})
