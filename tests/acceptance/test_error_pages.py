"""The `type` of a refusal leads to a page that explains it, and the committed page is the served one."""

from pathlib import Path

import httpx
from tests.support.client import Api

from regulars.http import error_pages
from regulars.kit.errors import ALL_ERRORS

COMMITTED = Path(__file__).parents[2] / "docs" / "errors.md"


def test_every_code_has_its_page_in_the_documents() -> None:
    assert set(error_pages.PAGES) == set(ALL_ERRORS)
    text = COMMITTED.read_text(encoding="utf-8")
    assert text == error_pages.render_markdown(), "run bin/openapi"
    for error in ALL_ERRORS:
        assert f"## {error.code}\n" in text


def test_the_type_of_a_refusal_can_be_followed(api: Api) -> None:
    kind = api.get("/v1/stores/nowhere").json()["type"]
    response = httpx.get(httpx.URL(api.server.url).join(kind), trust_env=False)
    assert response.status_code == 200
    assert f'id="{kind.partition("#")[2]}"' in response.text
