"""`regulars analyse`: figures of a period as a table, JSON and CSV, of all sales or of a segment."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.cli.conftest import environment
from tests.support import samples
from tests.support.analysis import analysis_process
from tests.support.drain_queues import drain_queues

from regulars.kit import ids
from regulars.sales.totals import fill

PERIOD = ("--from", "2026-03-01", "--to", "2026-03-31")


@pytest.fixture
def shop(regulars, database_url, tmp_path):
    """Three tickets of two stores, counted, in an organization of half-hour time."""
    identifier = ids.ORGANIZATION.decode(regulars("organization", "create", "Shop").out.strip())
    assert regulars("organization", "set", "Shop", "--time-zone", "Asia/Kolkata").code == 0
    sales = [
        # Half past midnight of 2 March in India.
        {"external_id": "S1:1", "occurred_at": "2026-03-01T19:00:00Z", "total_amount_cents": 1000, "profile_id": "ada"},
        {"external_id": "S1:2", "occurred_at": "2026-03-02T10:00:00Z", "total_amount_cents": 250, "type": "RETURN"},
        {"external_id": "S2:1", "occurred_at": "2026-03-09T10:00:00Z", "total_amount_cents": 500, "currency": "CHF"},
    ]
    rows = {
        "stores": [{"external_id": "S1", "name": "One"}, {"external_id": "S2"}],
        "sales": [samples.sale(one["external_id"][:2]) | one for one in sales],
    }
    for kind, lines in rows.items():
        file = tmp_path / f"{kind}.ndjson"
        file.write_text("".join(json.dumps(row) + "\n" for row in lines))
        assert regulars("import", kind, str(file), "--organization", "Shop").code == 0
    drain_queues(database_url, identifier)
    return identifier


@pytest.fixture
def serve_analysis(database_url, tmp_path):
    """As `regulars serve` has it. Without it each command starts a process of its own, which takes a second."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    return lambda: analysis_process(environment(REGULARS_DATA_DIR=str(folder), DATABASE_URL=database_url))


def analyse(regulars, *words):
    return regulars("analyse", *words, "--organization", "Shop")


def test_sales_are_shown_by_day_week_store_and_currency(regulars, shop):
    found = analyse(regulars, "sales", *PERIOD, "--json").data
    [day] = found["rows"][:1]
    assert (day["day"], day["currency"], day["gross_cents"], day["net_cents"]) == ("2026-03-02", "EUR", 1000, 750)
    assert (day["purchases"], day["returns"], day["identified_rate"], day["return_rate"]) == (1, 1, 0.5, 0.25)
    assert [(one["currency"], one["net_cents"]) for one in found["whole"]] == [("EUR", 750), ("CHF", 500)]
    weeks = analyse(regulars, "sales", *PERIOD, "--by", "week", "--json").data["rows"]
    assert [(row["week"], row["currency"]) for row in weeks] == [("2026-03-02", "EUR"), ("2026-03-09", "CHF")]
    hours = analyse(regulars, "sales", "--from", "2026-03-02", "--to", "2026-03-02", "--by", "hour", "--json").data
    assert [(row["hour"], row["net_cents"]) for row in hours["rows"]] == [("0", 1000), ("15", -250)]
    money = analyse(regulars, "sales", *PERIOD, "--by", "currency", "--json").data["rows"]
    assert [(row["currency"], row["tickets"]) for row in money] == [("EUR", 2), ("CHF", 1)]
    francs = analyse(regulars, "sales", *PERIOD, "--currency", "CHF", "--json").data
    assert [row["day"] for row in francs["rows"]] == ["2026-03-09"]
    assert [one["net_cents"] for one in francs["whole"]] == [500]


def test_stores_are_shown_in_the_period_and_by_day(regulars, shop):
    [store] = analyse(regulars, "stores", *PERIOD, "--store", "S1", "--json").data["rows"]
    assert (store["name"], store["net_cents"]) == ("One", 750)
    found = analyse(regulars, "stores", *PERIOD, "--by", "day", "--json").data
    days = {(row["name"], row["day"], row["currency"], row["net_cents"]) for row in found["rows"]}
    assert days == {("One", "2026-03-02", "EUR", 750), ("S2", "2026-03-09", "CHF", 500)}
    assert [(one["currency"], one["net_cents"]) for one in found["whole"]] == [("EUR", 750), ("CHF", 500)]


def test_the_table_and_the_csv_end_with_the_total(regulars, shop):
    rows = _rows_of_csv(analyse(regulars, "stores", *PERIOD, "--csv"))
    assert sorted((row["name"], row["currency"], row["net_cents"]) for row in rows[:2]) == [
        ("One", "EUR", "750"),
        ("S2", "CHF", "500"),
    ]
    assert [(row["store"], row["currency"], row["net_cents"]) for row in rows[2:]] == [
        ("total", "EUR", "750"),
        ("total", "CHF", "500"),
    ]
    table = analyse(regulars, "sales", *PERIOD).out
    assert "NET CENTS" in table
    totals = [line.split()[:3] for line in table.splitlines() if line.startswith("total")]
    assert totals == [["total", "EUR", "750"], ["total", "CHF", "500"]]
    # Currencies are never added, so their rows are the totals.
    money = _rows_of_csv(analyse(regulars, "sales", *PERIOD, "--by", "currency", "--csv"))
    assert [row["currency"] for row in money] == ["EUR", "CHF"]


def _rows_of_csv(ran):
    return list(csv.DictReader(io.StringIO(ran.out)))


def test_another_time_zone_counts_the_days_again(regulars, shop, database_url, monkeypatch):
    monkeypatch.setattr(fill, "SALE_AGE_MIN", -fill.SALE_AGE_MIN)
    assert regulars("organization", "set", "Shop", "--time-zone", "Europe/Paris").code == 0
    drain_queues(database_url, shop)
    days = [row["day"] for row in analyse(regulars, "sales", *PERIOD, "--json").data["rows"]]
    assert days == ["2026-03-01", "2026-03-02", "2026-03-09"]


def test_sales_of_a_segment_are_those_of_its_members(regulars, shop, database_url, tmp_path, serve_analysis):
    file = tmp_path / "segment.json"
    file.write_text(json.dumps({"name": "Buyers", "match": {"type": "all", "of": [{"type": "bought"}]}}))
    segment = regulars("segment", "create", str(file), "--organization", "Shop").out.strip()
    drain_queues(database_url, shop)

    def check(by):
        found = analyse(regulars, "sales", *PERIOD, "--by", by, "--segment", segment, "--json").data
        assert [(row["currency"], row["net_cents"], row["units"]) for row in found["rows"]] == [("EUR", 1000, 1)]

    check("day")
    with serve_analysis():
        check("store")
        check("currency")
        months = analyse(regulars, "stores", *PERIOD, "--by", "month", "--segment", segment, "--json").data["rows"]
        assert [(row["name"], row["month"], row["net_cents"]) for row in months] == [("One", "2026-03-01", 1000)]
        assert "by day or longer" in analyse(regulars, "sales", "--by", "hour", "--segment", segment).complains(code=2)


def test_customers_and_products_are_those_of_the_pages(regulars, shop, database_url, serve_analysis):
    """The first question has the columns built."""
    assert "being prepared" in analyse(regulars, "customers", *PERIOD).complains(code=1)
    drain_queues(database_url, shop)
    found = analyse(regulars, "customers", *PERIOD, "--json").data
    [month] = found["rows"]
    assert (month["month"], month["new"], month["returning"]) == ("2026-03-01", 1, 0)
    assert month["new_net_cents_EUR"] == 1000
    assert (found["whole"][0]["tickets"], found["whole"][0]["identified"]) == (3, 1)
    [_, total] = _rows_of_csv(analyse(regulars, "customers", *PERIOD, "--csv"))
    assert (total["month"], total["tickets"], total["identified"]) == ("total", "3", "1")
    with serve_analysis():
        cohorts = analyse(regulars, "customers", *PERIOD, "--by", "cohort", "--json").data["rows"]
        assert (cohorts[0]["cohort"], cohorts[0]["customers"], cohorts[0]["bought"]) == ("2026-03-01", 1, 1)
        groups = analyse(regulars, "customers", *PERIOD, "--by", "rfm", "--json").data["rows"]
        assert sum(group["customers"] for group in groups) == 1
        assert {group["threshold_currency"] for group in groups} == {"EUR"}
        rows = _rows_of_csv(analyse(regulars, "customers", *PERIOD, "--by", "store", "--csv"))
        assert [(row["name"], row["new"]) for row in rows if row["customers"] != "0"] == [("One", "1"), ("", "1")]
        assert rows[-1]["store"] == "total"
        money = analyse(regulars, "customers", *PERIOD, "--by", "currency", "--json").data["rows"]
        assert [(row["currency"], row["net_cents"], row["new_net_cents"]) for row in money] == [("EUR", 1000, 1000)]


def test_products_are_those_of_the_currency_with_the_most_sales(regulars, shop, database_url, serve_analysis):
    with serve_analysis():
        assert "being prepared" in analyse(regulars, "products", *PERIOD).complains(code=1)
        drain_queues(database_url, shop)
        rows = _rows_of_csv(analyse(regulars, "products", *PERIOD, "--by", "store", "--csv"))
        assert [(row["name"], row["currency"]) for row in rows] == [("One", "EUR"), ("", "EUR")]
        assert rows[0]["net_cents"] == rows[1]["net_cents"]
        [franc, _] = _rows_of_csv(analyse(regulars, "products", *PERIOD, "--store", "S2", "--by", "store", "--csv"))
        assert (franc["name"], franc["currency"]) == ("S2", "CHF")
        days = analyse(regulars, "products", *PERIOD, "--by", "day", "--json").data
        assert [(row["day"], row["currency"]) for row in days["rows"]] == [("2026-03-02", "EUR")]
        assert [row["net_cents"] for row in days["rows"]] == [one["net_cents"] for one in days["whole"]]
        money = _rows_of_csv(analyse(regulars, "products", *PERIOD, "--by", "currency", "--csv"))
        assert [row["currency"] for row in money] == ["EUR", "CHF"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("sales", "--by", "hour"), "--by hour: choose one day, the same with --from and --to."),
        (("sales", "--currency", "NOK"), "--currency: NOK is none of EUR"),
        (("products", "--by", "fabric"), "--by fabric: choose product, store, day"),
        (
            ("products", "--by", "day", "--from", f"{datetime.now(UTC) - timedelta(days=800):%Y-%m-%d}"),
            "--by day: a period of more than 732 days is divided by week or month.",
        ),
    ],
)
def test_rows_that_a_command_does_not_have_are_refused(regulars, shop, words, sentence):
    assert sentence in analyse(regulars, *words).complains(code=2)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "soon"), "--from: Enter a day"),
        (("--from", "1926-01-01"), "--from: The period cannot begin before"),
        (("--to", "2999-01-01"), "--to: The period cannot end after today"),
        (("--segment", "jrn_x"), "is not the id of a segment"),
    ],
)
def test_a_period_or_a_segment_that_cannot_be_used_is_refused(regulars, shop, words, sentence):
    assert sentence in analyse(regulars, "sales", *words).complains(code=2)


def test_a_store_that_is_unknown_is_refused(regulars, shop):
    assert "There is no store ROME." in analyse(regulars, "sales", "--store", "ROME").complains(code=1)


def test_days_are_in_utc_where_the_machine_lacks_the_time_zone(regulars, shop, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE organizations SET time_zone = 'Mars/Olympus'")
    found = analyse(regulars, "sales", *PERIOD, "--json")
    assert (found.code, [one["net_cents"] for one in found.data["whole"]]) == (0, [750, 500])
