"""The list of customers, narrowed and sorted by the analysis process; its filters are a segment that can be saved."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from tests.pages.segment_shop import WOOL
from tests.support import samples
from tests.support.waiting import ask_until

from regulars.explore.customers.filters import read_amount
from regulars.web.access import Role


def names(page: str) -> list[str]:
    rows = re.findall(r'<a class="name"[^>]*>\s*(.*?)\s*</a>', page, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", row).strip() for row in rows]


def test_customers_are_narrowed_sorted_saved_and_exported(marketer, crowd):
    shop = crowd.shop
    big, small = shop.customer("Zoe"), shop.customer("Yve")
    shop.sale(big, days=2, cents=900_000, product=WOOL)
    shop.sale(small, days=1, cents=800_000, product=WOOL)
    shop.sale(shop.customer("Old"), days=200, cents=850_000, product=WOOL)
    shop.prepare()
    by_spend = ask_until("found, as of", lambda: marketer.get("/customers?sort=spend"))
    assert names(by_spend)[:3] == ["Zoe", "Old", "Yve"]
    assert names(marketer.get("/customers?sort=last").text)[:3] == ["Odile", "Yve", "Zoe"]
    page = marketer.get("/customers?spend=8000&last=30&sort=spend").text
    assert names(page) == ["Zoe", "Yve"]
    assert "2 customers found" in page
    assert names(marketer.get("/customers?spend=8000&last=-90").text) == ["Old"]
    assert names(marketer.get("/customers?spend=8000+CHF").text) == []
    # What cannot be read is said, and nothing is pretended.
    wrong = marketer.get("/customers?spend=much").text
    assert "is not an amount" in wrong
    assert names(wrong) == []
    # The filters are a segment.
    [link] = re.findall(r'href="([^"]*/segments/new\?match=[^"]*)"', page)
    address = urlsplit(unescape(link))
    assert '"at_least_cents":800000' in parse_qs(address.query)["match"][0]
    builder = marketer.get("/segments/new?" + address.query).text
    assert 'value="8000' in builder
    shown = marketer.get("/customers?spend=8000&last=30&hide=months,number").text
    assert "Last 12 months</th>" not in shown
    assert "Tickets</th>" in shown
    file = marketer.get("/customers.csv?spend=8000&last=30&sort=spend")
    assert [line.split(",")[2] for line in file.text.splitlines()[1:]] == ["Zoe", "Yve"]


def test_previous_leads_from_the_last_page_of_a_sorted_list_to_the_page_before_it(marketer, crowd):
    profiles = [samples.profile(first_name=f"Ada {number}") for number in range(101)]
    created = crowd.shop.api.post("/v1/profiles/batch", {"items": profiles}).json()
    assert {result["status"] for result in created["results"]} == {201}
    crowd.shop.prepare()

    def follow(rel: str, page: str) -> str:
        [query] = re.findall(rf'rel="{rel}" href="[^"?]*[?]?([^"]*)"', page)
        return marketer.get("/customers?" + unescape(query)).text

    first = ask_until("found, as of", lambda: marketer.get("/customers?sort=spend"))
    second = follow("next", first)
    last = follow("next", second)
    assert len(names(last)) < len(names(second)) == 50
    assert names(follow("prev", last)) == names(second)
    assert names(follow("prev", second)) == names(first)


def test_the_keyboard_alone_filters_sorts_and_saves_a_segment(tab, marketer, crowd):
    crowd.shop.sale(crowd.shop.customer("Zoe"), days=2, cents=900_000, product=WOOL)
    crowd.shop.prepare()
    ask_until("found, as of", lambda: marketer.get("/customers?spend=8000"))
    tab.goto(marketer.url("/customers"))
    tab.locator("#narrowing summary").focus()
    tab.keyboard.press("Enter")
    tab.get_by_label("Net spend, at least").focus()
    tab.keyboard.type("8000")
    tab.keyboard.press("Enter")
    expect(tab.locator("#results")).to_contain_text("1 customer found, as of")
    expect(tab.locator("tbody tr")).to_have_count(1)
    assert "spend=8000" in tab.url
    tab.get_by_role("link", name="Net spend", exact=True).focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("th[aria-sort=descending]")).to_contain_text("Net spend")
    tab.get_by_role("link", name="Save as segment").focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_have_text("New segment")
    expect(tab.locator("#r-0-low")).to_have_value("8000.00")


def test_filters_offer_to_be_prepared_where_there_are_no_columns(visitor_as, api, analysis):
    api.post("/v1/profiles", {"external_id": samples.unique("solo"), "first_name": "Solo"})
    marketer = visitor_as(Role.MARKETER)
    page = marketer.get("/customers?last=30").text
    assert "Prepare filters" in page
    assert "Prepare filters" not in visitor_as(Role.DEVELOPER).get("/customers?last=30").text
    answer = marketer.post("/customers/prepare", query="last=30")
    assert answer.headers["location"].endswith("/customers?last=30")
    assert "Filters are being prepared" in marketer.get("/customers?last=30").text
    # Who is searched for is found all the same.
    assert "Solo" in marketer.get("/customers?q=Solo&last=30").text


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("500", (50_000, "EUR")),
        ("500,5 chf", (50_050, "CHF")),
        ("12.34 GBP", (1_234, "GBP")),
        ("5 SEK", None),
        ("much", None),
        ("-5", None),
    ],
)
def test_an_amount_is_read_with_its_currency(text, amount):
    assert read_amount(text, "EUR") == amount
