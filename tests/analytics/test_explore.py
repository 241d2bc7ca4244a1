"""The page Explore: a question of the user's own, as a table, a picture and a file, saved and shared."""

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest
from tests.analytics.pages_shop import SOAP, Shop, open_shop
from tests.analytics.test_customer_pages import prepare
from tests.analytics.test_pages import links, rows_of, text_of
from tests.columns.fed_shop import FedShop
from tests.support.visitor import Visitor
from tests.support.waiting import ask_until

from regulars.analytics.figure_table import FigureTable, make_table
from regulars.analytics.figures import Figures, Progress
from regulars.analytics.period import Period
from regulars.analytics.query import CUSTOMERS, DAY, DIMENSIONS, NET, PRODUCT, SEGMENT, STORE, Query, read_measure
from regulars.columns import questions
from regulars.columns.questions import Dimension, ProductGroup, ProductKey, SalesQuestion
from regulars.kit.ids import new_uuid
from regulars.sales.totals.model import PerCurrency, Sums
from regulars.segments.definition import read_definition
from regulars.segments.saved.manage import create_segment
from regulars.web.access import Role

PATH = "/analyse/explore"
WEEK = Period(date(2026, 3, 1), date(2026, 3, 7))
EVERYONE = {"type": "all", "of": []}
BOUGHT_TWICE = '{"type": "all", "of": [{"type": "bought", "at_least": 2}]}'


@pytest.fixture(scope="module")
def reader(reader_as) -> Visitor:
    """Of a shop whose columns no process counts."""
    return reader_as(Role.ANALYST)


@pytest.fixture
def shop(api, api_database_url) -> Shop:
    return open_shop(api, api_database_url)


@pytest.fixture
def counted(shop: Shop, analysis, marketer) -> Shop:
    """Four customers bought soap in Paris, and five in Geneva, one of them before the last 30 days."""
    for number, store in enumerate([shop.paris] * 4 + [shop.geneva] * 5):
        shop.sell(store, days=1, cents=10_000, profile_id=f"p{number}", product=SOAP)
    shop.sell(shop.geneva, days=40, cents=10_000, profile_id="p8", product=SOAP)
    shop.count()
    prepare(shop, marketer)
    return shop


def test_time_and_place_are_explored_while_no_process_counts(read_shop, reader):
    page = text_of(reader.get(PATH, period="7d", rows="store", compare="weekdays").text)
    assert "Net by store, EUR" in page
    assert "Paris €460.00 €250.00 +84.0%" in page
    assert "All €460.00 €250.00 +84.0%" in page
    months = text_of(reader.get(PATH, period="month", rows="month").text)
    assert re.search(r"Month Net (.*?) €", months)[1] in months.partition("As of")[0], (
        "a part of a month is named by its days"
    )
    rows = rows_of(reader.get(f"{PATH}.csv", period="7d", rows="day", then="store", measure="tickets").text)
    yesterday, before = (str(read_shop.today - timedelta(days=days)) for days in (1, 2))
    assert [(row["day"], row["store_name"], row["tickets"]) for row in rows] == [
        (before, "Paris", "2"),
        (yesterday, "Paris", "1"),
        ("total", "", "3"),
    ]
    picture = reader.get(PATH, period="7d", rows="hour", show="picture").text
    assert "<title>12:00: €460.00</title>" in picture
    assert "Return rate by country of the store" in text_of(
        reader.get(PATH, rows="country", measure="return_rate").text
    )


def test_what_has_no_answer_is_refused_in_a_sentence(reader):
    refusals = {
        "rows=day&then=day": "Choose at most two different dimensions.",
        "rows=fabric": "“fabric” is no dimension",
        "measure=profit": "“profit” is no measure",
        "rows=product&measure=tax_cents": "“Tax” is not known of a product; choose another measure.",
        "rows=hour&then=product": "choose days",
        "rows=segment": "Choose at least one segment.",
        "from=2020-01-01&to=2023-01-01": "Explore shows at most 731 days",
    }
    for query, sentence in refusals.items():
        answer = reader.get(f"{PATH}?{query}")
        assert (answer.status_code, sentence in text_of(answer.text)) == (400, True), query
        assert "€" not in answer.text


def test_customers_products_and_segments_are_explored_once_they_are_counted(counted, marketer):
    def page(query: str, words: str) -> str:
        return text_of(ask_until(words, lambda: marketer.get(f"{PATH}?period=30d&{query}")))

    assert "Soap SOAP €900.00" in page("rows=product", "Soap")
    assert "No soap" not in page("rows=property:collection", "Wool")
    rows = rows_of(marketer.get(f"{PATH}.csv?period=30d&rows=property:collection").text)
    assert [row["property:collection"] for row in rows] == ["", "Wool", "total"]
    assert links(marketer.get(f"{PATH}?period=30d&rows=product").text, "currency=CHF")
    new = page("rows=newness&measure=customers", "New in the period")
    assert "New in the period 8" in new
    assert "Known from before 1" in new
    assert "they do not add up" in new.lower()
    assert "Geneva New in the period 4" in page("rows=store&then=newness&measure=customers", "Geneva")
    assert "Paris €400.00" in page("rows=store&product=SOAP", "Paris")


def test_segments_beside_each_other_are_answers_of_their_own(counted, marketer, api_database):
    async def create(database, name: str, match: str):
        async with database.transaction() as tx:
            definition = read_definition(f'{{"name": "{name}", "match": {match}}}'.encode())
            return (await create_segment(tx, counted.api.tenant.organization_id, definition)).id

    async def damage(database):
        async with database.transaction() as tx:
            await tx.execute("""
                UPDATE segment_versions SET definition = jsonb_set(definition::jsonb, '{match,of,0}', '{}')::json
                WHERE definition ->> 'name' = 'Faulty'
            """)

    twice, faulty = (
        api_database.run(lambda database, name=name: create(database, name, BOUGHT_TWICE))
        for name in ("Twice", "Faulty")
    )
    query = f"{PATH}?period=30d&rows=segment&measure=customers"
    assert "Twice 1" in text_of(ask_until("Twice", lambda: marketer.get(f"{query}&among={twice}")))
    api_database.run(damage)
    # Those without a fault are compared if none is chosen.
    page = marketer.get(query)
    assert page.status_code == 200
    assert "Twice 1" in text_of(page.text)
    refused = marketer.get(f"{query}&among={faulty}")
    assert refused.status_code == 400
    assert "The segment Faulty has a fault" in text_of(refused.text)


def test_roles_without_personal_data_get_no_group_under_five_customers(counted, visitor_as):
    analyst, query = visitor_as(Role.ANALYST), "period=30d&rows=store&measure=customers"
    page = text_of(ask_until("Geneva", lambda: analyst.get(f"{PATH}?{query}")))
    assert "Geneva 5" in page
    assert "Groups with fewer than 5 customers are left out." in page
    assert "Paris 4" not in page
    rows = rows_of(analyst.get(f"{PATH}.csv?{query}").text)
    assert [row["store_name"] for row in rows if row["store"]] == ["Geneva"]


def test_a_question_is_saved_and_shared_in_the_organization(shop, analyst, visitor_as):
    query = "period=7d&rows=store&measure=tickets"
    assert analyst.post("/analyse/views", page="explore", query=query, name="Tickets", shared="1").status_code == 303
    owner = visitor_as(Role.OWNER)
    [link] = set(links(owner.get(PATH).text, "rows=store"))
    assert "Tickets, returns included by store" in text_of(owner.get(link).text)
    # Only who saved it deletes it.
    assert "Delete the view Tickets" not in owner.get(PATH).text
    owner.post("/analyse/views/delete", page="explore", query="", name="Tickets")
    assert links(analyst.get(PATH).text, "rows=store")
    analyst.post("/analyse/views/delete", page="explore", query="", name="Tickets")
    assert not links(owner.get(PATH).text, "rows=store")


def test_one_source_answers_each_question():
    """Whatever has only time and place is of the totals; what has a customer, a product or a segment, of the columns."""
    for dimensions in product([*(it for it, _ in DIMENSIONS.values()), Dimension("property", "size")], repeat=2):
        kinds = {dimension.kind for dimension in dimensions}
        is_of_totals = kinds <= {"hour", "day", "week", "month", "store", "country"}
        query = Query(period=WEEK, by=dimensions, measures=(NET,))
        assert query.source == ("totals" if is_of_totals else "columns")
    segment, soap = (new_uuid(),), (ProductGroup(ProductKey(), "value", "SOAP"),)
    for narrowed in ({"segment_ids": segment}, {"products": soap}, {"measures": (CUSTOMERS,)}):
        assert Query(period=WEEK, **narrowed).source == "columns"


def table_of(query: Query, **groups: Sums) -> FigureTable:
    """The table of groups in euros, named by their key, with products of the name Soap."""
    rows = {(*key.split("_"),): PerCurrency({"EUR": sums}) for key, sums in groups.items()}
    figures = Figures(rows=rows, names={"SOAP": "Soap"}, progress=Progress(as_of=datetime(2026, 3, 8, tzinfo=UTC)))
    return asyncio.run(make_table(None, new_uuid(), query, figures))


def test_a_total_has_only_what_adds_up():
    """Two products on one ticket: its money is divided, and the ticket is in both rows."""
    sums, measures = Sums(purchases=1, gross_cents=500), tuple(map(read_measure, ("net_cents", "tickets", "customers")))
    table = table_of(Query(period=WEEK, by=(PRODUCT,), measures=measures), SOAP=sums, SCARF=sums)
    assert [*table.rows(table.totals)] == [{"currency": "EUR", "net_cents": 1000, "tickets": None, "customers": None}]
    for dimensions in ((SEGMENT,), (DAY, SEGMENT)):
        assert not Query(period=WEEK, by=dimensions).adds_up(NET)
    assert Query(period=WEEK, by=(DAY, STORE)).adds_up(read_measure("tickets"))


def test_a_property_whose_value_is_a_code_of_a_product_has_no_name_of_it():
    table = table_of(Query(period=WEEK, by=(PRODUCT, Dimension("property", "refill_of"))), SOAP_SOAP=Sums(purchases=1))
    assert [group.names for group in table.groups] == [("Soap", "")]


def test_more_than_ten_thousand_groups_are_refused(opened, monkeypatch):
    monkeypatch.setattr("regulars.analytics.answers.sales.GROUPS_MAX", 3)
    shop = FedShop(*opened)
    for number in range(4):
        shop.sale("ada", ago=timedelta(days=number), lines=[{"product": {"external_id": f"P{number}"}}])
    shop.begin_and_build()
    shop.drain()
    today = shop.query(EVERYONE).today
    days = questions.Period(today - timedelta(days=6), today)
    for by in (("product",), ("product", "day")):
        question = SalesQuestion(period=days, by=tuple(map(Dimension, by)), lines_in="EUR")
        answer = shop.ask(EVERYONE, want="answer", question=question)
        assert answer.fault == "There are more than 3 groups: narrow it, with fewer days or a filter."
