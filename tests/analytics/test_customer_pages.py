"""The pages of customers and products, whose figures come from the analysis process."""

import re
from datetime import timedelta

import pytest
from tests.analytics.pages_shop import SCARF, SOAP, Shop, open_shop
from tests.analytics.test_pages import links, rows_of, text_of
from tests.pages.segment_shop import SegmentShop
from tests.support.visitor import Visitor
from tests.support.waiting import ask_until

from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import create_segment
from regulars.web.access import Role
from regulars.web.format import Format


def sell_soap(shop: Shop) -> Shop:
    """Ada bought 40 days ago and yesterday, Ben yesterday for the first time."""
    for name, days in (("ada", 40), ("ada", 1), ("ben", 1)):
        shop.sell(shop.paris, days=days, cents=10_000, profile_id=name, product=SOAP)
    shop.count()
    return shop


@pytest.fixture
def shop(api, analysis, api_database_url) -> Shop:
    return sell_soap(open_shop(api, api_database_url))


@pytest.fixture(scope="module")
def reader(read_shop, analysis, reader_as) -> Visitor:
    """A marketer of the shop that no test changes, whose columns are built."""
    marketer = reader_as(Role.MARKETER)
    prepare(sell_soap(read_shop), marketer)
    return marketer


def prepare(shop: Shop, visitor: Visitor) -> None:
    """Opening the page begins to build the columns."""
    page = visitor.get("/analyse/customers")
    assert page.status_code == 200
    assert 'hx-trigger="' in page.text
    SegmentShop(shop.api, shop.database_url, shop.api.tenant.organization_id, shop.paris).prepare()


def test_customers_are_new_or_returning_and_repeat(reader):
    page = text_of(ask_until("New and returning", lambda: reader.get("/analyse/customers?period=30d")))
    assert "Customers who bought 2" in page
    assert "New 1 50% of customers" in page
    assert "Returning 1 50% of customers" in page
    assert "Repeat rate 0%" in page
    assert "Time between purchases Median: 39 days" in page
    year = text_of(reader.get("/analyse/customers?period=12m").text)
    assert "Repeat rate 50%" in year
    assert "Groups by recency, frequency and net (RFM) 2 customers who ever bought" in year
    assert "A file with older purchases that arrives later may change past figures." in page
    assert "Today so far is compared with a whole day." in page
    # The customers, the groups and the cohorts are three answers.
    assert page.count("As of") == 3


def test_the_file_of_customers_has_the_chosen_measure(reader):
    ask_until("New and returning", lambda: reader.get("/analyse/customers?period=30d"))
    *rows, whole = rows_of(reader.get("/analyse/customers.csv?period=30d").text)
    assert (whole["key"], whole["new"], whole["returning"], whole["share_returning"]) == ("total", "1", "1", "0.5")
    assert [row["key"] for row in rows] == sorted({row["first_day"] for row in rows}, reverse=True)
    assert sum(int(row["new"]) for row in rows) == 1
    net = "/analyse/customers{}?period=30d&measure=net&currency=EUR"
    [whole] = rows_of(reader.get(net.format(".csv")).text)[-1:]
    assert (whole["new_net_cents_EUR"], whole["returning_net_cents_EUR"]) == ("10000", "10000")
    assert "Whole period €100.00 €100.00 50.0%" in text_of(reader.get(net.format("")).text)
    days = rows_of(reader.get("/analyse/customers.csv?period=30d&table=intervals").text)
    assert [(row["days_from"], row["days_to"]) for row in days if row["purchases"] == "1"] == [("31", "60")]
    assert {row["median_days"] for row in days} == {"39.0"}


@pytest.mark.parametrize("reading", ["month", "until", "net"])
def test_the_file_of_cohorts_has_the_cells_and_averages_of_the_chosen_reading(reader, reading):
    query = f"period=12m&currency=EUR&read={reading}"
    page = ask_until('id="cohorts"', lambda: reader.get(f"/analyse/customers?{query}"))
    table = re.search(r'<table class="table is-dense cohort">(.*?)</table>', page, re.DOTALL)
    shown = [
        [text_of(cell) for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)][2:]
        for row in re.findall(r"<tr>(.*?)</tr>", table[1], re.DOTALL)[1:]
    ]
    formats = Format("en-GB", "UTC")
    columns = {"month": "bought_in_month_", "until": "bought_up_to_month_", "net": "net_cents_EUR_up_to_month_"}
    in_file = [
        [
            ""
            if not cell
            else formats.money(int(cell), "EUR")
            if reading == "net"
            else formats.aligned_share(float(cell), 1)
            for name, cell in row.items()
            if name.startswith(columns[reading])
        ]
        for row in rows_of(reader.get(f"/analyse/customers.csv?table=cohorts&{query}").text)
    ]
    assert [[text.replace("\xa0", " ") for text in row] for row in in_file] == shown
    assert any(any(row) for row in shown)


def test_groups_are_sorted_by_their_headings_and_the_file_follows(shop, marketer):
    shop.sell(shop.paris, days=800, cents=1_000, profile_id="cleo")
    shop.sell(shop.paris, days=790, cents=1_000, profile_id="dora")
    shop.sell(shop.paris, days=780, cents=1_000, profile_id="eli")
    prepare(shop, marketer)
    page = ask_until('id="groups"', lambda: marketer.get("/analyse/customers?period=12m"))
    [by_customers] = links(page, "sort=customers#groups")
    [by_net] = links(page, "sort=net_EUR#groups")

    def names(url: str) -> list[str]:
        return re.findall(r'<span class="name">(.*?)</span>', marketer.get(url).text)

    assert names(by_customers)[0] == "Lapsed"
    assert names(by_net)[0] != "Lapsed"
    for url in (by_customers, by_net):
        query = url.partition("?")[2].partition("#")[0]
        *groups, whole = rows_of(marketer.get(f"/analyse/customers.csv?{query}&table=groups").text)
        assert [row["name"] for row in groups] == names(url)
        assert (whole["customers"], whole["net_cents_EUR"]) == ("5", "30000")
        assert sum(int(row["customers"]) for row in groups) == 5
        assert sum(int(row["net_cents_EUR"]) for row in groups) == 30_000
    assert {row["name"]: row["share"] for row in groups}["Lapsed"] == "0.6"


def test_a_customer_who_returned_everything_and_lapsed_is_in_the_files(api, analysis, api_database_url, marketer):
    shop = open_shop(api, api_database_url)
    shop.sell(shop.paris, days=800, cents=1_000, profile_id="ada")
    shop.sell(shop.paris, days=800, cents=1_000, profile_id="ada", type="RETURN")
    shop.count()
    prepare(shop, marketer)
    day = shop.today - timedelta(days=800)
    page = ask_until('id="groups"', lambda: marketer.get(f"/analyse/customers?from={day}&to={day}"))
    assert "New 1 100% of customers" in text_of(page)
    for measure, column in (("", "new"), ("net", "new_net_cents_EUR")):
        file = marketer.get(f"/analyse/customers.csv?from={day}&to={day}&measure={measure}&currency=EUR").text
        assert [row[column] for row in rows_of(file)] == (["0", "0"] if measure else ["1", "1"])
    groups = rows_of(marketer.get("/analyse/customers.csv?table=groups").text)
    assert {row["name"]: row["customers"] for row in groups}["Lapsed"] == "1"


def test_a_shop_without_known_customers_has_no_groups_and_no_cohorts(api, analysis, api_database_url, marketer):
    prepare(open_shop(api, api_database_url), marketer)
    for table in ("groups", "cohorts"):
        ask_until("customers", lambda table=table: marketer.get("/analyse/customers.csv", table=table))
    page = ask_until("No known customer bought in this period", lambda: marketer.get("/analyse/customers"))
    assert 'id="groups"' not in page
    assert 'id="cohorts"' not in page


def test_groups_and_cohorts_become_segments_for_those_who_may_build_one(reader, reader_as):
    page = ask_until('id="cohorts"', lambda: reader.get("/analyse/customers"))
    made = links(page, "/segments/new?match=")
    for kind in ("last_purchase", "first_purchase"):
        builder = reader.get(next(one for one in made if kind in one))
        assert (builder.status_code, kind in builder.text) == (200, True)
    # Each cell of the cohorts, whatever it shows.
    for reading in ("month", "until", "net"):
        page = reader.get(f"/analyse/customers?read={reading}").text
        cells = re.findall(r'<td class="[^"]*heat-.*?</td>', page, re.DOTALL)
        made = links(" ".join(cells), "/segments/new?match=")
        assert len(made) == len(cells) > 0
        assert reader.get(made[0]).status_code == 200
    seen = ask_until('id="cohorts"', lambda: reader_as(Role.ANALYST).get("/analyse/customers"))
    assert links(seen, "/segments/new") == []


def test_products_are_grouped_by_code_property_or_store_and_opened(read_shop, reader):
    page = ask_until("Net sales by product code", lambda: reader.get("/analyse/products?period=30d"))
    words = text_of(page)
    assert "Scarf SCARF" in words
    assert "Today so far is compared with a whole day." in words
    assert "All" in words
    assert 'aria-label="Net sales by product code in EUR; the table below has the same figures"' in page
    assert re.search(r"<title>Scarf SCARF: €460.00, €\d+.00 in the compared period</title>", page)
    rows = rows_of(reader.get("/analyse/products.csv?period=30d").text)
    nets = {row["key"]: int(row["net_cents"]) for row in rows}
    assert nets == {"SCARF": 46_000, "SOAP": 20_000, "": 66_000}
    assert [row["kind"] for row in rows] == ["value", "value", "total"]
    # The currency is that of the chosen stores; of a period without tickets, that of the newest ones.
    for query, currency in ((f"period=30d&store={read_shop.geneva}", "CHF"), ("from=2001-01-01&to=2001-12-31", "EUR")):
        whole = rows_of(reader.get(f"/analyse/products.csv?{query}").text)[-1]
        assert (whole["kind"], whole["currency"]) == ("total", currency)
    by_collection = links(page, "/analyse/products")
    assert by_collection
    grouped = text_of(reader.get('/analyse/products?period=30d&group={"kind":"property","property":"collection"}').text)
    assert "Wool" in grouped
    assert "No collection The product has no value for it" in grouped
    scarf = next(one for one in by_collection if "SCARF" in one and "in=" in one)
    inside = reader.get(scarf).text
    assert "Bought on the same ticket" in inside
    assert "Product code: SCARF" in text_of(inside)
    assert links(inside, "/segments/new?match=")
    [tickets] = links(inside, "product=SCARF")
    assert text_of(reader.get(tickets).text).count("Purchase") - 1 == 2
    [tickets] = links(reader.get(f"{scarf}&store={read_shop.paris}&store={read_shop.geneva}").text, "product=SCARF")
    assert "stores=" in tickets
    assert text_of(reader.get(tickets).text).count("Purchase") - 1 == 2
    assert "Of 2 purchases, 0 have a known customer." in text_of(inside)
    for written in ("nonsense", "[]", '{"kind":"shelf"}', '{"kind":"property"}'):
        answer = reader.get("/analyse/products", group=written)
        assert answer.status_code == 400, written
        assert "We cannot read the group of products in this address." in text_of(answer.text), written
    assert reader.get('/analyse/products?in={"key":{},"kind":"others"}').status_code == 400
    for query in ('in={"key":{},"value":"GLOVES"}', "in="):
        is_empty = "GLOVES" in query
        words = text_of(reader.get(f"/analyse/products?period=30d&{query}").text)
        # Notes about the rows stand below rows only.
        assert ("Nothing was sold in this period" in words) == is_empty
        assert ("Today so far" in words) == ("do not add up" in words) == (not is_empty)
        assert "Bought on the same ticket" not in words


def test_products_bought_together_are_a_file_too(shop, marketer):
    shop.sell(shop.paris, days=1, cents=5_000, product=SOAP, gift=SCARF)
    prepare(shop, marketer)
    soap = 'in={"key":{},"value":"SOAP"}'
    page = ask_until('id="basket"', lambda: marketer.get(f"/analyse/products?period=30d&{soap}"))
    [file] = links(page, "table=basket")
    [row] = rows_of(marketer.get(file).text)
    # Ada and Ben bought soap alone.
    assert row == {"product": "SCARF", "name": "Scarf", "purchases": "1", "share": "0.333333"}
    assert "Of 3 purchases, 2 have a known customer." in text_of(page)
    # Products of one name are told apart by their codes.
    assert "Scarf SCARF 1 33.3%" in text_of(page)


def test_sales_of_a_segment_are_those_of_its_members(shop, marketer):
    shop.sell(shop.geneva, days=1, cents=7_000, currency="CHF", profile_id="ada")
    shop.count()
    prepare(shop, marketer)
    definition = read_definition(
        b'{"name": "Twice", "match": {"type": "all", "of": [{"type": "bought", "at_least": 2}]}}'
    )
    segment = SegmentShop(shop.api, shop.database_url, shop.api.tenant.organization_id, shop.paris).act(
        lambda tx: create_segment(tx, shop.api.tenant.organization_id, definition)
    )
    query = f"period=30d&segment={segment.id}"
    page = text_of(ask_until(">Sales by day, EUR</h2>", lambda: marketer.get(f"/analyse/sales?{query}")))
    # Ada bought for 100 yesterday, and 40 days ago.
    assert "Segment: Twice" in page
    assert "Net sales, EUR €100.00" in page
    assert "Net sales, CHF CHF 70.00" in page
    assert "With a segment, today so far is compared with a whole day." in page
    # Geneva had no ticket in the compared period.
    like = text_of(ask_until(">Sales by day, EUR</h2>", lambda: marketer.get(f"/analyse/sales?{query}&like=1")))
    assert "Net sales, EUR €100.00" in like
    assert "Net sales, CHF" not in like
    [paris, whole] = rows_of(marketer.get(f"/analyse/stores.csv?{query}").text)
    assert (paris["name"], paris["net_cents"], whole["net_cents"]) == ("Paris", "10000", "10000")
    assert marketer.get(f"/analyse/customers?{query}").status_code == 200
