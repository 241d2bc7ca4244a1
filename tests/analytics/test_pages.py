"""The pages of sales and stores: figures, comparison, filters, drill-down, files and saved views."""

import csv
import html
import io
import re
from datetime import date, time, timedelta
from typing import LiteralString

import pytest
from tests.analytics.pages_shop import Shop, open_shop
from tests.support import samples
from tests.support.open_database import OpenDatabase
from tests.support.visitor import Visitor

from regulars.analytics.pages.measures import CSV_HEADER, MeasureRow, csv_row
from regulars.analytics.pages.net_chart import BARS_MAX, NetBar, draw_ranked
from regulars.analytics.pages.product_table import has_high_returns
from regulars.columns.lifecycle import find_build_progress
from regulars.columns.model import BuildProgress
from regulars.columns.questions import MILLIONTHS, ProductFigures
from regulars.kit.db import Database
from regulars.sales.totals.model import Sums
from regulars.web.access import Role
from regulars.web.format import Format


@pytest.fixture
def shop(api, api_database_url) -> Shop:
    return open_shop(api, api_database_url)


@pytest.fixture(scope="module")
def reader(reader_as) -> Visitor:
    """Of the shop that no test changes."""
    return reader_as(Role.ANALYST)


def text_of(page: str) -> str:
    """What is read on a page, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\xa0", " ").split())


def rows_of(file: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file)))


def links(page: str, part: str) -> list[str]:
    """The addresses below the organization that contain a part."""
    found = re.findall(r'href="/o/[^/"]+(/[^"]*)"', page)
    return [html.unescape(one) for one in found if part in html.unescape(one)]


def test_an_analyst_reads_net_sales_beside_the_same_weekdays_last_year(reader):
    answer = reader.get("/analyse/sales", period="7d")
    assert answer.status_code == 200
    page = text_of(answer.text)
    # 500 EUR less 40 returned, against 250 EUR 364 days before.
    assert "Net sales, EUR €460.00 +84% against €250.00" in page
    assert "Net sales, CHF CHF 50.00 no comparison" in page
    assert "Compared with the same weekdays last year" in page
    assert "Tickets, returns included 4" in page
    assert "As of" in page


def test_today_is_compared_up_to_the_last_full_hour(shop, analyst):
    # No hour of the day has a later last half hour.
    shop.sell(shop.paris, days=364, cents=99_900, at=time(23, 30))
    shop.count()
    page = text_of(analyst.get("/analyse/sales", period="7d").text)
    assert "Net sales, EUR €460.00 +84% against €250.00" in page
    assert re.search(r"they leave out today’s tickets after \d\d:00", page)
    assert "on €250.00" not in text_of(analyst.get("/analyse/sales", period="7d", compare="none").text)
    stores = text_of(analyst.get("/analyse/stores", period="7d").text)
    assert "€460.00 +84.0% 1 store" in stores
    row = MeasureRow("", "", "", "", "", Sums(gross_cents=500), Sums(gross_cents=200), current_hour_net_cents=100)
    assert row.change(Format("en-GB", "UTC")) == "+100.0%"
    # The file says how much of the net is not compared.
    file = dict(zip(CSV_HEADER, csv_row(row, "EUR"), strict=True))
    assert (file["net_cents"], file["current_hour_net_cents"], file["compared_net_cents"]) == ("500", "100", "200")


def test_the_file_has_what_the_table_shows_and_adds_up(reader):
    for by in ("day", "week", "month"):
        rows = rows_of(reader.get("/analyse/sales.csv", period="30d", by=by).text)
        *parts, whole = rows
        assert whole["key"] == "total"
        for column in ("gross_cents", "returned_cents", "net_cents", "tickets", "compared_net_cents"):
            assert sum(int(row[column]) for row in parts) == int(whole[column]), (by, column)
        assert (whole["net_cents"], whole["compared_net_cents"], whole["currency"]) == ("46000", "25000", "EUR")
    [geneva, whole] = rows_of(reader.get("/analyse/stores.csv", period="30d", currency="CHF").text)
    assert (geneva["name"], geneva["net_cents"], whole["net_cents"]) == ("Geneva", "5000", "5000")


def test_a_year_opens_its_months_and_these_their_days_and_hours_down_to_the_tickets(read_shop, reader):
    year = reader.get("/analyse/sales", period="12m").text
    assert "Net sales by month" in year
    yesterday = read_shop.today - timedelta(days=1)
    month = next(one for one in links(year, "by=day") if f"to={yesterday.replace(day=1):%Y-%m}" in one)
    days = reader.get(month).text
    assert "Net sales by day" in days
    [day] = {one for one in links(days, f"from={yesterday}&to={yesterday}") if one.startswith("/analyse/sales?")}
    hours = reader.get(day).text
    assert "Net sales by hour" in hours
    assert "€300.00" in hours
    for part in ("/tickets?from=", "/tickets?hour="):
        [tickets] = set(links(hours, part))
        assert "€300.00" in reader.get(tickets).text


def test_an_hour_and_several_stores_lead_to_exactly_their_tickets(shop, analyst):
    shop.sell(shop.paris, days=1, cents=12_345, at=time(12, 59, 59))
    shop.sell(shop.paris, days=1, cents=54_321, at=time(13))
    shop.count()
    day = shop.today - timedelta(days=1)
    hours = analyst.get(f"/analyse/sales?from={day}&to={day}&store={shop.paris}&store={shop.geneva}").text
    [tickets] = {link for link in links(hours, "/tickets?hour=") if "T12" in link}
    shown = text_of(analyst.get(tickets).text)
    assert ("€300.00" in shown, "€123.45" in shown, "€543.21" in shown) == (True, True, False)
    assert "Stores 2 stores" in shown
    assert "12:00" in shown
    # Like-for-like counts Paris alone, which has a ticket in both periods.
    stores = analyst.get("/analyse/stores", period="7d", like="1").text
    for link in set(links(stores, "/tickets?")):
        assert "&store=store_" in link
    for query in ("hour=noon", "hour=1926-01-01T10", "stores=nowhere"):
        assert analyst.get(f"/tickets?{query}").status_code == 400


def test_public_holidays_of_both_periods_are_marked(shop, analyst):
    christmas = date(shop.today.year - 1, 12, 25)
    shop.sell(shop.paris, days=(shop.today - christmas).days, cents=1_000)
    shop.count()
    days = f"from={christmas - timedelta(days=2)}&to={christmas + timedelta(days=2)}&by=day"
    page = analyst.get(f"/analyse/sales?{days}&compare=weekdays").text
    words = text_of(page)
    assert "Christmas Day" in words
    assert 'class="key is-holiday"' in page
    # The same weekday of the year before was 26 December.
    assert "Christmas Day was on" in words
    assert "So both days are compared with a usual day." in words
    assert "was on" not in text_of(analyst.get(f"/analyse/sales?{days}&compare=none").text)


def test_a_holiday_of_the_compared_period_alone_is_marked_by_day_and_by_week(shop, analyst):
    shop.sell(shop.paris, days=(shop.today - date(2020, 4, 20)).days, cents=1_000)
    shop.count()
    for by in ("day", "week"):
        # Easter Monday was on 22 April 2019, which is compared with 20 April 2020, and before the period in 2020.
        page = analyst.get(f"/analyse/sales?from=2020-04-14&to=2020-07-30&by={by}").text
        assert ">compared with Easter Monday</span>" in page
        assert "<title>compared with Easter Monday</title>" in page


def test_the_rows_of_the_same_dates_add_up_to_the_total_around_29_february(shop, analyst):
    for day in (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(2025, 3, 1)):
        shop.sell(shop.paris, days=(shop.today - day).days, cents=1_000)
    shop.count()
    for by in ("day", "week", "month"):
        query = f"from=2025-02-01&to=2025-03-31&compare=dates&by={by}"
        *parts, whole = rows_of(analyst.get(f"/analyse/sales.csv?{query}").text)
        assert sum(int(row["compared_net_cents"]) for row in parts) == int(whole["compared_net_cents"]) == 3_000
    page = text_of(analyst.get("/analyse/sales?from=2025-02-01&to=2025-03-31&compare=dates&by=day").text)
    assert "compared with 28 Feb – 29 Feb 2024" in page


def test_stores_are_ranked_and_only_like_ones_compared_on_demand(reader):
    page = text_of(reader.get("/analyse/stores", period="7d", currency="CHF").text)
    assert "No tickets then" in page
    like = reader.get("/analyse/stores", period="7d", like="1").text
    assert "Paris" in like
    assert ">Geneva</a>" not in like
    [of_paris] = {one for one in links(like, "/analyse/sales?") if "store=store_" in one and "like=1" in one}
    assert "Net sales, EUR €460.00" in text_of(reader.get(of_paris).text)


def test_like_for_like_needs_a_comparison_and_its_tickets_are_those_of_the_counted_stores(read_shop, reader):
    caption = "<caption>Only stores with tickets in both periods."
    assert caption in reader.get("/analyse/stores", period="7d", like="1").text
    alone = reader.get("/analyse/stores", period="7d", like="1", compare="none").text
    assert "Geneva" in alone
    assert caption not in alone
    none = text_of(reader.get("/analyse/sales", period="7d", like="1", store=read_shop.geneva).text)
    assert "in a store with tickets in both periods." in none


def test_stores_are_sorted_by_name_by_their_heading(shop, analyst):
    shop.sell(shop.geneva, days=1, cents=1_000)
    shop.count()
    page = analyst.get("/analyse/stores", period="7d").text
    assert re.findall(r">(Paris|Geneva)</a>", page) == ["Paris", "Geneva"]
    [by_name] = links(page, "sort=name")
    sorted_page = analyst.get(by_name).text
    assert re.findall(r">(Paris|Geneva)</a>", sorted_page) == ["Geneva", "Paris"]
    assert 'aria-sort="ascending"' in sorted_page


def test_stores_have_a_chart_of_the_net_of_the_table(shop, analyst):
    shop.sell(shop.geneva, days=1, cents=1_000)
    shop.count()
    page = analyst.get("/analyse/stores", period="7d", sort="name").text
    assert 'aria-label="Net sales by store in EUR; the table below has the same figures"' in page
    titles = re.findall(r"<title>([^<]*: €[^<]*)</title>", page)
    assert titles == ["Paris: €460.00, €250.00 in the compared period", "Geneva: €10.00"]


def test_only_the_largest_nets_are_drawn():
    nets = [NetBar(f"Store {number}", number * 100, None) for number in range(BARS_MAX + 5)]
    ranked = draw_ranked(Format("en-GB", "UTC"), nets, "EUR")
    assert ranked.drawn == len(ranked.chart.bars) == BARS_MAX
    assert [bar.title for bar in ranked.chart.bars][:2] == ["Store 24: €24.00", "Store 23: €23.00"]


def test_a_month_that_is_incomplete_is_named_by_its_days(shop, analyst):
    shop.sell(shop.paris, days=(shop.today - date(2020, 6, 1)).days, cents=1_000)
    shop.count()
    query = {"from": "2020-05-10", "to": "2020-07-30", "by": "month"}
    names = [row["name"] for row in rows_of(analyst.get("/analyse/sales.csv", **query).text)]
    assert names == ["1 Jul – 30 Jul 2020", "Jun 2020", "10 May – 31 May 2020", "82 days"]
    assert "10 May – 31 May 2020" in text_of(analyst.get("/analyse/sales", **query).text)


def test_the_pages_of_stores_have_the_value_per_purchase_of_analyse(shop, analyst):
    # 500.03 EUR / 3 is 166.676… EUR.
    shop.sell(shop.paris, days=1, cents=3)
    shop.count()
    for path in ("/analyse/stores", "/stores", f"/stores/{shop.paris}"):
        assert "€166.68" in text_of(analyst.get(path).text), path


def test_the_pages_of_stores_and_the_home_page_say_up_to_when_tickets_are_counted(shop, analyst, api_database):
    shop.sell(shop.paris, days=1, cents=1_000)
    execute(
        api_database,
        "UPDATE outbox SET created_at = '2026-03-01T10:00:00Z' WHERE organization_id = %s",
        shop.api.tenant.organization_id,
    )
    for path in ("/", "/stores", f"/stores/{shop.paris}", "/analyse/sales"):
        assert re.search(r'As of <time datetime="2026-03-01T10:00:00[.0]*Z"', analyst.get(path).text), path
    shop.count()
    assert "2026-03-01T10:00:00" not in analyst.get("/stores").text


def test_opt_ins_per_100_tickets_are_those_of_each_store_and_of_all(shop, analyst):
    answer = shop.api.post("/v1/subscriptions/opt-in", samples.opt_in(store_id=shop.paris))
    assert answer.status == 201, answer.body
    shop.sell(shop.geneva, days=1, cents=1_000)
    # The first page has them counted.
    assert analyst.get("/analyse/stores").status_code == 200
    shop.count()
    rows = rows_of(analyst.get("/analyse/stores.csv", period="30d").text)
    # Paris has three tickets, and Geneva two, one of them in CHF.
    assert [(row["name"], row["opt_ins_per_100"]) for row in rows] == [
        ("Paris", "33.3"),
        ("Geneva", "0.0"),
        ("2 stores", "20.0"),
    ]


def test_a_link_keeps_all_filters(read_shop, reader):
    query = f"/analyse/sales?period=7d&compare=before&store={read_shop.paris}&currency=EUR&by=week&sort=net_cents"
    page = reader.get(query).text
    presets = links(page, "period=12m")
    assert all("compare=before&store=store_" in one and "currency=EUR" in one for one in presets)
    assert presets


UNREADABLE = {
    "from=1926-01-01&to=2026-01-01": "before 2000-01-01",
    "from=2010-01-01&to=2026-01-01": "at most five years",
    "from=2026-01-01&to=2999-01-01": "after today",
    "from=garbage&to=2026-99-99": "such as 2026-11-16",
    "store=nowhere": "No store has the ID or code",
    "segment=seg_00000000000000000000000000": "may have been deleted",
    "&".join(f"store=s{number}" for number in range(101)): "You chose 101 stores. Choose at most 100, or none",
}


def test_a_filter_that_cannot_be_read_is_said_at_its_field(reader):
    for page in ("sales", "stores", "customers", "products"):
        for query, words in UNREADABLE.items():
            answer = reader.get(f"/analyse/{page}?{query}")
            assert (answer.status_code, words in text_of(answer.text)) == (400, True), (page, query)
            assert f'id="e-{query.partition("=")[0]}"' in answer.text or 'id="e-to"' in answer.text
            assert reader.get(f"/analyse/{page}.csv?{query}").status_code == 400
            # A file or a saved view would have other filters, and no period was chosen.
            assert links(answer.text, ".csv") == []
            assert "Save this view" not in answer.text
            assert 'aria-current="true"' not in answer.text


def test_a_filter_that_is_too_long_is_refused_and_never_ignored(reader):
    answer = reader.get(f"/analyse/products?in={'x' * 3_001}")
    assert (answer.status_code, "Remove the filter “in”" in text_of(answer.text)) == (400, True)
    assert reader.get("/analyse/products?" + "&".join(["in=x"] * 6)).status_code == 400
    answer = reader.get(f"/analyse/sales?sort={'x' * 9_000}")
    assert (answer.status_code, "Choose fewer filters" in text_of(answer.text)) == (400, True)
    answer = reader.post("/analyse/views", page="sales", query=f"store={'x' * 7_500}", name="Long")
    assert (answer.status_code, "Choose fewer, such as fewer stores" in text_of(answer.text)) == (400, True)


def test_a_role_that_may_not_see_segments_gets_no_figures_of_the_whole_chain_instead(shop, visitor_as):
    developer = visitor_as(Role.DEVELOPER)
    assert developer.get("/analyse/sales").status_code == 200
    for page in ("sales", "stores", "customers", "products"):
        answer = developer.get(f"/analyse/{page}", segment="seg_00000000000000000000000000")
        assert (answer.status_code, "Your role may not filter by segment." in text_of(answer.text)) == (400, True)
        assert "€" not in answer.text


def test_opening_sales_starts_the_build_of_columns_for_the_other_pages(analyst, api, api_database):
    async def find_progress(database: Database) -> BuildProgress | None:
        async with database.reading() as tx:
            return await find_build_progress(tx, api.tenant.organization_id)

    assert api_database.run(find_progress) is None
    assert analyst.get("/analyse/sales").status_code == 200
    assert api_database.run(find_progress) is not None


def test_analyse_opens_the_page_of_sales(reader):
    assert reader.get("/analyse").headers["location"].endswith("/analyse/sales")


@pytest.mark.parametrize(("sold", "returned", "is_high"), [(20, 5, True), (19, 5, False), (20, 4, False)])
def test_a_return_rate_is_high_above_twice_the_average_from_20_units(sold, returned, is_high):
    figures = ProductFigures(
        net_cents=0,
        sold_millionths=sold * MILLIONTHS,
        returned_millionths=returned * MILLIONTHS,
        tickets=1,
        customers=1,
        weekly_net_cents=(),
    )
    assert has_high_returns(figures, 0.1) == is_high


ZONES = {
    # A zone that no time zone data has.
    "UPDATE organizations SET time_zone = 'Mars/Olympus' WHERE id = %s": "Days are counted in UTC, not in Mars/Olympus.",
    # The database counted in UTC, because it alone lacks the zone.
    "UPDATE organizations SET time_zone = 'Asia/Tokyo' WHERE id = %s": "Days are counted in UTC, not in Asia/Tokyo.",
}


def test_a_page_says_that_days_are_not_in_the_zone_of_the_organization(shop, analyst, api_database):
    for statement, sentence in ZONES.items():
        execute(api_database, statement, shop.api.tenant.organization_id)
        for page in ("sales", "stores") if "Tokyo" in statement else ("sales", "stores", "customers", "products"):
            answer = analyst.get(f"/analyse/{page}")
            assert (answer.status_code, sentence in text_of(answer.text)) == (200, True), (page, sentence)


def execute(database: OpenDatabase, statement: LiteralString, *values: object) -> None:
    async def run(opened: Database) -> None:
        async with opened.transaction() as tx:
            await tx.execute(statement, values)

    database.run(run)


def test_a_period_before_the_first_sale_names_the_first_one(reader):
    answer = reader.get("/analyse/sales", **{"from": "2001-01-01", "to": "2001-12-31"})
    assert answer.status_code == 200
    assert "No ticket in this period" in answer.text
    assert "The first ticket is from" in text_of(answer.text)
    assert "Show the last 30 days" in text_of(answer.text)


def test_a_page_without_tickets_leads_to_the_first_steps_or_to_the_last_tickets(api, api_database_url, analyst):
    assert "No tickets yet" in (page := analyst.get("/analyse/sales").text)
    assert "Open first steps" in page
    store = samples.store()
    api.post("/v1/stores", store)
    shop = Shop(api, api_database_url, store["external_id"], store["external_id"])
    shop.sell(shop.paris, days=60, cents=30_000)
    shop.count()
    page = analyst.get("/analyse/sales").text
    assert "No ticket in this period" in page
    [url] = re.findall(r'href="/o/[^/"]+(/[^"]*)">Show the 30 days up to', page)
    assert "Net sales, EUR €300.00" in text_of(analyst.get(html.unescape(url)).text)


def test_a_view_is_saved_by_name_for_its_user_alone_and_moves_with_the_day(shop, analyst, visitor_as):
    query = "period=7d&compare=before&currency=EUR"
    saved = analyst.post("/analyse/views", page="sales", query=query, name="Briefing <b>")
    assert saved.status_code == 303
    [view] = links(analyst.get("/analyse/sales").text, "period=7d&compare=before&currency=EUR")
    assert analyst.get(view).status_code == 200
    assert "Briefing &lt;b&gt;" in analyst.get("/analyse/sales").text
    assert "Briefing" not in visitor_as(Role.OWNER).get("/analyse/sales").text
    assert analyst.post("/analyse/views", page="sales", query="", name=" ").status_code == 400
    assert analyst.post("/analyse/views", page="../team", query="", name="x").status_code == 400
    analyst.post("/analyse/views/delete", page="sales", query=query, name="Briefing <b>")
    assert "Briefing" not in analyst.get("/analyse/sales").text
