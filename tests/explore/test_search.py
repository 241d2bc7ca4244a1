"""The search from every page: what it finds while the user types, for whom, and that the text is written nowhere."""

import html
import re
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from tests.explore.shop import open_shop
from tests.support import samples

from regulars.catalog.counts.counting import CountQueue
from regulars.catalog.counts.first_count import begin_first_count
from regulars.catalog.model import Catalog
from regulars.kit.settings import Settings
from regulars.sales.property_values import PropertyValues
from regulars.server import page_table
from regulars.web import cookies
from regulars.web.access import Role
from regulars.web.navigation import AREAS
from regulars.web.page_names import ENTRY_WORDS, OTHER_NAMES
from regulars.web.route import Audience

OPTION = re.compile(r'role="option"[^>]*href="([^"]*)".*?class="clip">(.*?)</span>', re.DOTALL)
# The search itself, targets of forms and redirects; and `/demo`, which is there while the demo is made.
NOT_FOUND_BY_NAME = {"/search", "/analyse", "/settings/texts/countries", "/demo"}


def typed(visitor, text: str) -> dict[str, str]:
    """The names that are found while typing, with their addresses."""
    answer = visitor.post("/search/suggestions", q=text)
    assert answer.status_code == 200, answer.text
    return {
        html.unescape(" ".join(name.split())): html.unescape(address).removeprefix(f"/o/{visitor.who.slug}")
        for address, name in OPTION.findall(answer.text)
    }


async def count_products(database, organization_id) -> None:
    async with database.transaction() as tx:
        await begin_first_count(tx, organization_id, Catalog.PRODUCTS)
    queue = CountQueue({Catalog.PRODUCTS: PropertyValues(age_min=timedelta(0))})
    while await queue.run_pass(database, organization_id):
        pass


def test_what_has_a_name_is_found_by_parts_and_with_typing_errors(visitor_as, api, api_database, tenant):
    api.post("/v1/stores", samples.store(external_id="XANTEN-1", name="Xanten Market"))
    line = samples.line(product={"external_id": "JEANS-7", "name": "Blaue Jeans", "properties": {}})
    assert api.post("/v1/sales-events", samples.sale("XANTEN-1", line_items=[line])).status == 201
    api_database.run(partial(count_products, organization_id=tenant.organization_id))
    marketer = visitor_as(Role.MARKETER)
    for text in ("laue jea", "jaens", "JEANS-7"):
        assert next(iter(typed(marketer, text).values())).startswith("/analyse/products?in="), text
    assert marketer.get(typed(marketer, "jaens")["Blaue Jeans"]).status_code == 200
    for text in ("xan", "anten", "xnaten", "xantem mark"):
        assert typed(marketer, text)["Xanten Market"] == "/stores/XANTEN-1", text
    assert next(iter(typed(marketer, "hours"))) == "Hours, caps and notices"
    assert typed(marketer, "huors")["Hours, caps and notices"] == "/settings/texts/rules"
    assert typed(visitor_as(Role.DEVELOPER), "token")["API keys"] == "/keys"
    assert "API keys" not in typed(marketer, "token")


def test_customers_and_tickets_are_found_by_their_beginnings_after_three_letters(visitor_as, api):
    shop = open_shop(api)
    marketer, customer = visitor_as(Role.MARKETER), shop.customer
    page = f"/customers/{customer['id']}"
    assert "Odile Fictive Odile" not in typed(marketer, "fi")
    for text in ("fic", customer["phone_number"][:8], f"00{customer['phone_number'][1:]}", customer["external_id"]):
        assert typed(marketer, text).get("Odile Fictive Odile") == page, text
    number = shop.ticket["external_id"]
    assert typed(marketer, number[:-2]).keys() >= {number, f"{number}-R"}
    assert typed(marketer, shop.number["id"]) == {shop.number["id"]: f"/consent/numbers/{shop.number['id']}"}
    for role in (Role.ANALYST, Role.DEVELOPER):
        masked = visitor_as(role)
        for text in ("fic", "Odile", customer["phone_number"], customer["external_id"]):
            answer = masked.post("/search/suggestions", q=text).text + masked.get("/search", q=text).text
            assert "/customers/" not in answer, (role, text)
        assert "phone number" not in masked.get("/search").text.lower()


def test_the_typed_text_is_in_no_address_and_no_log(visitor_as, server, api, api_database_url):
    shop = open_shop(api)
    marketer = visitor_as(Role.MARKETER)
    text = "zyxwvutsrq"
    marketer.post("/search/suggestions", q=text)
    answer = marketer.post("/search", q=text)
    assert answer.headers["location"].endswith("/search")
    page = marketer.http.get(
        marketer.url("/search"),
        headers={
            "Cookie": f"{cookies.SESSION_HTTP}={marketer.who.token}; {cookies.SEARCH}={answer.cookies[cookies.SEARCH]}"
        },
    ).text
    assert f"Nothing matches “{text}”" in page
    assert text not in marketer.get("/search").text
    assert marketer.post("/search", q=shop.customer["external_id"]).headers["location"].endswith(shop.customer["id"])
    forms = re.findall(r'<form[^>]*role="search"[^>]*>', page)
    assert len(forms) == 2
    assert all('method="post"' in form for form in forms)
    assert len(set(re.findall(r'aria-label="[^"]+"', "".join(forms)))) == 2
    with psycopg.connect(api_database_url) as connection:
        logged = connection.execute("SELECT count(*) FROM request_log WHERE request_log::text LIKE %s", (f"%{text}%",))
        assert logged.fetchone() == (0,)


@pytest.mark.parametrize("text", ["\0", "%", "(((", "\\", "a" * 300, "x " * 200, "' OR 1", "+" * 40, "💐"])
def test_any_text_has_an_answer(visitor_as, text):
    marketer = visitor_as(Role.MARKETER)
    for path in ("/search", "/search/suggestions"):
        assert marketer.post(path, q=text).status_code in {200, 303, 400}, path


def test_every_page_without_a_placeholder_has_a_name_in_the_search():
    pages = {
        page.path
        for page in page_table(Settings())
        if page.method == "GET" and page.needs is not Audience.OPEN and "{" not in page.path and "." not in page.path
    }
    entries = {path for area in AREAS for path in area.entries.values()}
    others = {name.path.partition("#")[0] for name in OTHER_NAMES}
    assert pages - entries - others == NOT_FOUND_BY_NAME
    assert others <= pages
    assert ENTRY_WORDS.keys() == entries
