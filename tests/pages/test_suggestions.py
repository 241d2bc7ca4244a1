"""What fields of conditions suggest, and how a user searches without a script."""

import html
import re

import pytest
from tests.pages.segment_shop import LINEN, SegmentShop, open_counted_shop
from tests.support import samples
from tests.support.journeys import make_journey
from tests.support.visitor import Visitor

from regulars.catalog.model import AttributeType
from regulars.web.access import Role

BOUGHT = {"r~kind": "all", "r.0~kind": "bought", "r.0~low": "1", "r.0~days": "30"}
CITY = {"r~kind": "all", "r.0~kind": "attribute", "r.0~key": "city", "r.0~was": "city", "r.0~cmp": "any_of"}
SHIRT = {**LINEN, "external_id": "LIN-2", "name": "Chemisier"}


@pytest.fixture
def shop(api, api_database_url) -> SegmentShop:
    return open_counted_shop(api, api_database_url)


def suggest(visitor: Visitor, of: str, typed: str, **more: str) -> list[str]:
    """The lines of the list, and the message below it."""
    answer = visitor.post("/suggestions", of=of, typed=typed, **more)
    assert answer.status_code == 200, answer.text
    options = re.findall(r'<div role="option".*?</div>', answer.text, re.DOTALL)
    lines = [*options, *re.findall(r'data-status="([^"]+)"', answer.text)]
    return [" ".join(html.unescape(re.sub("<[^>]+>", " ", line)).split()) for line in lines]


def test_fields_suggest_products_values_keys_and_stores(marketer, shop):
    for currency, cents in (("CHF", 6000), ("EUR", 5100)):
        sold = samples.line(product=LINEN, unit_price_cents=cents)
        ticket = samples.sale(shop.store, currency=currency, line_items=[sold])
        assert shop.api.post("/v1/sales-events", ticket).status == 201
    shop.count()
    shirt = "Chemise LIN-1 CHF 60.00 · €49.00–€51.00 · 8 sold in 30 days"
    assert suggest(marketer, "products", "CHEM") == suggest(marketer, "products", "lin-") == [shirt]
    assert suggest(marketer, "products", "chapeau") == [
        "No ticket has a product with this name or code. Enter takes it as a code."
    ]
    assert suggest(marketer, "stores", "lyon") == ["Lyon Part-Dieu PART Lyon", "Presqu’île ISLE Lyon"]
    assert suggest(marketer, "stores", "part") == ["Lyon Part-Dieu PART Lyon"]
    assert suggest(marketer, "attributes", "ci") == ["City city text"]
    assert suggest(marketer, "attribute_values", "ly", key="city") == ["Lyon 5 customers"]
    assert suggest(marketer, "property_values", "l", key="collection") == ["Lin lavé 8 ticket lines"]


def test_before_tickets_are_counted_no_product_is_called_unsold(marketer):
    assert suggest(marketer, "products", "chapeau") == ["Not found yet: tickets are still being counted."]
    page = marketer.post("/segments/draft", name="x", **BOUGHT, **{"r.0~more_products": "NEW-9"}).text
    assert (chips(page, "products"), "never sold" in page) == (["NEW-9"], False)


def test_what_cannot_be_suggested_is_answered(marketer, shop):
    assert suggest(marketer, "products", "x" * 300) == ["Type at most 255 characters; these are 300."]
    for key in ("city", "unknown"):
        assert suggest(marketer, "attribute_values", "x" * 300, key=key) == []
    long = marketer.post("/segments/draft", name="x", **CITY, **{"r.0~more_values": "x" * 300}).text
    assert chips(long, "values") == ["x" * 300]
    assert marketer.post("/suggestions", of="customers", typed="a").status_code == 400
    shop.declare("size", AttributeType.TEXT)
    shop.customer("Lou", size="12")
    shop.declare("size", AttributeType.ENUM, *(f"Size {number}" for number in range(1_000)))
    found = suggest(marketer, "attribute_values", "size", key="size")
    assert (len(found), found[-1]) == (21, "Only the first 20 are shown. Type more to find others.")


def test_a_masked_role_gets_only_values_that_staff_declared(visitor_as, shop):
    analyst = visitor_as(Role.ANALYST)
    assert suggest(analyst, "attribute_values", "ly", key="city") == []
    shop.declare("city", AttributeType.ENUM, "Lyon", "Lyrique")
    assert suggest(analyst, "attribute_values", "ly", key="city") == ["Lyon 5 customers", "Lyrique"]
    assert visitor_as(Role.DEVELOPER).post("/suggestions", of="products", typed="a").status_code == 403


def chips(page: str, name: str) -> list[str]:
    return re.findall(rf'<input type="hidden" name="r.0~{name}" value="([^"]*)">', page)


def test_without_a_script_a_typed_name_is_searched_when_the_form_is_sent(marketer, shop):
    def send(act: str = "", path: str = "draft", **fields: str):
        sent = {**BOUGHT, **{f"r.0~{name}": value for name, value in fields.items()}}
        return marketer.post(f"/segments/{path}", name="x", act=act, **sent)

    assert chips(send(more_products="chemise").text, "products") == ["LIN-1"]
    assert chips(send(more_stores="presqu’île").text, "stores") == ["ISLE"]
    # A code that no ticket has is used as it is, and marked.
    unknown = send(more_products="NEW-9").text
    assert chips(unknown, "products") == ["NEW-9"]
    assert "never sold" in unknown
    shop.sale(shop.customer("Buyer"), days=1, cents=100, product=SHIRT)
    shop.count()
    asked = send(more_products="chem")
    assert chips(asked.text, "products") == []
    assert "Choose what you mean by “chem”." in asked.text
    assert re.findall(r'value="pick r.0 products ([^"]+)"', asked.text) == ["LIN-1", "LIN-2", "chem"]
    assert send(path="save", more_products="chem").status_code == 400
    picked = send("pick r.0 products LIN-2", more_products="chem").text
    assert chips(picked, "products") == ["LIN-2"]
    assert "Remove Chemisier (LIN-2)" in picked
    assert "never sold" not in picked
    assert send(more_products="x" * 300).text.count("Type at most 255 characters") == 1


def test_a_journey_searches_in_the_same_way(marketer, shop, api_database_url):
    journey = make_journey(api_database_url, shop.organization_id, {"do": "wait", "days": 1}, is_live=False)
    fields = {"of": "filter", "r~kind": "all", "r.0~kind": "product", "r.0~more_products": "chemise"}
    page = marketer.post(f"/journeys/{journey}/edit/condition", act="", **fields).text
    assert chips(page, "products") == ["LIN-1"]
    assert 'data-of="products"' in page


def test_a_value_of_a_fixed_list_is_found_and_another_value_is_used_as_it_is(marketer, shop):
    rare = marketer.post("/segments/draft", name="x", **CITY, **{"r.0~more_values": "Lyrique"}).text
    assert chips(rare, "values") == ["Lyrique"]
    shop.declare("city", AttributeType.ENUM, "Lyon", "Lyrique")
    asked = marketer.post("/segments/draft", name="x", **CITY, **{"r.0~more_values": "ly"}).text
    assert re.findall(r'value="pick r.0 values ([^"]+)"', asked) == ["Lyon", "Lyrique"]
