"""Run the table of bad inputs over every operation it fits: the expected refusal, and never a 5xx."""

import copy
import re
from typing import Any

import httpx
import pytest
from tests.bad_inputs import table
from tests.bad_inputs.table import Content, Endpoint, Row
from tests.support import samples
from tests.support.client import Answer, Api
from tests.support.contract import Contract
from tests.support.routes import ROUTES
from tests.support.server import Server
from tests.support.tenant import new_tenant

# How many times the work of an honest body of a MiB any body of the table may cause the server.
TIMES_HONEST_MAX = 10
HONEST_BODIES = 5
MIB = 1 << 20


@pytest.fixture(scope="module")
def caller(server: Server, contract: Contract, http: httpx.Client, api_database_url: str) -> Api:
    """One organization for the whole table: refused requests leave nothing behind that could disturb the next."""
    api = Api(server, contract, http, new_tenant(api_database_url))
    assert api.post("/v1/stores", samples.store(external_id=table.STORE_CODE)).status == 201
    assert api.post("/v1/profiles", {"external_id": table.CUSTOMER}).status == 201
    return api


@pytest.fixture(scope="module")
def work_s_max(caller: Api) -> float:
    member = b'"x":[' + b",".join([b'{"a":"b","c":[1,2]}'] * (MIB // 20 - 1_000)) + b"]"
    before = caller.server.work_s()
    for _ in range(HONEST_BODIES):
        body = b'{"external_id":"%b",%b}' % (samples.unique().encode(), member)
        assert caller.post("/v1/profiles", content=body).status == 201
    return TIMES_HONEST_MAX * (caller.server.work_s() - before) / HONEST_BODIES


def of_each(endpoints: list[Endpoint]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("endpoint", endpoints, ids=lambda endpoint: endpoint.name)


def test_every_write_is_in_the_table() -> None:
    with_body = {f"{route.method} {route.path}" for route in ROUTES if route.method == "POST"}
    assert with_body == {endpoint.name for endpoint in table.WRITES if endpoint.rows}


def test_every_list_is_in_the_table() -> None:
    listing = {route.path for route in ROUTES if any(p.name == "cursor" for p in getattr(route, "parameters", ()))}
    assert listing == set(table.LISTS)


@of_each(table.WRITES)
def test_a_bad_field_gets_its_refusal(caller: Api, endpoint: Endpoint) -> None:
    for row in endpoint.rows:
        answer = caller.post(_path(endpoint), _changed(endpoint.body(table.STORE_CODE), row))
        assert answer.status in (400, 404), (row.name, answer.body[:300])
        assert answer.code in row.codes, row.name
        if answer.code == table.V:
            assert answer.field_errors, f"{row.name}: a validation error names its field"
        if row.value is table.MISSING:
            assert answer.field_errors == [(re.sub(r"\.(\d+)", r"[\1]", row.where), "REQUIRED")]


@pytest.mark.parametrize("path", ["/v1/profiles", "/v1/sales-events"])
def test_a_bad_field_gets_the_same_refusal_inside_a_batch(caller: Api, path: str) -> None:
    [endpoint] = [endpoint for endpoint in table.WRITES if endpoint.path == path]
    items = [_changed(endpoint.body(table.STORE_CODE), row) for row in endpoint.rows]
    results = caller.post(f"{path}/batch", {"items": items}).json()["results"]
    for row, result in zip(endpoint.rows, results, strict=True):
        assert result["status"] in (400, 404), row.name
        assert result["body"]["code"] in row.codes, row.name


@of_each(table.WRITES)
def test_a_bad_body_gets_its_refusal_quickly(caller: Api, work_s_max: float, endpoint: Endpoint) -> None:
    for content in table.CONTENTS:
        answer, work_s = _send(caller, endpoint, content)
        assert answer.status == 400, (content.name, answer.body[:300])
        assert answer.code in content.codes, content.name
        assert work_s < work_s_max, content.name


@of_each([endpoint for endpoint in table.WRITES if not endpoint.path.endswith("attributes")])
def test_a_strange_but_valid_body_is_read_quickly(caller: Api, work_s_max: float, endpoint: Endpoint) -> None:
    for content in table.HARMLESS:
        answer, work_s = _send(caller, endpoint, content)
        assert answer.status in (200, 201), (content.name, answer.body[:300])
        assert work_s < work_s_max, content.name


def _send(caller: Api, endpoint: Endpoint, content: Content) -> tuple[Answer, float]:
    """The response, and the server's processor time for it."""
    valid = samples.json_bytes(endpoint.body(table.STORE_CODE))
    before = caller.server.work_s()
    answer = caller.post(_path(endpoint), content=content.make(valid))
    return answer, caller.server.work_s() - before


@pytest.mark.parametrize("path", table.LISTS)
def test_a_bad_query_gets_its_refusal(caller: Api, path: str) -> None:
    subscription = caller.post("/v1/subscriptions/opt-in", samples.opt_in()).json()["subscription"]
    for query, code in table.LIST_QUERIES:
        target = f"{path.replace('{subscription_id}', subscription['id'])}?{query}"
        assert caller.raw("GET", target).refused == (400, code), query


REFERENCING = sorted({(route.method, route.path) for route in ROUTES if "{" in route.path})


@pytest.mark.parametrize(("method", "path"), REFERENCING)
def test_a_bad_path_segment_is_400_or_404(caller: Api, method: str, path: str) -> None:
    headers = [(b"Content-Type", b"application/json")] if method == "POST" else []
    body = b'{"attributes":{"a":"b"}}' if method == "POST" else None
    for segment in table.SEGMENTS:
        target = re.sub(r"\{[a-z_]+\}", segment, path)
        assert caller.raw(method, target, headers=headers, body=body).status in (400, 404), segment


def _path(endpoint: Endpoint) -> str:
    return endpoint.path.replace("{profile_id}", table.CUSTOMER)


def _changed(body: Any, row: Row) -> Any:
    changed = copy.deepcopy(body)
    *parents, last = row.where.split(".")
    holder = changed
    for name in parents:
        holder = holder[_place(name)]
    if row.where == "a":
        return {"a": row.value}
    if row.value is table.MISSING:
        del holder[last]
    else:
        holder[_place(last)] = row.value
    return changed


def _place(name: str) -> int | str:
    return int(name) if name.isdigit() else name
