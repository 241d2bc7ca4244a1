"""What every route refuses, whatever it does: keys, methods, sizes, media types and unusable idempotency keys."""

import re

import httpx
import pytest
from tests.support.client import Api
from tests.support.contract import Contract
from tests.support.routes import ROUTES
from tests.support.server import Server
from tests.support.tenant import another_key, new_tenant, revoke

from regulars.http.route import DocumentRoute, WriteRoute
from regulars.organizations.model import new_key

JSON_TYPE = (b"Content-Type", b"application/json")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
CASES = [(route.method, re.sub(r"\{[a-z_]+\}", "x", route.path)) for route in ROUTES]
KEYED = [
    (route.method, re.sub(r"\{[a-z_]+\}", "x", route.path)) for route in ROUTES if not isinstance(route, DocumentRoute)
]
WRITES = [(route.method, re.sub(r"\{[a-z_]+\}", "x", route.path)) for route in ROUTES if isinstance(route, WriteRoute)]
POSTS = [(method, path) for method, path in WRITES if method == "POST"]
PATHS = sorted({(re.sub(r"\{[a-z_]+\}", "x", route.path), route.path) for route in ROUTES})


@pytest.fixture(scope="module")
def caller(server: Server, contract: Contract, http: httpx.Client, api_database_url: str) -> Api:
    return Api(server, contract, http, new_tenant(api_database_url))


@pytest.fixture(scope="module")
def revoked_key(caller: Api, api_database_url: str) -> bytes:
    assert caller.tenant is not None
    spare = another_key(api_database_url, caller.tenant)
    revoke(api_database_url, spare)
    return spare.key.encode()


@pytest.mark.parametrize(("method", "path"), KEYED)
def test_it_asks_for_a_key_before_anything_else(caller: Api, revoked_key: bytes, method: str, path: str) -> None:
    assert caller.tenant is not None
    anonymous, key = caller.as_tenant(None), caller.tenant.key.encode()
    damaged = key[:-1] + (b"A" if key[-1:] != b"A" else b"B")
    for value in (b"", b"  ", b"x", damaged, new_key().encode(), revoked_key, key + b"x", b"x " + key):
        answer = anonymous.raw(method, path, headers=[(b"x-api-key", value), JSON_TYPE], body=b"{nonsense")
        assert answer.refused == (401, "UNAUTHORIZED"), value
    for headers in ([], [(b"Authorization", b"Bearer " + key)], [(b"x-api-key", key), (b"x-api-key", key)]):
        answer = anonymous.raw(method, path, headers=[*headers, JSON_TYPE], body=b"{nonsense")
        assert answer.refused == (401, "UNAUTHORIZED")
    in_query = anonymous.raw(method, f"{path}?x-api-key={caller.tenant.key}", headers=[JSON_TYPE], body=b"{}")
    assert in_query.refused == (401, "UNAUTHORIZED")


@pytest.mark.parametrize(("path", "template"), PATHS)
def test_it_refuses_other_methods_and_names_the_allowed_ones(caller: Api, path: str, template: str) -> None:
    allowed = {route.method for route in ROUTES if route.path == template}
    allowed |= {"HEAD"} if "GET" in allowed else set()
    for method in METHODS:
        if caller.contract.operation(method, path) is None:
            answer = caller.raw(method, path)
            assert answer.refused == (405, "METHOD_NOT_ALLOWED")
            assert set((answer.header("allow") or "").split(", ")) == allowed


@pytest.mark.parametrize(("method", "path"), CASES)
def test_it_refuses_long_urls_and_large_headers(caller: Api, method: str, path: str) -> None:
    body = b"{}" if method == "POST" else None
    long_url = caller.raw(method, f"{path}?x={'y' * 20_000}", headers=[JSON_TYPE], body=body)
    assert long_url.refused == (414, "URI_TOO_LONG")
    large = caller.raw(method, path, headers=[JSON_TYPE, (b"X-Large", b"x" * 65_536)], body=body)
    assert large.refused == (431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize(("method", "path"), CASES)
def test_it_refuses_unknown_query_parameters_and_answers_json_to_anyone(caller: Api, method: str, path: str) -> None:
    body = b"{}" if method == "POST" else None
    headers = [JSON_TYPE, (b"Accept", b"text/xml")]
    assert caller.raw(method, f"{path}?unknown=1", headers=headers, body=body).refused == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(("method", "path"), CASES)
def test_its_path_is_exact(caller: Api, method: str, path: str) -> None:
    body = b"{}" if method == "POST" else None
    for wrong in (path + "/", path.replace("/v1/", "/v1//"), path.replace("/v1/", "/v2/")):
        answer = caller.raw(method, wrong, headers=[JSON_TYPE], body=body)
        assert answer.refused == (404, "ROUTE_NOT_FOUND"), wrong


@pytest.mark.parametrize(("method", "path"), POSTS)
def test_it_refuses_other_media_types_and_compressed_bodies(caller: Api, method: str, path: str) -> None:
    bad: list[list[tuple[bytes, bytes]]] = [[], [(b"Content-Type", b"text/plain")]]
    encoding = b"br" if path.endswith("/batch") else b"gzip"
    for headers in (*bad, [JSON_TYPE, (b"Content-Encoding", encoding)]):
        assert caller.raw(method, path, headers=headers, body=b"{}").refused == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(("method", "path"), POSTS)
def test_it_refuses_a_body_that_is_too_large(caller: Api, method: str, path: str) -> None:
    size = (8 << 20) if path.endswith("/batch") else (1 << 20)
    answer = caller.raw(method, path, headers=[JSON_TYPE], body=b" " * (size + 1))
    assert answer.refused == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_it_refuses_an_idempotency_key_it_cannot_use(caller: Api, method: str, path: str) -> None:
    body = b"{}" if method == "POST" else None
    for values in ([b""], [b"x" * 256], [b"a b"], [b"caf\xe9"], [b"a", b"b"]):
        headers = [JSON_TYPE, *((b"Idempotency-Key", value) for value in values)]
        assert caller.raw(method, path, headers=headers, body=body).refused == (400, "INVALID_IDEMPOTENCY_KEY")
