import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from regulars.explore.pages import ERROR_HANDLERS
from regulars.explore.reference import curl, read_reference
from regulars.explore.schemas import field_of, type_of
from regulars.web.render import inline, paragraphs, public_html


def words(schema) -> str:
    return "".join(piece.text for piece in type_of(schema))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain & <b>", "plain &amp; &lt;b&gt;"),
        ("a `code` b", "a <code>code</code> b"),
        ("`<i>`", "<code>&lt;i&gt;</code>"),
        ("**Bold.** and `**not**`", "<strong>Bold.</strong> and <code>**not**</code>"),
        ("", ""),
    ],
)
def test_marks_become_elements_and_the_rest_stays_text(text, html):
    assert inline(text) == html


def test_an_empty_line_parts_paragraphs():
    assert paragraphs("one\n\n<two>\n") == "<p>one</p>\n<p>&lt;two&gt;</p>"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"enum": ["A"]}, "string"),
        ({"type": ["object", "array", "null"]}, "object or list or null"),
        ({"anyOf": [{"$ref": "#/components/schemas/Ticket"}, {"type": "null"}]}, "Ticket or null"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Line"}}, "list of Line"),
        (
            {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "map of (string or null)",
        ),
        ({"type": "object", "additionalProperties": {}}, "object"),
        ({}, "any value"),
    ],
)
def test_a_type_is_said_in_words(schema, said):
    assert words(schema) == said


def test_a_named_type_leads_to_its_section():
    (piece,) = type_of({"$ref": "#/components/schemas/Ticket"})
    assert piece.anchor == "schema-Ticket"


def test_an_optional_field_is_described_by_what_it_may_hold():
    held = {"type": "string", "maxLength": 1024, "description": "Said.", "examples": ["x"]}
    field = field_of("name", {"anyOf": [held, {"type": "null"}]}, is_required=False)
    assert (field.description, field.limits, field.example) == ("Said.", "at most 1,024 characters", "x")


def test_a_quote_in_a_body_does_not_end_the_argument():
    assert curl("http://h/v1/x", body='{"a": "it\'s"}').endswith("-d '{\"a\": \"it'\\''s\"}'")


def test_hostile_texts_of_a_document_stay_texts():
    hostile = "<img src=x onerror=alert(1)>"
    operation = {
        "operationId": "op",
        "tags": ["T"],
        "summary": hostile,
        "responses": {"200": {"description": hostile}},
    }
    document = {
        "info": {"description": hostile},
        "servers": [{"url": "http://h"}],
        "security": [{"ApiKey": []}],
        "tags": [{"name": "T", "description": hostile}],
        "paths": {"/v1/x": {"delete": operation}},
        "components": {"schemas": {}, "headers": {}},
    }
    found = read_reference(document)
    assert found.subjects[0].operations[0].curl.startswith("curl -s -X DELETE http://h/v1/x")
    assert "<img" not in render_reference(found)


def render_reference(found) -> str:
    return public_html("explore/reference.html", reference=found, base="http://h", search_text="<img src=x>")


def test_a_page_that_breaks_says_so_and_keeps_its_secrets():
    async def broken(_request):
        raise RuntimeError("the password is swordfish")

    async def ask() -> httpx.Response:
        app = Starlette(routes=[Route("/", broken)], exception_handlers=ERROR_HANDLERS)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.get("/")

    response = asyncio.run(ask())
    assert response.status_code == 500
    assert "Something went wrong" in response.text
    assert "swordfish" not in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"]
