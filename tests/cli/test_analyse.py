"""`regulars analyse`: figures of a period as a table, JSON and CSV, of all sales or of a segment."""

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import psycopg
import pytest
from tests.cli.conftest import Command, Ran, copy_of, environment, run_here
from tests.support import samples
from tests.support.analysis import analysis_process
from tests.support.drain_queues import drain_queues

from regulars.sales.totals import fill

PERIOD = ("--from", "2026-03-01", "--to", "2026-03-31")


def command_on(database_url: str, folder: Path) -> Command:
    variables = environment(DATABASE_URL=database_url, REGULARS_DATA_DIR=str(folder))
    return lambda *words: run_here([*words], variables, folder)


def analyse_on(database_url: str, folder: Path) -> Command:
    run = command_on(database_url, folder)
    return lambda *words: run("analyse", *words, "--organization", "Shop")


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
def analyse(counted_url: str, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """`regulars analyse` on the counted sales, which it only reads."""
    return analyse_on(counted_url, tmp_path_factory.mktemp("analyse"))


class Columns(NamedTuple):
    url: str
    run: Command
    analyse: Command
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
        run, analyse = command_on(url, folder), analyse_on(url, folder)
        with analysis_process(environment(REGULARS_DATA_DIR=str(folder), DATABASE_URL=url)):
            first_answers = [analyse(what, *PERIOD) for what in ("customers", "products")]
            created = run("segment", "create", str(folder / "segment.json"), "-o", "Shop")
            drain_queues(url, organization_id)
            yield Columns(url, run, analyse, first_answers, created.out.strip())


def test_sales_are_shown_by_day_week_store_and_currency(analyse):
    found = analyse("sales", *PERIOD, "--json").data
    [day] = found["rows"][:1]
    assert (day["day"], day["currency"], day["gross_cents"], day["net_cents"]) == ("2026-03-02", "EUR", 1000, 750)
    assert (day["purchases"], day["returns"], day["identified_rate"], day["return_rate"]) == (1, 1, 0.5, 0.25)
    assert [(one["currency"], one["net_cents"]) for one in found["whole"]] == [("EUR", 750), ("CHF", 500)]
    weeks = analyse("sales", *PERIOD, "--by", "week", "--json").data["rows"]
    assert [(row["week"], row["currency"]) for row in weeks] == [("2026-03-02", "EUR"), ("2026-03-09", "CHF")]
    hours = analyse("sales", "--from", "2026-03-02", "--to", "2026-03-02", "--by", "hour", "--json").data
    assert [(row["hour"], row["net_cents"]) for row in hours["rows"]] == [("0", 1000), ("15", -250)]
    money = analyse("sales", *PERIOD, "--by", "currency", "--json").data["rows"]
    assert [(row["currency"], row["tickets"]) for row in money] == [("EUR", 2), ("CHF", 1)]
    francs = analyse("sales", *PERIOD, "--currency", "CHF", "--json").data
    assert [row["day"] for row in francs["rows"]] == ["2026-03-09"]
    assert [one["net_cents"] for one in francs["whole"]] == [500]


def test_stores_are_shown_in_the_period_and_by_day(analyse):
    [store] = analyse("stores", *PERIOD, "--store", "S1", "--json").data["rows"]
    assert (store["name"], store["net_cents"]) == ("One", 750)
    found = analyse("stores", *PERIOD, "--by", "day", "--json").data
    days = {(row["name"], row["day"], row["currency"], row["net_cents"]) for row in found["rows"]}
    assert days == {("One", "2026-03-02", "EUR", 750), ("S2", "2026-03-09", "CHF", 500)}
    assert [(one["currency"], one["net_cents"]) for one in found["whole"]] == [("EUR", 750), ("CHF", 500)]


def test_the_table_and_the_csv_end_with_the_total(analyse):
    rows = _rows_of_csv(analyse("stores", *PERIOD, "--csv"))
    assert sorted((row["name"], row["currency"], row["net_cents"]) for row in rows[:2]) == [
        ("One", "EUR", "750"),
        ("S2", "CHF", "500"),
    ]
    assert [(row["store"], row["currency"], row["net_cents"]) for row in rows[2:]] == [
        ("total", "EUR", "750"),
        ("total", "CHF", "500"),
    ]
    table = analyse("sales", *PERIOD).out
    assert "NET CENTS" in table
    totals = [line.split()[:3] for line in table.splitlines() if line.startswith("total")]
    assert totals == [["total", "EUR", "750"], ["total", "CHF", "500"]]
    # Currencies are never added, so their rows are the totals.
    money = _rows_of_csv(analyse("sales", *PERIOD, "--by", "currency", "--csv"))
    assert [row["currency"] for row in money] == ["EUR", "CHF"]


def _rows_of_csv(ran):
    return list(csv.DictReader(io.StringIO(ran.out)))


def test_another_time_zone_counts_the_days_again(counted_url, organization_id, tmp_path, monkeypatch):
    monkeypatch.setattr(fill, "SALE_AGE_MIN", -fill.SALE_AGE_MIN)
    with copy_of(counted_url) as url:
        analyse = analyse_on(url, tmp_path)
        with psycopg.connect(url, autocommit=True) as connection:
            # Days are in UTC where the machine lacks the time zone.
            connection.execute("UPDATE organizations SET time_zone = 'Mars/Olympus'")
            found = analyse("sales", *PERIOD, "--json")
            assert (found.code, [one["net_cents"] for one in found.data["whole"]]) == (0, [750, 500])
        assert command_on(url, tmp_path)("organization", "set", "Shop", "--time-zone", "Europe/Paris").code == 0
        drain_queues(url, organization_id)
        days = [row["day"] for row in analyse("sales", *PERIOD, "--json").data["rows"]]
        assert days == ["2026-03-01", "2026-03-02", "2026-03-09"]


def test_sales_of_a_segment_are_those_of_its_members(columns):
    def check(by):
        found = columns.analyse("sales", *PERIOD, "--by", by, "--segment", columns.segment, "--json").data
        assert [(row["currency"], row["net_cents"], row["units"]) for row in found["rows"]] == [("EUR", 1000, 1)]

    for by in ("day", "store", "currency"):
        check(by)
    asked = ("stores", *PERIOD, "--by", "month", "--segment", columns.segment, "--json")
    months = columns.analyse(*asked).data["rows"]
    assert [(row["name"], row["month"], row["net_cents"]) for row in months] == [("One", "2026-03-01", 1000)]
    hours = columns.analyse("sales", "--by", "hour", "--segment", columns.segment)
    assert "by day or longer" in hours.complains(code=2)


def test_the_members_of_a_segment_are_listed_and_counted(columns):
    listed = columns.run("segment", "members", columns.segment, "-o", "Shop")
    assert re.fullmatch(r"prof_[0-9a-z]{26}\n", listed.out)
    assert listed.err == "1 customers of Buyers, version 1.\n"


def test_the_first_question_has_the_columns_built(columns):
    for answer in columns.first_answers:
        assert "being prepared" in answer.complains(code=1)


def test_a_command_starts_an_analysis_process_of_its_own_where_none_runs(columns, tmp_path):
    found = analyse_on(columns.url, tmp_path)("customers", *PERIOD, "--json").data
    [month] = found["rows"]
    assert (month["month"], month["new"], month["returning"]) == ("2026-03-01", 1, 0)
    assert month["new_net_cents_EUR"] == 1000
    assert (found["whole"][0]["tickets"], found["whole"][0]["identified"]) == (3, 1)


def test_customers_are_those_of_the_pages(columns):
    analyse = columns.analyse
    [_, total] = _rows_of_csv(analyse("customers", *PERIOD, "--csv"))
    assert (total["month"], total["tickets"], total["identified"]) == ("total", "3", "1")
    cohorts = analyse("customers", *PERIOD, "--by", "cohort", "--json").data["rows"]
    assert (cohorts[0]["cohort"], cohorts[0]["customers"], cohorts[0]["bought"]) == ("2026-03-01", 1, 1)
    groups = analyse("customers", *PERIOD, "--by", "rfm", "--json").data["rows"]
    assert sum(group["customers"] for group in groups) == 1
    assert {group["threshold_currency"] for group in groups} == {"EUR"}
    rows = _rows_of_csv(analyse("customers", *PERIOD, "--by", "store", "--csv"))
    assert [(row["name"], row["new"]) for row in rows if row["customers"] != "0"] == [("One", "1"), ("", "1")]
    assert rows[-1]["store"] == "total"
    money = analyse("customers", *PERIOD, "--by", "currency", "--json").data["rows"]
    assert [(row["currency"], row["net_cents"], row["new_net_cents"]) for row in money] == [("EUR", 1000, 1000)]


def test_products_are_those_of_the_currency_with_the_most_sales(columns):
    analyse = columns.analyse
    rows = _rows_of_csv(analyse("products", *PERIOD, "--by", "store", "--csv"))
    assert [(row["name"], row["currency"]) for row in rows] == [("One", "EUR"), ("", "EUR")]
    assert rows[0]["net_cents"] == rows[1]["net_cents"]
    [franc, _] = _rows_of_csv(analyse("products", *PERIOD, "--store", "S2", "--by", "store", "--csv"))
    assert (franc["name"], franc["currency"]) == ("S2", "CHF")
    days = analyse("products", *PERIOD, "--by", "day", "--json").data
    assert [(row["day"], row["currency"]) for row in days["rows"]] == [("2026-03-02", "EUR")]
    assert [row["net_cents"] for row in days["rows"]] == [one["net_cents"] for one in days["whole"]]
    money = _rows_of_csv(analyse("products", *PERIOD, "--by", "currency", "--csv"))
    assert [row["currency"] for row in money] == ["EUR", "CHF"]


REFUSALS = [
    (("sales", "--by", "hour"), "--by hour: choose one day, the same with --from and --to."),
    (("sales", "--currency", "NOK"), "--currency: NOK is none of EUR"),
    (("products", "--by", "fabric"), "--by fabric: choose product, store, day"),
    (
        ("products", "--by", "day", "--from", f"{datetime.now(UTC) - timedelta(days=800):%Y-%m-%d}"),
        "--by day: a period of more than 732 days is divided by week or month.",
    ),
    (("sales", "--from", "soon"), "--from: Enter a day"),
    (("sales", "--from", "1926-01-01"), "--from: The period cannot begin before"),
    (("sales", "--to", "2999-01-01"), "--to: The period cannot end after today"),
    (("sales", "--segment", "jrn_x"), "is not the id of a segment"),
]


def test_what_cannot_be_shown_is_refused_in_a_sentence(analyse):
    for words, sentence in REFUSALS:
        assert sentence in analyse(*words).complains(code=2), words
    assert "There is no store ROME." in analyse("sales", "--store", "ROME").complains(code=1)
