"""Random customers, whose texts and tickets arrive in any order, against a plain join and a search cent by cent."""

import json
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from tests.sales.test_returned_lines import search

from regulars.attribution.compute import credit_sales
from regulars.attribution.model import Origin, Touch, TouchKind, Windows
from regulars.kit.ids import new_uuid
from regulars.links.facts import LinkClicked
from regulars.links.origin_kind import OriginKind
from regulars.sales.customer_sales import LoadedSale
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
INSERT_LINKS = """
INSERT INTO links (organization_id, code, url, origin_kind, origin_id, step, created_at, personal_since, text_id,
                   profile_id)
SELECT %s, it.text_id::text, 'https://shop.example', 'campaign', it.text_id, '1', now(), now(), it.text_id, it.profile_id
FROM json_to_recordset(%s) AS it (text_id uuid, profile_id uuid)
ON CONFLICT DO NOTHING
"""
INSERT_CLICKS = """
INSERT INTO clicks (organization_id, id, code, minute, class)
SELECT %s, it.id, it.text_id::text, it.at, it.class
FROM json_to_recordset(%s) AS it (id uuid, text_id uuid, at timestamptz, class text)
"""
# The latest click within 5 days before each purchase, else the latest text within 24 hours.
JOIN = """SELECT DISTINCT ON (s.id) s.id, t.id
FROM sales_events s
JOIN (
    SELECT organization_id, profile_id, id, claimed_at AS at, interval '24 hours' AS span FROM texts
    WHERE state IN ('sent', 'delivered', 'unknown') AND origin_kind IN ('campaign', 'journey', 'person')
    UNION ALL
    SELECT t.organization_id, t.profile_id, t.id, greatest(c.minute, t.claimed_at), interval '120 hours'
    FROM clicks c
    JOIN links l ON l.organization_id = c.organization_id AND l.code = c.code
    JOIN texts t ON t.organization_id = l.organization_id AND t.id = l.text_id AND t.profile_id = l.profile_id
    WHERE c.class = 'person' AND l.url <> 'opt-out' AND t.state IN ('sent', 'delivered', 'unknown')
      AND t.origin_kind IN ('campaign', 'journey', 'person')
) t ON t.organization_id = s.organization_id AND t.profile_id = s.profile_id
    AND t.at < s.occurred_at AND t.at >= s.occurred_at - t.span
WHERE s.organization_id = %s AND s.type = 'PURCHASE'
ORDER BY s.id, t.span DESC, t.at DESC, t.id DESC
"""


def invent(chance, now):
    """The texts, clicks and tickets of all customers."""
    texts, clicks, sales = [], [], []
    campaign = new_uuid()
    for _ in range(CUSTOMERS):
        profile_id = new_uuid()
        for _ in range(chance.randrange(5)):
            at = now - timedelta(hours=chance.randrange(45 * 24))
            state = chance.choice(("sent", "sent", "delivered", "unknown", "failed", "skipped", "queued", "sending"))
            kind = chance.choice(("campaign", "person", "person", "answer"))
            origin = campaign if kind == "campaign" else new_uuid()
            texts.append({"id": new_uuid(), "kind": kind, "origin_id": origin, "profile_id": profile_id})
            texts[-1] |= {"state": state, "at": at}
            for _ in range(chance.choice((0, 0, 1, 2))):
                clicked = (at + timedelta(hours=chance.randrange(1, 300))).replace(second=0, microsecond=0)
                clicks.append({"id": new_uuid(), "text_id": texts[-1]["id"], "profile_id": profile_id})
                clicks[-1] |= {"at": clicked, "class": chance.choice(("person", "person", "machine"))}
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
    return texts, clicks, sales


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
    # With statistics from before the rows were there, the plan may compare every text with every sale.
    desk.do(lambda tx: tx.execute("ANALYZE texts, links, clicks, sales_events"))
    return {
        sale_id: (text_id, max(0, totals[sale_id] - returned.get(sale_id, 0))) for sale_id, text_id in desk.sql(JOIN)
    }


@pytest.mark.parametrize("seed", [1])
def test_credits_equal_a_plain_join_whatever_the_order_of_arrival(desk, seed):
    chance = random.Random(seed)
    now = desk.now()
    invented = dict(zip(("texts", "clicks", "sales"), invent(chance, now), strict=True))
    arrivals = [(kind, it) for kind, some in invented.items() for it in some]
    chance.shuffle(arrivals)
    for batch in range(BATCHES):
        arrive(desk, arrivals[batch::BATCHES])
        desk.compute()
    sales = invented["sales"]
    expected = expect(desk, sales)
    found = {it.sale_id: (it.text_id, it.net_cents) for it in desk.credits().values()}
    assert found == expected
    purchases = Counter(it["currency"] for it in sales if it["type"] == "PURCHASE")
    assert min(purchases.values()) > 1_000
    assert len(expected) > 500


def arrive(desk, arrivals):
    texts, clicks, sales = ([it for kind, it in arrivals if kind == one] for one in ("texts", "clicks", "sales"))

    async def insert(tx):
        for statement, rows in (
            (INSERT_TEXTS, texts),
            (INSERT_LINKS, clicks),
            (INSERT_CLICKS, clicks),
            (INSERT_SALES, sales),
        ):
            await tx.execute(statement, (desk.organization_id, json.dumps(rows, default=str)))
        facts = [LinkClicked(it["profile_id"], it["text_id"], it["at"]) for it in clicks if it["class"] == "person"]
        await outbox.record(tx, desk.organization_id, [SalesRecorded([it["id"] for it in sales]), *facts])

    desk.do(insert)
    desk.announce(it["id"] for it in texts)


@pytest.mark.parametrize(("number", "unmatched"), [("T1", 0), ("T3", 3)])
def test_a_return_at_the_time_of_a_purchase_is_shown_with_it_if_its_number_is_higher(number, unmatched):
    at = datetime(2026, 11, 2, 12, tzinfo=UTC)
    touch = Touch(at - timedelta(hours=1), TouchKind.DELIVERY, UUID(int=2), at, Origin(OriginKind.PERSON))
    purchase = LoadedSale(UUID(int=3), UUID(int=1), "T2", at, False, "EUR", 5, "[]")
    back = LoadedSale(UUID(int=4), UUID(int=1), number, at, True, "EUR", 3, "[]")
    [found] = credit_sales([back, purchase], [touch], windows=Windows(), zone=ZoneInfo("UTC"))
    assert found.unmatched_cents == unmatched


def test_ten_thousand_tickets_of_one_customer_are_computed_in_a_moment(desk):
    """A house account: the time is in proportion to the tickets."""
    now = desk.now()
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
