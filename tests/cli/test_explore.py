"""`regulars explore`: figures of a period as a table, JSON and CSV, of all sales or of a segment."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import psycopg
import pytest
from tests.cli.conftest import Command, Ran, copy_of, environment, run_here
from tests.support import samples
from tests.support.analysis import analysis_process
from tests.support.drain_queues import drain_queues

from regulars.kit.ids import SEGMENT
from regulars.sales.totals import fill

PERIOD = ("--from", "2026-03-01", "--to", "2026-03-31")


def command_on(database_url: str, folder: Path) -> Command:
    variables = environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(folder))
    return lambda *words: run_here([*words], variables, folder)


def explore_on(database_url: str, folder: Path) -> Command:
    run = command_on(database_url, folder)
    return lambda *words: run("explore", *words, "--organization", "Shop")


@pytest.fixture(scope="module")
def organization_id(shop_template: str) -> UUID:
    with psycopg.connect(shop_template) as connection:
        return connection.execute("SELECT id FROM organizations").fetchone()[0]


@pytest.fixture(scope="module")
def counted_url(shop_template: str, organization_id: UUID, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Three tickets of two stores, counted, in an organization of half-hour time; a segment of the buyers."""
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
    folder = tmp_path_factory.mktemp("counted")
    with copy_of(shop_template) as url:
        run = command_on(url, folder)
        assert run("organization", "set", "Shop", "--time-zone", "Asia/Kolkata").code == 0
        for kind, lines in rows.items():
            file = folder / f"{kind}.ndjson"
            file.write_text("".join(json.dumps(row) + "\n" for row in lines))
            assert run("import", kind, str(file), "--organization", "Shop").code == 0
        drain_queues(url, organization_id)
        yield url


@pytest.fixture(scope="module")
def explore(counted_url: str, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """`regulars explore` on the counted sales, which it only reads."""
    return explore_on(counted_url, tmp_path_factory.mktemp("explore"))


class Columns(NamedTuple):
    url: str
    run: Command
    explore: Command
    # What the first questions got, and a segment of the buyers.
    first_answers: list[Ran]
    segment: str


@pytest.fixture(scope="module")
def columns(counted_url: str, organization_id: UUID, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Columns]:
    """A copy with columns, and the process that reads them, as `regulars serve` has it.

    Without it each command starts a process of its own, which takes a second.
    """
    folder = tmp_path_factory.mktemp("columns")
    (folder / "segment.json").write_text('{"name": "Buyers", "match": {"type": "all", "of": [{"type": "bought"}]}}')
    with copy_of(counted_url) as url:
        run, explore = command_on(url, folder), explore_on(url, folder)
        with analysis_process(environment(REGULARS_DATA_DIR=str(folder), DATABASE_URL=url)):
            first_answers = [explore(what, *PERIOD) for what in ("customers", "products")]
            created = run("segment", "create", str(folder / "segment.json"), "-o", "Shop")
            drain_queues(url, organization_id)
            yield Columns(url, run, explore, first_answers, created.out.strip())


def test_sales_are_shown_by_any_time_and_in_total(explore):
    found = explore("sales", *PERIOD, "--json").data
    [day] = found["rows"][:1]
    assert (day["day"], day["currency"], day["gross_cents"], day["net_cents"]) == ("2026-03-02", "EUR", 1000, 750)
    assert (day["purchases"], day["returns"], day["identified_rate"], day["return_rate"]) == (1, 1, 0.5, 0.25)
    assert [(one["currency"], one["net_cents"]) for one in found["whole"]] == [("EUR", 750), ("CHF", 500)]
    weeks = explore("sales", *PERIOD, "--by", "week", "--json").data["rows"]
    assert [(row["week"], row["currency"]) for row in weeks] == [("2026-03-02", "EUR"), ("2026-03-09", "CHF")]
    hours = explore("sales", *PERIOD, "--by", "hour", "--currency", "EUR", "--json").data
    assert [(row["hour"], row["net_cents"]) for row in hours["rows"]] == [("0", 1000), ("15", -250)]
    money = explore("sales", *PERIOD, "--by", "total", "--json").data["rows"]
    assert [(row["currency"], row["tickets"]) for row in money] == [("EUR", 2), ("CHF", 1)]
    francs = explore("sales", *PERIOD, "--currency", "CHF", "--json").data
    assert [row["day"] for row in francs["rows"]] == ["2026-03-09"]
    assert [one["net_cents"] for one in francs["whole"]] == [500]


def test_two_dimensions_one_measure_and_another_period(explore):
    [store] = explore("stores", *PERIOD, "--store", "S1", "--json").data["rows"]
    assert (store["store_name"], store["net_cents"]) == ("One", 750)
    found = explore("stores", *PERIOD, "--by", "store", "--by", "day", "--measure", "net_cents", "--json").data
    assert {tuple(row) for row in found["rows"]} == {("store", "store_name", "day", "currency", "net_cents")}
    days = {(row["store_name"], row["day"], row["currency"], row["net_cents"]) for row in found["rows"]}
    assert days == {("One", "2026-03-02", "EUR", 750), ("S2", "2026-03-09", "CHF", 500)}
    assert [(one["currency"], one["net_cents"]) for one in found["whole"]] == [("EUR", 750), ("CHF", 500)]
    later = ("--from", "2026-03-03", "--to", "2026-03-09")
    asked = (*later, "--by", "day", "--measure", "net_cents", "--compare", "before", "--json")
    rows = explore("sales", *asked).data["rows"]
    assert [(row["day"], row["currency"], row["net_cents"], row["compared_net_cents"]) for row in rows] == [
        ("2026-03-09", "CHF", 500, 0),
        ("2026-03-09", "EUR", 0, 750),
    ]


def test_the_table_and_the_csv_end_with_the_total(explore):
    rows = _rows_of_csv(explore("stores", *PERIOD, "--csv"))
    assert sorted((row["store_name"], row["currency"], row["net_cents"]) for row in rows[:2]) == [
        ("One", "EUR", "750"),
        ("S2", "CHF", "500"),
    ]
    assert [(row["store"], row["currency"], row["net_cents"]) for row in rows[2:]] == [
        ("total", "EUR", "750"),
        ("total", "CHF", "500"),
    ]
    table = explore("sales", *PERIOD).out
    assert "NET CENTS" in table
    totals = [line.split()[:3] for line in table.splitlines() if line.startswith("total")]
    assert totals == [["total", "EUR", "750"], ["total", "CHF", "500"]]
    # Currencies are never added, so their rows are the totals.
    money = _rows_of_csv(explore("sales", *PERIOD, "--by", "total", "--csv"))
    assert [row["currency"] for row in money] == ["EUR", "CHF"]


def _rows_of_csv(ran):
    return list(csv.DictReader(io.StringIO(ran.out)))


def test_another_time_zone_counts_the_days_again(counted_url, organization_id, tmp_path, monkeypatch):
    monkeypatch.setattr(fill, "SALE_AGE_MIN", -fill.SALE_AGE_MIN)
    with copy_of(counted_url) as url:
        explore = explore_on(url, tmp_path)
        with psycopg.connect(url, autocommit=True) as connection:
            # Days are in UTC where the machine lacks the time zone.
            connection.execute("UPDATE organizations SET time_zone = 'Mars/Olympus'")
            found = explore("sales", *PERIOD, "--json")
            assert (found.code, [one["net_cents"] for one in found.data["whole"]]) == (0, [750, 500])
        assert command_on(url, tmp_path)("organization", "set", "Shop", "--time-zone", "Europe/Paris").code == 0
        drain_queues(url, organization_id)
        days = [row["day"] for row in explore("sales", *PERIOD, "--json").data["rows"]]
        assert days == ["2026-03-01", "2026-03-02", "2026-03-09"]


def test_sales_of_a_segment_are_those_of_its_members(columns):
    for by in ("day", "store", "total", "segment", "newness"):
        found = columns.explore("sales", *PERIOD, "--by", by, "--segment", columns.segment, "--json").data
        assert [(row["currency"], row["net_cents"], row["units"]) for row in found["rows"]] == [("EUR", 1000, 1)]
    [row] = columns.explore("sales", *PERIOD, "--by", "segment", "--segment", columns.segment, "--json").data["rows"]
    assert (row["segment"], row["segment_name"]) == (columns.segment, "Buyers")
    asked = ("stores", *PERIOD, "--by", "store", "--by", "month", "--segment", columns.segment, "--json")
    months = columns.explore(*asked).data["rows"]
    assert [(row["store_name"], row["month"], row["net_cents"]) for row in months] == [("One", "2026-03-01", 1000)]
    hours = columns.explore("sales", "--by", "hour", "--segment", columns.segment)
    assert "choose days" in hours.complains(code=2)
    for what, sentence in (("stores", "Choose one segment, or the dimension segment"), ("rfm", "of one segment")):
        several = columns.explore(what, *PERIOD, "--segment", columns.segment, "--segment", columns.segment)
        assert sentence in several.complains(code=2)


def test_the_members_of_a_segment_are_listed_and_counted(columns):
    listed = columns.run("segment", "members", columns.segment, "-o", "Shop")
    assert re.fullmatch(r"prof_[0-9a-z]{26}\n", listed.out)
    assert listed.err == "1 customers of Buyers, version 1.\n"


def test_the_first_question_has_the_columns_built(columns):
    for answer in columns.first_answers:
        assert "being prepared" in answer.complains(code=1)


def test_a_command_starts_an_analysis_process_of_its_own_where_none_runs(columns, tmp_path):
    found = explore_on(columns.url, tmp_path)("customers", *PERIOD, "--json").data
    [month] = found["rows"]
    assert (month["month"], month["new"], month["returning"]) == ("2026-03-01", 1, 0)
    assert month["new_net_cents_EUR"] == 1000
    assert (found["whole"][0]["tickets"], found["whole"][0]["identified"]) == (3, 1)


def test_customers_are_those_of_the_pages(columns):
    explore = columns.explore
    [_, total] = _rows_of_csv(explore("customers", *PERIOD, "--csv"))
    assert (total["month"], total["tickets"], total["identified"]) == ("total", "3", "1")
    cohorts = explore("cohorts", *PERIOD, "--json").data["rows"]
    assert (cohorts[0]["cohort"], cohorts[0]["customers"], cohorts[0]["bought"]) == ("2026-03-01", 1, 1)
    groups = explore("rfm", *PERIOD, "--json").data["rows"]
    assert sum(group["customers"] for group in groups) == 1
    assert {group["threshold_currency"] for group in groups} == {"EUR"}
    # Distinct customers do not add up, so they have no total.
    rows = _rows_of_csv(explore("stores", *PERIOD, "--measure", "customers", "--csv"))
    assert [(row["store_name"], row["customers"]) for row in rows] == [("One", "1"), ("S2", "0")]


def test_products_are_lines_of_the_currency_with_the_most_sales(columns):
    explore = columns.explore
    [sold, total] = _rows_of_csv(explore("products", *PERIOD, "--by", "store", "--by", "product", "--csv"))
    assert (sold["store_name"], sold["currency"], sold["customers"]) == ("One", "EUR", "1")
    assert (sold["net_cents"], total["store"]) == (total["net_cents"], "total")
    [franc, _] = _rows_of_csv(explore("products", *PERIOD, "--store", "S2", "--by", "product", "--csv"))
    assert franc["currency"] == "CHF"
    assert explore("products", *PERIOD, "--by", "property:a;=1", "--csv").out.startswith("property:a;'=1,")
    refused = explore("products", *PERIOD, "--measure", "tax_cents").complains(code=2)
    assert "“Tax” is not known of a product" in refused


def test_a_shared_question_is_printed_by_its_name(counted_url, organization_id, tmp_path):
    # Segments that were chosen for other rows do not count.
    query = "from=2026-03-01&to=2026-03-31&measure=tickets&rows=store&then=week&currency=EUR"
    query += f"&among={SEGMENT.encode(organization_id)}"
    with copy_of(counted_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for name, is_shared in (("By shop", True), ("Mine", False)):
                connection.execute(
                    "INSERT INTO saved_views (organization_id, user_id, page, name, query, is_shared, created_at)"
                    " VALUES (%s, gen_random_uuid(), 'explore', %s, %s, %s, now())",
                    (
                        organization_id,
                        name,
                        query,
                        is_shared,
                    ),
                )
        explore = explore_on(url, tmp_path)
        [row] = explore("By shop", "--json").data["rows"]
        assert (row["store_name"], row["week"], row["currency"], row["tickets"]) == ("One", "2026-03-02", "EUR", 2)
        # What is given beside the name counts instead of what was saved.
        [row] = explore("By shop", "--by", "total", "--currency", "CHF", "--json").data["rows"]
        assert row == {"currency": "CHF", "tickets": 1}
        assert "No shared question is called Mine" in explore("Mine").complains(code=2)


REFUSALS = [
    (("sales", "--currency", "NOK"), "--currency: NOK is none of EUR"),
    (("products", "--by", "fabric"), "“fabric” is no dimension: choose day, week"),
    (("sales", "--by", "day", "--by", "week", "--by", "store"), "at most two different dimensions"),
    (("sales", "--by", "day", "--by", "day"), "at most two different dimensions"),
    (("sales", "--measure", "profit"), "“profit” is no measure: choose one of net_cents"),
    (("customers", "--by", "store"), "--by: customers are shown by day, week or month."),
    (("sales", "--by", "segment"), "Choose at least one segment."),
    (("sales", "--from", "soon"), "--from: Enter a day"),
    (("sales", "--from", "1926-01-01"), "--from: The period cannot begin before"),
    (("sales", "--to", "2999-01-01"), "--to: The period cannot end after today"),
    (("sales", "--segment", "jrn_x"), "is not the id of a segment"),
]


def test_what_cannot_be_shown_is_refused_in_a_sentence(explore):
    for words, sentence in REFUSALS:
        assert sentence in explore(*words).complains(code=2), words
    assert "There is no store ROME." in explore("sales", "--store", "ROME").complains(code=1)
