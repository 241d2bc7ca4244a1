"""The list of customers, narrowed and sorted by the analysis process; its filters are a segment that can be saved."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.pages.segment_shop import WOOL, Crowd, ask_until, open_shop
from tests.support import samples

from regulars.explore.customers.filters import read_amount
from regulars.web.access import Role


@pytest.fixture
def marketer(visitor_as):
    return visitor_as(Role.MARKETER)


def names(page: str) -> list[str]:
    rows = re.findall(r'<a class="name"[^>]*>\s*(.*?)\s*</a>', page, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", row).strip() for row in rows]


@pytest.fixture
def crowd(api, marketer, analysis, api_database_url) -> Crowd:
    return open_shop(api, marketer, api_database_url)


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
    assert "2 found" in page
    assert names(marketer.get("/customers?spend=8000&last=-90").text) == ["Old"]
    assert names(marketer.get("/customers?spend=8000+CHF").text) == []
    # What cannot be read is said, and nothing is pretended.
    wrong = marketer.get("/customers?spend=much").text
    assert "is no amount" in wrong
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


def test_filters_offer_to_be_prepared_where_there_are_no_columns(visitor_as, api, analysis):
    api.post("/v1/profiles", {"external_id": samples.unique("solo"), "first_name": "Solo"})
    marketer = visitor_as(Role.MARKETER)
    page = marketer.get("/customers?last=30").text
    assert "Prepare filters" in page
    assert "Prepare filters" not in visitor_as(Role.DEVELOPER).get("/customers?last=30").text
    answer = marketer.post("/customers/prepare", query="last=30")
    assert answer.headers["location"].endswith("/customers?last=30")
    assert "being read for filters" in marketer.get("/customers?last=30").text
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
