"""`regulars attribution`: what is credited to texts, as a table, JSON and CSV, and computing it anew."""

import csv
import io
import json

import psycopg
import pytest
from tests.support import samples
from tests.support.drain_queues import drain_queues

from regulars.kit import ids

TEXT = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, body, parts, state, expires_at,
                   created_at, claimed_at)
SELECT organization_id, %s, 'person', %s, '1', id, 'Hello', 1, 'sent', now(), now(), now() - interval '2 hours'
FROM profiles
"""


@pytest.fixture
def shop(regulars, database_url, tmp_path):
    """A ticket of a customer who got a text."""
    identifier = ids.ORGANIZATION.decode(regulars("organization", "create", "Shop").out.strip())
    with psycopg.connect(database_url) as connection:
        now = connection.execute("SELECT to_char(now() - interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SSOF:\"00\"')")
        [at] = now.fetchone()
    sale = samples.sale("S1") | {"occurred_at": at, "total_amount_cents": 1000, "profile_id": "ada", "currency": "EUR"}
    for kind, row in {"stores": {"external_id": "S1"}, "sales": sale}.items():
        (tmp_path / f"{kind}.ndjson").write_text(json.dumps(row) + "\n")
        assert regulars("import", kind, str(tmp_path / f"{kind}.ndjson"), "-o", "Shop").code == 0
    with psycopg.connect(database_url) as connection:
        connection.execute(TEXT, (ids.new_uuid(), ids.new_uuid()))
    return identifier


def test_credits_are_shown_by_origin_and_month_once_they_are_computed(regulars, shop, database_url):
    assert regulars("attribution", "show", "-o", "Shop", "--json").data["rows"] == []
    started = regulars("attribution", "recompute", "-o", "Shop", "--json").data
    assert started == {"was_running": False, "customers_waiting": 0}
    drain_queues(database_url, shop)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE attribution_customers SET due_at = now() - interval '1 s'")
    drain_queues(database_url, shop)
    found = regulars("attribution", "show", "-o", "Shop", "--json").data
    [row] = found["rows"]
    assert (row["kind"], row["id"], row["tickets"], row["gross_cents"], row["net_cents"]) == (
        "person",
        None,
        1,
        1000,
        1000,
    )
    assert found["whole"] == [
        {"currency": "EUR", "tickets": 1, "gross_cents": 1000, "net_cents": 1000, "unmatched_cents": 0}
        | {"lift": "no_holdout", "extra_net_cents": None, "extra_low_cents": None, "extra_high_cents": None}
        | {"sample_ratio_alarm": False}
    ]
    by_month = regulars("attribution", "show", "-o", "Shop", "--by", "month", "--csv").out
    [month, total] = csv.DictReader(io.StringIO(by_month))
    assert (month["currency"], month["net_cents"], month["lift"]) == ("EUR", "1000", "no_holdout")
    assert (total["month"], total["currency"], total["net_cents"]) == ("total", "EUR", "1000")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO lifts (organization_id, kind, source_id, step, period, state, held_out_share, window_days,"
            " first_day, last_day) VALUES (%s, 'holdout', %s, '', '2026-Q4', 'open', 0.1, 0, current_date, current_date)",
            (shop, shop),
        )
    found = regulars("attribution", "show", "-o", "Shop", "--json").data["rows"][1]
    assert (found["kind"], found["name"], found["lift"]) == ("global_holdout", "2026-Q4", "open")
    by_month = regulars("attribution", "show", "-o", "Shop", "--by", "month", "--csv").out
    assert [row["month"] for row in csv.DictReader(io.StringIO(by_month))][1:] == ["2026-Q4", "total"]
    table = regulars("attribution", "show", "-o", "Shop").out
    assert "NET CENTS" in table
    assert "global_holdout" in table
    assert regulars("attribution", "show", "-o", "Shop", "--from", "2099-01-01", "--to", "2098-01-01").code == 2
