"""Random customers, whose texts and tickets arrive in any order, against a plain join and a search cent by cent."""

import json
import random
from collections import Counter, defaultdict
from datetime import timedelta
from uuid import UUID

import pytest
from tests.sales.test_returned_lines import search

from regulars.attribution.compute import credit_sales
from regulars.attribution.model import Origin, Touch, TouchKind, Windows
from regulars.attribution.queries import LoadedSale
from regulars.kit.ids import new_uuid
from regulars.messaging.model import OriginKind
from regulars.sales.facts import SalesRecorded
from regulars.sales.returned_lines import CustomerSale
from regulars.work import outbox

CUSTOMERS = 1_000
BATCHES = 6

INSERT_TEXTS = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, body, parts, state, expires_at,
                   created_at, claimed_at)
SELECT %s, it.id, it.kind, it.origin_id, it.id::text, it.profile_id, 'Hello', 1, it.state, it.at, it.at, it.at
FROM json_to_recordset(%s) AS it (id uuid, kind text, origin_id uuid, profile_id uuid, state text, at timestamptz)
"""
INSERT_SALES = """
INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at, total_amount_cents,
                          total_discount_cents, external_id, type, currency, line_items)
SELECT %s, it.id, it.id, it.profile_id, it.at, it.at, it.total, 0, it.external_id, it.type, it.currency, it.lines
FROM json_to_recordset(%s) AS it (id uuid, profile_id uuid, at timestamptz, total bigint, external_id text, type text,
                                  currency text, lines json)
"""
# The latest text within 24 hours before each purchase.
JOIN = """SELECT DISTINCT ON (s.id) s.id, t.id
FROM sales_events s
JOIN texts t ON t.organization_id = s.organization_id AND t.profile_id = s.profile_id
    AND t.claimed_at < s.occurred_at AND t.claimed_at >= s.occurred_at - interval '24 hours'
    AND t.state IN ('sent', 'delivered', 'unknown') AND t.origin_kind IN ('campaign', 'journey', 'person')
WHERE s.organization_id = %s AND s.type = 'PURCHASE'
ORDER BY s.id, t.claimed_at DESC, t.id DESC
"""


def invent(chance, now):
    """The texts and tickets of all customers."""
    texts, sales = [], []
    campaign = new_uuid()
    for _ in range(CUSTOMERS):
        profile_id = new_uuid()
        for _ in range(chance.randrange(5)):
            at = now - timedelta(hours=chance.randrange(45 * 24))
            state = chance.choice(("sent", "sent", "delivered", "unknown", "failed", "skipped", "sending"))
            kind = chance.choice(("campaign", "person", "person", "answer"))
            origin = campaign if kind == "campaign" else new_uuid()
            texts.append({"id": new_uuid(), "kind": kind, "origin_id": origin, "profile_id": profile_id})
            texts[-1] |= {"state": state, "at": at}
        near = [it["at"] for it in reversed(texts[-5:]) if it["profile_id"] == profile_id] or [now]
        for _ in range(chance.randrange(14)):
            at = min(now, chance.choice(near) + timedelta(hours=chance.randrange(-40, 700) / chance.choice((1, 30))))
            lines = [(chance.choice("ABC"), chance.randrange(1, 15)) for _ in range(chance.randrange(1, 4))]
            sales.append({"id": new_uuid(), "profile_id": profile_id, "at": at, "external_id": str(new_uuid())})
            sales[-1] |= {"type": "RETURN" if chance.random() < 0.35 else "PURCHASE"}
            sales[-1] |= {"currency": chance.choice(("EUR", "CHF", "GBP")), "total": sum(it[1] for it in lines)}
            sales[-1]["lines"] = [
                {"quantity": 1, "product": {"external_id": code}, "total_price_cents": cents} for code, cents in lines
            ]
    return texts, sales


def expect(desk, sales):
    """By sale: the text, and the net."""
    by_customer = defaultdict(list)
    for it in sales:
        by_customer[it["profile_id"]].append(
            CustomerSale(
                it["id"],
                int(it["at"].timestamp() * 1_000_000),
                it["external_id"],
                it["type"] == "RETURN",
                it["currency"],
                it["total"],
                [(line["product"]["external_id"], line["total_price_cents"]) for line in it["lines"]],
            )
        )
    returned = {}
    for own in by_customer.values():
        returned |= search(own)[0]
    totals = {it["id"]: it["total"] for it in sales}
    return {
        sale_id: (text_id, max(0, totals[sale_id] - returned.get(sale_id, 0))) for sale_id, text_id in desk.sql(JOIN)
    }


@pytest.mark.parametrize("seed", [1])
def test_credits_equal_a_plain_join_whatever_the_order_of_arrival(desk, seed):
    chance = random.Random(seed)
    now = desk.do(_now)
    texts, sales = invent(chance, now)
    arrivals = [(True, it) for it in texts] + [(False, it) for it in sales]
    chance.shuffle(arrivals)

    def as_json(rows):
        return json.dumps(rows, default=str)

    for batch in range(BATCHES):
        some = arrivals[batch::BATCHES]
        new_texts = [it for is_text, it in some if is_text]
        new_sales = [it for is_text, it in some if not is_text]

        async def arrive(tx, new_texts=new_texts, new_sales=new_sales):
            await tx.execute(INSERT_TEXTS, (desk.organization_id, as_json(new_texts)))
            await tx.execute(INSERT_SALES, (desk.organization_id, as_json(new_sales)))
            await outbox.record(tx, desk.organization_id, [SalesRecorded([it["id"] for it in new_sales])])

        desk.do(arrive)
        desk.announce(it["id"] for it in new_texts)
        desk.compute()
    expected = expect(desk, sales)
    found = {it.sale_id: (it.text_id, it.net_cents) for it in desk.credits().values()}
    assert found == expected
    purchases = Counter(it["currency"] for it in sales if it["type"] == "PURCHASE")
    assert min(purchases.values()) > 1_000
    assert len(expected) > 500


async def _now(tx):
    return tx.now


def test_ten_thousand_tickets_of_one_customer_are_computed_in_a_moment(desk):
    """A house account: the time is in proportion to the tickets."""
    now = desk.do(_now)
    profile_id = UUID(int=1)
    lines = '[{"quantity": 1, "product": {"external_id": "A"}, "total_price_cents": 5}]'
    sales = [
        LoadedSale(UUID(int=n), profile_id, f"{n:06}", now + timedelta(seconds=n), n % 3 == 0, "EUR", 5, lines)
        for n in range(1, 10_001)
    ]
    touch = Touch(now, TouchKind.DELIVERY, UUID(int=2), now, Origin(OriginKind.PERSON))
    found = credit_sales(sales, [touch], windows=Windows(), zone=desk.zone_info)
    assert sum(it.net_cents for it in found) == 5 * (6_667 - 3_333)
    assert len(found) == 6_667
