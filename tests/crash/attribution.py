"""A1: after kills every purchase is credited to the text that a plain join finds, and the totals are their sums."""

import psycopg
from tests.attribution.desk import SUMS, TOTALS
from tests.attribution.test_oracle import JOIN
from tests.crash.shops import Shop


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
        sums, totals = (connection.execute(it, (shop.organization_id,)).fetchall() for it in (SUMS, TOTALS))
        assert sums == totals, "A1: the totals are not the sums of the credits"
