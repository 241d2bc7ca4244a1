"""The `type` of a refusal leads to a page that explains it, and the committed page is the served one."""

from pathlib import Path

import httpx
from tests.support.client import Api, get_url
from tests.support.routes import ROUTES

from regulars.http import refusals
from regulars.http.refusals import refusals_of_all

COMMITTED = Path(__file__).parents[2] / "docs" / "errors.md"


def test_every_code_has_its_page_in_the_documents() -> None:
    text = COMMITTED.read_text(encoding="utf-8")
    assert text == refusals.render_markdown(ROUTES), "run bin/openapi"
    for error in refusals_of_all(ROUTES):
        assert f"## {error.code}\n" in text


def test_the_type_of_a_refusal_can_be_followed(api: Api) -> None:
    kind = api.get("/v1/stores/nowhere").json()["type"]
    response = get_url(httpx.URL(api.server.url).join(kind))
    assert response.status_code == 200
    assert f'id="{kind.partition("#")[2]}"' in response.text
