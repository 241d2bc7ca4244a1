"""Routes, methods, sizes and media types: one envelope for all of it, in the order that the rulings give."""

import json
import re
from typing import Any

import pytest
from tests.support import raw, samples
from tests.support.client import Api
from tests.support.server import Server

JSON_TYPE = (b"Content-Type", b"application/json")
MIB = 1 << 20


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/nothing", "/v2/profiles", "/v1//profiles", "/v1/profiles/", "/v1/profiles/x/", "/v1/Profiles", "/v1/profiles/x/attributes/", "/v1/../v1/profiles", "/v1/%70rofiles", "/v99/x", "/v1/stores/x/y/z"],
)  # fmt: skip
def test_an_unknown_path_is_404_in_the_envelope_and_no_redirect(api: Api, path: str) -> None:
    assert api.raw("GET", path).refused == (404, "ROUTE_NOT_FOUND")


def test_an_unknown_route_is_404_without_a_key_too(anonymous: Api) -> None:
    assert anonymous.get("/v1/nothing").refused == (404, "ROUTE_NOT_FOUND")


def test_a_head_request_and_an_unknown_method_are_refused_without_a_body(anonymous: Api) -> None:
    """The others are refused as bad inputs, route by route."""
    address = anonymous.server.address
    refused, unknown = (raw.send(address, "HEAD", f"/v1/{it}") for it in ("subscriptions/opt-in", "profiles/batch/x"))
    assert (refused.status, refused.body, refused.headers["allow"]) == (405, b"", "POST")
    assert (unknown.status, unknown.body) == (404, b"")
    assert raw.send(address, "QUERY", "/v1/stores").status in (400, 405)


def test_every_answer_has_a_request_id_and_a_valid_one_of_the_caller_is_used(api: Api) -> None:
    first, second = api.get("/v1/stores"), api.get("/v1/stores")
    assert first.header("x-request-id") != second.header("x-request-id")
    given = {"X-Request-Id": "till-7:ticket_99.A"}
    assert api.get("/v1/stores", headers=given).header("x-request-id") == "till-7:ticket_99.A"
    assert api.get("/v1/nothing", headers=given).json()["request_id"] == "till-7:ticket_99.A"


@pytest.mark.parametrize("bad", [b"", b"x" * 129, b"a b", b"<script>", b"caf\xc3\xa9", b"a\x09b"])
def test_a_request_id_that_is_not_sane_is_replaced(api: Api, bad: bytes) -> None:
    answer = api.raw("GET", "/v1/stores", headers=[(b"X-Request-Id", bad)])
    assert re.fullmatch(r"[A-Za-z0-9._:-]{8,128}", answer.header("x-request-id") or "")


def test_the_envelope_names_its_page(api: Api) -> None:
    problem = api.get("/v1/stores/nowhere").json()
    assert problem["type"] == f"{api.server.url}/docs/errors#store-not-found"
    assert set(problem) == {"type", "title", "status", "detail", "code", "request_id"}


def test_every_refusal_names_its_page_by_the_address_the_caller_used(api: Api, anonymous: Api) -> None:
    page = f"{api.server.url}/docs/errors#"
    bad = samples.profile(external_id="prof_x")
    refused = [
        anonymous.get("/v1/stores"),
        api.get("/v1/nothing"),
        api.get("/v1/stores", limit=0),
        api.post("/v1/profiles", bad),
        api.post("/v1/profiles", content=b"{"),
        api.post("/v1/profiles", bad, idempotency_key=samples.unique()),
        api.post("/v1/sales-events", samples.sale("nowhere")),
    ]
    assert [answer.json()["type"].partition("#")[0] + "#" for answer in refused] == [page] * len(refused)
    [result] = api.post("/v1/profiles/batch", {"items": [bad]}).json()["results"]
    assert result["body"]["type"] == page + "reserved-external-id"
    # Again, by a head that the server has read before; and by a host that names no machine.
    assert api.tenant is not None
    head = b"GET /v1/stores/nowhere HTTP/1.1\r\nHost: %b\r\nx-api-key: " + api.tenant.key.encode() + b"\r\n\r\n"
    for host, shown in ((b"shop.example:8443", "http://shop.example:8443"), (b"a<b", "")):
        for _ in range(2):
            answer = api.exchange("GET", "/v1/stores/nowhere", head % host)
            assert answer.json()["type"] == f"{shown}/docs/errors#store-not-found"


def test_a_url_of_20_kb_is_414_and_one_of_7_kb_is_read(api: Api) -> None:
    assert api.raw("GET", "/v1/stores?cursor=" + "x" * 20_000).refused == (414, "URI_TOO_LONG")
    assert api.raw("GET", "/v1/profiles/" + "x" * 20_000).refused == (414, "URI_TOO_LONG")
    assert api.raw("GET", "/v1/stores?cursor=" + "x" * 7_000).refused == (400, "INVALID_CURSOR")


def test_headers_of_64_kb_are_431_and_8_kb_are_read(api: Api) -> None:
    assert api.raw("GET", "/v1/stores", headers=[(b"X-Big", b"x" * 65_000)]).refused == (431, "HEADERS_TOO_LARGE")
    many = [(b"X-%d" % number, b"x" * 1000) for number in range(40)]
    assert api.raw("GET", "/v1/stores", headers=many).refused == (431, "HEADERS_TOO_LARGE")
    assert api.raw("GET", "/v1/stores", headers=[(b"X-Big", b"x" * 8_000)]).status == 200


@pytest.mark.parametrize(("path", "limit"), [("/v1/profiles", MIB), ("/v1/profiles/batch", 8 * MIB)])
def test_a_body_over_the_limit_is_413_with_and_without_content_length(api: Api, path: str, limit: int) -> None:
    body = _padded({"external_id": samples.unique(), "items": []}, limit + 1)
    head = [*api.key_header(), JSON_TYPE]
    assert api.raw("POST", path, headers=[JSON_TYPE], body=body).refused == (413, "PAYLOAD_TOO_LARGE")
    chunks = [body[start : start + 65_536] for start in range(0, len(body), 65_536)]
    chunked = raw.chunked_bytes(b"POST", path.encode(), head, chunks)
    assert api.exchange("POST", path, chunked).refused == (413, "PAYLOAD_TOO_LARGE")


def test_a_body_of_exactly_the_limit_is_read_with_and_without_content_length(api: Api) -> None:
    body = _padded({"external_id": samples.unique()}, MIB)
    assert api.raw("POST", "/v1/profiles", headers=[JSON_TYPE], body=body).status == 201
    chunked = raw.chunked_bytes(b"POST", b"/v1/profiles", [*api.key_header(), JSON_TYPE], [body[:10], body[10:]])
    answer = raw.exchange(api.server.address, chunked)
    assert answer.status == 200
    assert json.loads(answer.body)["external_id"] == json.loads(body)["external_id"]


def test_an_announced_length_over_the_limit_is_refused_before_the_body_arrives(api: Api) -> None:
    headers = [*api.key_header(), JSON_TYPE, (b"Content-Length", b"%d" % (MIB + 1))]
    # Not a byte of the body is ever sent: a server that waited for it could only answer that it did not come.
    answer = api.exchange("POST", "/v1/profiles", raw.request_bytes(b"POST", b"/v1/profiles", headers))
    assert answer.refused == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    "content_type",
    [b"application/json; charset=utf-8", b'application/json;charset="UTF-8"', b"Application/JSON", b"application/json; version=1", b'application/json;profile="a;b\\"c";Charset=UTF-8', b"application/json;", b"application/json ; odata.metadata=minimal"],
)  # fmt: skip
def test_json_in_utf_8_may_be_spelled_out(api: Api, content_type: bytes) -> None:
    body = samples.json_bytes(samples.profile())
    assert api.raw("POST", "/v1/profiles", headers=[(b"Content-Type", content_type)], body=body).status == 201


@pytest.mark.parametrize(
    "content_type",
    [b"application/json; charset=utf-16", b"application/json; version=1; charset=latin-1", b"application/jsonx", b"application/json-patch+json", b"application/problem+json", b"application/json, text/plain", b"application/json version=1", b'application/json; a="b', b"application/json; a"],
)  # fmt: skip
def test_another_charset_and_what_only_begins_like_json_are_415(api: Api, content_type: bytes) -> None:
    body = samples.json_bytes(samples.profile())
    answer = api.raw("POST", "/v1/profiles", headers=[(b"Content-Type", content_type)], body=body)
    assert answer.refused == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_whatever_the_caller_accepts_it_gets_json(api: Api) -> None:
    assert api.get("/v1/stores", headers={"Accept": "text/xml"}).header("content-type") == "application/json"


def test_a_head_request_gets_what_a_get_would_without_the_body(api: Api, either_server: Server) -> None:
    headers = [*api.key_header(), (b"X-Request-Id", b"same")]
    for target in ("/v1/stores", "/v1/stores?limit=1", "/v1/stores/nowhere", "/v1/openapi.json", "/v1/stores?no=1"):
        read, head = (raw.send(either_server.address, method, target, headers=headers) for method in ("GET", "HEAD"))
        assert head.body == b""
        assert head.status == read.status
        varying = {"date", "ratelimit-remaining", "ratelimit-reset"}
        headers_of_both = [
            {name: value for name, value in answer.headers.items() if name not in varying} for answer in (head, read)
        ]
        assert headers_of_both[0] == headers_of_both[1]
    assert raw.send(either_server.address, "HEAD", "/v1/stores").status == 401


def test_no_answer_may_be_cached_or_sniffed(api: Api, either_server: Server, store: dict[str, Any]) -> None:
    sale = raw.json_body(samples.sale(store["external_id"]))
    post = raw.request_bytes(b"POST", b"/v1/sales-events", [*api.key_header(), JSON_TYPE], sale)
    said = [post, post, raw.request_bytes(b"GET", b"/v1/openapi.json", []), raw.request_bytes(b"GET", b"/v1/x", [])]
    erase = raw.request_bytes(b"DELETE", b"/v1/profiles/nobody", api.key_header())
    endless = b"GET /v1/stores HTTP/1.1\r\nHost: x\r\nX-Endless: " + b"x" * (1 << 20)
    for request in [*said, erase, endless]:
        answer = raw.exchange(either_server.address, request)
        assert answer.headers.get_all("x-content-type-options") == ["nosniff"]
        assert answer.headers.get_all("cache-control") == ["no-store"]


@pytest.mark.parametrize("target", ["/v1/stores", "/v1/nothing", "/v1/sales-events", "/healthz", "/"])
def test_a_request_without_one_host_is_refused_before_anything_else(
    api: Api, either_server: Server, store: dict[str, Any], target: str
) -> None:
    body = raw.json_body(samples.sale(store["external_id"])) if target == "/v1/sales-events" else None
    request = raw.request_bytes(
        b"GET" if body is None else b"POST", target.encode(), [*api.key_header(), JSON_TYPE], body
    )
    host = b"Host: regulars.test\r\n"
    for hosts in (b"", host + b"Host: other.test\r\n", host + host):
        for said in (request, raw.keep_alive(request)):
            answer = raw.exchange(either_server.address, said.replace(host, hosts))
            problem = json.loads(answer.body)
            assert (answer.status, problem["code"]) == (400, "VALIDATION_ERROR")
            assert problem["errors"][0]["code"] == "HOST"
    old = request.replace(host, b"").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert raw.exchange(either_server.address, old).status in {200, 201, 404}


@pytest.mark.parametrize("query", ["limit=5&", "&limit=5", "&&", "limit=5&&"])
def test_an_empty_field_of_a_query_says_nothing(api: Api, query: str) -> None:
    assert raw.send(api.server.address, "GET", f"/v1/stores?{query}", headers=api.key_header()).status == 200


def test_a_read_ignores_a_body(api: Api) -> None:
    assert api.raw("GET", "/v1/stores", headers=[JSON_TYPE], body=b"{nonsense").status == 200


def test_refusals_come_in_the_ruled_order(api: Api, anonymous: Api) -> None:
    large = b"x" * (MIB + 1)
    wrong_type = [(b"Content-Type", b"text/plain")]
    assert anonymous.raw("PUT", "/v1/nothing", body=large).status == 404
    assert anonymous.raw("PUT", "/v1/profiles", body=large).status == 405
    assert anonymous.raw("POST", "/v1/profiles", headers=wrong_type, body=b"{").status == 401
    assert api.raw("POST", "/v1/profiles", headers=[*wrong_type, (b"Idempotency-Key", b"")], body=b"{").status == 415
    bad_key = api.raw("POST", "/v1/profiles", headers=[JSON_TYPE, (b"Idempotency-Key", b"")], body=b"{")
    assert bad_key.refused == (400, "INVALID_IDEMPOTENCY_KEY")
    assert api.post("/v1/sales-events", {"store_id": "nowhere"}).refused == (400, "VALIDATION_ERROR")


def _padded(body: dict[str, object], size: int) -> bytes:
    """The body with an unknown field that brings it to exactly this many bytes."""
    return samples.json_bytes({**body, "pad": "x" * (size - len(samples.json_bytes({**body, "pad": ""})))})
