"""What the routes of profiles read and answer, without the transport."""

import json

import pytest
from tests.support.database_fixtures import request

from regulars.http.request import Write
from regulars.http.route import LookUpRoute
from regulars.kit.errors import ApiError, InvalidCursor, ReservedExternalId, ValidationError
from regulars.kit.ids import ByExternalId
from regulars.profiles import api
from regulars.profiles.errors import ProfileNotFound
from regulars.profiles.model import Phone

pytestmark = pytest.mark.anyio
PROFILE, ATTRIBUTES = (route for route in api.ROUTES if isinstance(route, LookUpRoute))


async def post(database, organization_id, body, *, prepare=api.prepare_profile, run=api.run_profiles, **sent):
    asked = request(organization_id, body=json.dumps(body).encode(), **sent)
    async with database.transaction() as tx:
        (answer,) = await run(tx, organization_id, [Write(asked, prepare(asked))])
    if isinstance(answer, ApiError):
        raise answer
    return answer.status, json.loads(answer.body)


async def get(database, organization_id, handle, **sent):
    async with database.transaction() as tx:
        answer = await handle(tx, request(organization_id, **sent))
    return json.loads(answer.body)


async def look_up(database, organization_id, reference, *, find=PROFILE.find):
    async with database.reading_by_key() as tx:
        (answer,) = await find(tx, organization_id, [request(organization_id, references=(reference,))])
    if isinstance(answer, ApiError):
        raise answer
    return json.loads(answer.body)


def prepare(body: object, **sent):
    return api.prepare_profile(request(None, body=json.dumps(body).encode(), **sent))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "external_id"),
        ({"external_id": None}, "external_id"),
        ({"external_id": 1}, "external_id"),
        ({"external_id": ""}, "external_id"),
        ({"external_id": "a" * 256}, "external_id"),
        ({"external_id": "a", "phone_number": 33612345678}, "phone_number"),
        ({"external_id": "a", "phone_number": "1" * 1025}, "phone_number"),
        ({"external_id": "a", "first_name": ["Ada"]}, "first_name"),
        ({"external_id": "a", "last_name": "x" * 1025}, "last_name"),
        ({"external_id": "a", "attributes": ["x"]}, "attributes"),
        ({"external_id": "a", "attributes": {"x": 1}}, "attributes.x"),
        ({"external_id": "a", "attributes": {"x": {"y": "z"}}}, "attributes.x"),
        ({"external_id": "a", "attributes": {"x": "v" * 2049}}, "attributes.x"),
        ({"external_id": "a", "attributes": {"k" * 129: "v"}}, "attributes"),
        ({"external_id": "a", "attributes": {"k" * 129: None}}, "attributes"),
        ({"external_id": "a", "attributes": {"": "v"}}, "attributes"),
        ({"external_id": "a", "attributes": {f"k{n}": "v" for n in range(501)}}, "attributes"),
    ],
)
def test_it_names_the_field_it_refuses(body, field):
    with pytest.raises(ValidationError) as refusal:
        prepare(body)
    assert [error.field for error in refusal.value.errors] == [field]


def test_it_refuses_a_reserved_prefix():
    with pytest.raises(ReservedExternalId):
        prepare({"external_id": "prof_x"})


def test_the_default_country_of_the_organization_reads_the_number():
    upsert = prepare({"external_id": "a", "phone_number": "06 12 34 56 78"}, default_country="FR")
    assert upsert.phone == Phone("+33612345678", reachable=True)


async def test_an_answer_has_every_field_and_ordered_attributes(database, organization_id):
    status, body = await post(
        database, organization_id, {"external_id": "a", "attributes": {"bb": "1", "c": "2", "a": "3"}}
    )
    assert status == 201
    assert list(body) == [
        "id",
        "external_id",
        "phone_number",
        "first_name",
        "last_name",
        "attributes",
        "created_at",
        "updated_at",
    ]
    assert list(body["attributes"]) == ["a", "bb", "c"]
    assert await look_up(database, organization_id, "a") == body
    assert await look_up(database, organization_id, body["id"]) == body


@pytest.mark.parametrize("reference", ["nobody", "prof_x", "store_01h455vb4pex5vsknk084sn02q", "\0", "a" * 256])
async def test_a_reference_to_nothing_is_not_found(database, organization_id, reference):
    for find in (PROFILE.find, ATTRIBUTES.find):
        with pytest.raises(ProfileNotFound):
            await look_up(database, organization_id, reference, find=find)


@pytest.mark.parametrize(
    "body", [{"attributes": {"x": "1", "gone": None}}, {"x": "1", "gone": None}, {"attributes": {"x": "1"}, "other": 5}]
)
async def test_attributes_come_wrapped_or_flat(database, organization_id, body):
    _, profile = await post(
        database, organization_id, {"external_id": "a", "attributes": {"gone": "1"} if "other" not in body else {}}
    )
    sent = {"prepare": api.prepare_attributes, "run": api.run_attributes, "references": ("a",)}
    status, answer = await post(database, organization_id, body, **sent)
    assert status == 200
    assert answer == {"profile": {"id": profile["id"], "external_id": "a"}, "attributes": {"x": "1"}}
    assert await look_up(database, organization_id, "a", find=ATTRIBUTES.find) == answer


@pytest.mark.parametrize(
    "body",
    [[], None, "x", {"attributes": "x"}, {"attributes": None}, {"attributes": ["x"]}, {"attributes": {"x": 1}}, {"x": 1}, {"x": True}, {"x": {"y": "z"}}, {"": "v"}, {"k" * 129: "v"}],
)  # fmt: skip
def test_anything_but_a_flat_map_of_strings_is_refused(body):
    with pytest.raises(ValidationError):
        api.prepare_attributes(request(None, body=json.dumps(body).encode(), references=("a",)))


async def test_each_item_of_a_batch_is_answered_on_its_own(database, organization_id):
    items = [
        {"external_id": "a", "first_name": "Ada"},
        {"external_id": "prof_x"},
        "not an object",
        {"external_id": "a", "last_name": "Martin"},
        {"first_name": "nobody"},
        {"external_id": "b", "attributes": {"x": 1}},
    ]
    status, body = await post(
        database, organization_id, {"items": items}, prepare=api.prepare_batch, run=api.run_batches
    )
    assert status == 200
    results = body["results"]
    assert [result["status"] for result in results] == [201, 400, 400, 200, 400, 400]
    codes = [result["body"].get("code") for result in results]
    assert codes == [None, "RESERVED_EXTERNAL_ID", "VALIDATION_ERROR", None, "VALIDATION_ERROR", "VALIDATION_ERROR"]
    assert results[4]["body"]["errors"][0]["field"] == "external_id"
    assert results[1]["body"]["request_id"] == "req_test"
    assert await look_up(database, organization_id, "a") == results[3]["body"]
    with pytest.raises(ProfileNotFound):
        await look_up(database, organization_id, "b")


@pytest.mark.parametrize(
    "body", [{}, {"items": []}, {"items": None}, {"items": {}}, {"items": [{"external_id": "a"}] * 501}]
)
def test_a_batch_has_between_one_and_500_items(body):
    with pytest.raises(ValidationError):
        api.prepare_batch(request(None, body=json.dumps(body).encode()))


def test_a_batch_costs_as_many_requests_as_it_has_items():
    route = next(route for route in api.ROUTES if route.operation_id == "upsertProfiles")
    command = api.prepare_batch(request(None, body=b'{"items":[{"external_id":"a"},{},1]}'))
    assert route.cost(command) == 3


async def test_a_walk_over_the_list_meets_every_profile_once(database, organization_id):
    items = [{"external_id": f"c{number:02}"} for number in range(25)]
    await post(database, organization_id, {"items": items}, prepare=api.prepare_batch, run=api.run_batches)
    seen, query = [], {"limit": "10"}
    for expected in (10, 10, 5):
        page = await get(database, organization_id, api.handle_list, query=query)
        assert len(page["data"]) == expected
        assert page["has_more"] is (page["next_cursor"] is not None)
        seen += [profile["external_id"] for profile in page["data"]]
        query = {"limit": "10", "cursor": page["next_cursor"]}
    assert seen == [item["external_id"] for item in items]
    assert page["next_cursor"] is None


async def test_a_cursor_belongs_to_its_filters(database, organization_id):
    for name in ("a", "b"):
        await post(database, organization_id, {"external_id": name, "phone_number": "+33612345678"})
    page = await get(database, organization_id, api.handle_list, query={"limit": "1"})
    for query in ({"phone_number": "+33612345678"}, {"external_id": "b"}):
        with pytest.raises(InvalidCursor):
            await get(database, organization_id, api.handle_list, query={**query, "cursor": page["next_cursor"]})


@pytest.mark.parametrize("written", ["+33612345678", " 33612345678", "0033 6 12 34 56 78"])
async def test_the_list_finds_a_number_however_it_is_written(database, organization_id, written):
    await post(database, organization_id, {"external_id": "a", "phone_number": "+33 6 12 34 56 78"})
    await post(database, organization_id, {"external_id": "b", "phone_number": "+33612345679"})
    page = await get(database, organization_id, api.handle_list, query={"phone_number": written})
    assert [profile["external_id"] for profile in page["data"]] == ["a"]


@pytest.mark.parametrize("query", [{"external_id": "nobody"}, {"phone_number": "\0"}])
async def test_a_filter_that_matches_nothing_gives_an_empty_page(database, organization_id, query):
    await post(database, organization_id, {"external_id": "a"})
    page = await get(database, organization_id, api.handle_list, query=query)
    assert page == {"data": [], "has_more": False, "next_cursor": None}


async def test_the_list_can_be_asked_for_one_external_id(database, organization_id):
    for name in ("a", "b"):
        await post(database, organization_id, {"external_id": name})
    page = await get(database, organization_id, api.handle_list, query={"external_id": "b"})
    assert [profile["external_id"] for profile in page["data"]] == ["b"]


def test_a_path_reference_is_read_as_either_kind():
    changes = api.prepare_attributes(request(None, body=b"{}", references=("x/attributes",)))
    assert changes.reference == ByExternalId("x/attributes")
