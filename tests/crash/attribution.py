"""Checks A1: after kills, each purchase is credited to the text that a plain join finds, and totals are sums of credits.

A2: a global holdout has each customer who may be texted once, in the group of the hash. A3: a lift counts each
recipient of its campaign once.
"""

import psycopg
from tests.attribution.desk import MONTH_SUMS, MONTHS, SUMS, TOTALS
from tests.attribution.test_oracle import JOIN
from tests.crash.shops import Shop

from regulars.experiments.holdout.model import draw


def check_draw(url: str, shop: Shop) -> int:
    """Checks A2; returns how many customers are held out."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT profile_id, quarter, is_held_out FROM holdout_customers WHERE organization_id = %s",
            (shop.organization_id,),
        ).fetchall()
        [(drawn, held_out, percent)] = connection.execute(
            "SELECT customers, held_out, percent FROM holdout_quarters WHERE organization_id = %s",
            (shop.organization_id,),
        ).fetchall()
        [(people,)] = connection.execute(
            "SELECT count(DISTINCT profile_id) FROM subscriptions WHERE organization_id = %s AND status = 'SUBSCRIBED'",
            (shop.organization_id,),
        ).fetchall()
    assert len(rows) == drawn == people, f"A2: {len(rows)} rows of {drawn} drawn customers, {people} may be texted"
    wrong = [it for it in rows if draw(shop.organization_id, it[1], it[0], percent=percent).is_held_out != it[2]]
    assert not wrong, f"A2: {len(wrong)} customers are in the wrong group"
    assert sum(it[2] for it in rows) == held_out, "A2: the count of customers held out is wrong"
    return int(held_out)


def check_lift(url: str, shop: Shop) -> None:
    """Checks A3."""
    with psycopg.connect(url) as connection:
        [(result,)] = connection.execute(
            "SELECT result FROM lifts WHERE organization_id = %s AND kind = 'campaign'", (shop.organization_id,)
        ).fetchall()
        [arms] = connection.execute(
            "SELECT count(*) FILTER (WHERE arm > 0), count(*) FILTER (WHERE arm = 0) FROM campaign_recipients"
            " WHERE organization_id = %s",
            (shop.organization_id,),
        ).fetchall()
    assert (result["treated"], result["held_out"]) == arms, f"A3: {result} is the lift of {arms}"


def check_credits(url: str, shop: Shop) -> None:
    with psycopg.connect(url) as connection:
        expected = dict(connection.execute(JOIN, (shop.organization_id,)).fetchall())
        rows = connection.execute(
            "SELECT sale_id, text_id FROM attributed_sales WHERE organization_id = %s AND profile_id IS NOT NULL",
            (shop.organization_id,),
        )
        credited = dict(rows.fetchall())
        differing = {it for it in expected.keys() | credited.keys() if expected.get(it) != credited.get(it)}
        assert not differing, f"A1: {len(differing)} of {len(expected)} purchases are not credited as they should be"
        for statements in ((SUMS, TOTALS), (MONTH_SUMS, MONTHS)):
            sums, totals = (connection.execute(it, (shop.organization_id,)).fetchall() for it in statements)
            assert sums == totals, "A1: the totals are not the sums of the credits"
