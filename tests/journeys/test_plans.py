"""A card that all cashiers of a till share has tens of thousands of tickets; a pass reads only the newest."""

from datetime import timedelta

import pytest
from tests.journeys.desk import Desk
from tests.support.plans import rows_discarded, watch

from regulars.conditions.tree import Bought, Window
from regulars.journeys.context import evaluate
from regulars.journeys.definition import Definition, Exit
from regulars.journeys.snapshot import SALES_MAX, DecisionSubject, find_sales_since, load_snapshot
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid

TICKETS = 3_000
# Recorded a minute apart, the last one now; an id begins with its time.
OLD_TICKETS = """
INSERT INTO sales_events (organization_id, id, external_id, type, occurred_at, store_id, profile_id, currency,
                          total_amount_cents, total_discount_cents, line_items, created_at)
SELECT %(organization_id)s, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
           || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
       'T' || n, 'PURCHASE', at, %(profile_id)s, %(profile_id)s, 'EUR', 100, 0, '[]', at
FROM generate_series(0, %(tickets)s - 1) AS n, LATERAL (SELECT now() - n * interval '1 minute' AS at) AS it
"""


def test_the_sales_since_a_moment_are_read_from_that_moment_on(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    profile_id = new_uuid()
    given = {"organization_id": desk.organization_id, "profile_id": profile_id, "tickets": TICKETS}
    desk.do(lambda tx: tx.execute(OLD_TICKETS, given))
    thrown = watch(monkeypatch, rows_discarded)

    async def read(tx: Tx) -> None:
        since = [tx.now - timedelta(minutes=20), tx.now]
        found = await find_sales_since(tx, desk.organization_id, [(profile_id, None, moment) for moment in since])
        assert [len(sales) for sales in found] == [20, 0]

    desk.do(read)
    # Of each, those of the hour by which clocks may differ.
    assert max(thrown.values()) <= 2 * 61


def test_conditions_of_a_journey_look_at_the_sales_that_were_recorded_last(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    profile_id = desk.customer("shared")
    given = {"organization_id": desk.organization_id, "profile_id": profile_id, "tickets": TICKETS}
    desk.do(lambda tx: tx.execute(OLD_TICKETS, given))
    asked = Bought(at_least=1_000, window=Window(last_days=365))
    definition = Definition(name="J", trigger="purchase", filter=asked, steps=(Exit(),))
    thrown = watch(monkeypatch, rows_discarded)

    async def see(tx: Tx) -> None:
        subject = DecisionSubject(profile_id, None, definition)
        context = (await load_snapshot(tx, desk.organization_id, [subject])).context_of(subject, tx.now)
        assert context is not None
        assert len(context.customer.sales) == SALES_MAX < TICKETS
        assert evaluate("filter", asked, context) is True

    desk.do(see)
    # Other tests leave rows in the small tables, which are then read whole.
    [of_sales] = [rows for statement, rows in thrown.items() if "sales_events" in statement]
    assert of_sales == 0
