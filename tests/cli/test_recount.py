"""`regulars doctor --recount`: what is derived is rebuilt from the rows by the worker."""

import json
from datetime import timedelta

import psycopg
from tests.support import samples
from tests.support.drain_queues import drain_queues

from regulars import worker
from regulars.kit import ids
from regulars.sales.totals import fill

SALES = 3
FIGURES = """
SELECT (SELECT sum(purchases)::int FROM sales_totals WHERE NOT is_hour),
       (SELECT array_agg(key) FROM product_properties),
       (SELECT sum(readable)::int FROM catalog_tallies WHERE key = 'colour'),
       (SELECT due_at IS NULL AND counted_at IS NOT NULL FROM consent_figures)
"""


def test_facts_that_an_older_worker_removed_are_counted_from_the_rows(regulars, database_url, tmp_path, monkeypatch):
    for reader in (fill, worker):
        monkeypatch.setattr(reader, "SALE_AGE_MIN", timedelta(seconds=-60))
    shown = regulars("organization", "create", "Shop").out.strip()
    lines = [{**samples.sale("S1"), "external_id": f"S1:{number}"} for number in range(SALES)]
    for line in lines:
        line["line_items"] = [
            {"quantity": 1, "total_price_cents": 5, "product": {"external_id": "P", "properties": {"colour": "red"}}}
        ]
    for kind, rows in (("stores", [{"external_id": "S1"}]), ("sales", lines)):
        file = tmp_path / f"{kind}.ndjson"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert regulars("import", kind, str(file), "--organization", "Shop").code == 0
    organization_id = ids.ORGANIZATION.decode(shown)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM outbox")
        connection.execute(
            "INSERT INTO consent_figures (organization_id, time_zone) VALUES (%s, 'UTC')", (organization_id,)
        )
        drain_queues(database_url, organization_id)
        assert connection.execute(FIGURES).fetchone() == (None, None, None, False)
        said = regulars("doctor", "--recount")
        assert said.code == 0
        assert "The worker recounts 1 organization: totals of sales" in said.out
        drain_queues(database_url, organization_id)
        assert connection.execute(FIGURES).fetchone() == (SALES, ["colour"], SALES, True)
    assert regulars("doctor", "--recount", "--json").data["organizations"] == 1
