import json
import re

import pytest
from tests.explore.pages import Page, get, read
from tests.support import raw
from tests.support.client import post_url
from tests.support.routes import ROUTES
from tests.support.server import Server, running_server

from regulars.http.refusals import refusals_of_all

PATHS = ["/", "/docs/api", "/docs/errors", "/docs/webhooks", "/docs/imports", "/docs/changelog"]
SCRIPT = b"<script>alert(1)</script>"


def request_with_host(path: bytes, host: bytes) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (path, host)


@pytest.mark.parametrize("path", PATHS)
def test_a_page_loads_nothing_from_elsewhere_and_runs_nothing(server: Server, path: str):
    page = read(server, path)
    # A document may lead elsewhere, which loads nothing.
    leading = [link for link in page.links if link.startswith("https://")] if path.startswith("/docs/") else []
    assert [link for link in page.links if link not in leading and not re.match(r"[/#](?!/)", link)] == []
    # The reference has a form: its search box, which only reads.
    assert {"script", "style", "iframe", "object", "embed", "form"} & set(page.tags) <= (
        {"form"} if path == "/docs/api" else set()
    )
    assert [name for name in page.attributes if name == "style" or name.startswith("on")] == []


@pytest.mark.parametrize("path", [*PATHS, "/nowhere"])
def test_the_headers_of_a_page_restrict_the_browser_to_this_server(server: Server, path: str):
    headers = get(server, path).headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none';" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", PATHS)
def test_every_link_leads_somewhere(server: Server, path: str):
    page = read(server, path)
    assert len(page.ids) == len(set(page.ids))
    for link in {link for link in page.links if not link.startswith("https://")}:
        target, _, anchor = link.partition("#")
        there = read(server, target) if target and anchor else page
        if target and not anchor:
            assert get(server, target).status_code == 200, link
        assert not anchor or anchor in there.ids, link


def test_a_document_is_shown_as_its_file_has_it_and_files_that_are_none_are_not_served(server: Server):
    page = read(server, "/docs/webhooks")
    # Where the definitions of a page of Analyse lead.
    assert {"/docs/analytics", "/docs/attribution"} <= set(page.links)
    assert "webhook-signature" in page.text
    assert "table" in page.tags
    for path in ("/docs/nothing", "/docs/../pyproject.toml", "/docs/openapi.json", "/docs/images/home.png", "/docs/"):
        assert get(server, path).status_code == 404, path


def test_the_reference_shows_each_example_in_every_language_with_the_address_of_this_server(server: Server):
    page = read(server, "/docs/api")
    programs = [block for block in page.blocks if "API_KEY" in block]
    assert len(programs) == 6 * 7
    assert all(server.url in block for block in programs)
    assert sum("whsec_" in block for block in page.blocks) == 7


def test_the_postman_collection_has_every_operation_with_its_example(server: Server):
    made = get(server, "/docs/postman.json").json()
    requests = [one["request"] for folder in made["item"] for one in folder["item"]]
    assert len(requests) == sum(len(methods) for methods in get(server, "/v1/openapi.json").json()["paths"].values())
    assert {"key": "base_url", "value": server.url} in made["variable"]
    assert "server.invalid" not in json.dumps(made)
    [sale] = [one for one in requests if one["method"] == "POST" and one["url"] == "{{base_url}}/v1/sales-events"]
    assert json.loads(sale["body"]["raw"])["type"] == "PURCHASE"


def test_every_code_has_its_section(server: Server):
    page = read(server, "/docs/errors")
    for error in refusals_of_all(ROUTES):
        assert error.code.lower().replace("_", "-") in page.ids
        assert f"{error.title}." in page.text
    assert page.text.count("do not retry") == sum(error.retry.startswith("No") for error in refusals_of_all(ROUTES))


def test_every_operation_has_its_section_with_a_command_for_this_server(server: Server):
    page = read(server, "/docs/api")
    for route in ROUTES:
        assert route.operation_id in page.ids
        assert f"<code>{route.path}</code>" in page.text
    commands = [block for block in page.blocks if block.startswith("curl ")]
    assert len(commands) == len(ROUTES)
    assert all(f" {server.url}/v1/" in command for command in commands)


def test_every_schema_of_the_document_has_its_section(server: Server):
    document = get(server, "/v1/openapi.json").json()
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(read(server, "/docs/api").ids)


def test_the_first_page_says_ready_and_when(server: Server):
    text = get(server, "/").text
    assert "The database responds" in text
    assert "Not ready" not in text
    assert re.search(r'<time datetime="20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ">', text)


def test_the_first_page_says_what_is_missing(empty_database_url: str):
    with running_server(empty_database_url) as server:
        text = get(server, "/").text
    assert "Not ready" in text
    assert "Migrations are missing: run <code>regulars migrate</code>." in text


@pytest.mark.parametrize("path", ["/nowhere", "/docs/nowhere", "/docs/api/", "/static/x/..%2Fpages.py"])
def test_what_is_not_there_gets_a_page_that_leads_back(server: Server, path: str):
    response = get(server, path)
    assert response.status_code == 404
    assert "There is no page here" in response.text
    assert "/" in Page(response.text).links


def test_a_page_takes_no_other_method(server: Server):
    response = post_url(server.url + "/")
    assert response.status_code == 405
    assert "GET" in response.headers["allow"]
    assert "Method Not Allowed" in response.text


def test_an_unknown_path_of_the_interface_stays_in_its_envelope(server: Server):
    assert get(server, "/v1/nowhere").json()["code"] == "ROUTE_NOT_FOUND"


@pytest.mark.parametrize("path", [b"/", b"/docs/api", b"/nowhere"])
@pytest.mark.parametrize("host", [b'"' + SCRIPT, b"evil.example/" + SCRIPT, b"$(reboot)", b"a b", b"'; reboot; '"])
def test_a_hostile_host_is_not_repeated(server: Server, path: bytes, host: bytes):
    answer = raw.exchange(server.address, request_with_host(path, host))
    assert answer.status in {200, 400, 404}
    for part in (SCRIPT, b"evil.example", b"reboot", b"a b/v1"):
        assert part not in answer.body


def test_a_hostile_path_is_not_repeated(server: Server):
    assert SCRIPT not in raw.send(server.address, "GET", f"/{SCRIPT.decode()}").body


def test_the_commands_name_the_address_the_caller_used(server: Server):
    for path in (b"/", b"/docs/api"):
        answer = raw.exchange(server.address, request_with_host(path, b"shop.example:8443"))
        assert b"curl -s http://shop.example:8443/v1/stores" in answer.body


def test_the_commands_name_the_public_address_when_one_is_set(start_server):
    running = start_server(public_url="https://regulars.example.com/a'b&c")
    for path in PATHS[:2]:
        page = read(running, path)
        assert "https://regulars.example.com/a&#39;b&amp;c" in page.text.replace("&#x27;", "&#39;")
        assert any("https://regulars.example.com/a'b&c/v1/stores" in block for block in page.blocks)


def test_a_style_may_be_cached_for_ever_under_its_version_only(server: Server):
    [address] = [link for link in read(server, "/").links if link.endswith(".css")]
    style = get(server, address)
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in style.headers["cache-control"]
    assert get(server, "/assets/site-000000000000.css").status_code == 404


def test_styles_load_only_the_fonts_of_this_server(server: Server):
    for address in read(server, "/").links:
        if address.endswith(".css"):
            assert re.findall(r'url\((?!"/assets/inter)|@import|https?:', get(server, address).text) == []
