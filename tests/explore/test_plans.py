"""No page reads a whole table: the plans of all statements of the explorers, on a large organization."""

import httpx
import pytest
from tests.explore.crowd import CUSTOMERS, LARGE, STATEMENTS, identifier
from tests.support.plans import nodes, watch
from tests.support.visitor import sign_in

from regulars.accounts.sessions import SessionStore
from regulars.attribution.pages.credit_cards import ticket_card
from regulars.columns.client import Analysis
from regulars.consent.figures import count_figures
from regulars.explore.consents import pages as consents
from regulars.explore.customers import pages as customers
from regulars.explore.find import pages as find
from regulars.explore.home import pages as home
from regulars.explore.stores import pages as shops
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE, SUBSCRIPTION
from regulars.kit.settings import Settings
from regulars.organizations.manage import create_organization
from regulars.privacy import pages as rights
from regulars.privacy.erasure_log import ErasureLog
from regulars.sales.pages import collisions, tickets
from regulars.server import find_started_journeys
from regulars.web import cookies
from regulars.web.access import Role
from regulars.web.app import WebApp

pytestmark = pytest.mark.anyio

MODULES = (home, consents, collisions, shops, find)
# Reads every organization of this size in full would be the fault; a page of a list, or a customer's, is not.
ROWS_MAX = 25_000


async def fill(database, organization_id):
    async with database.transaction() as tx:
        for statement in STATEMENTS:
            await tx.execute(statement, {"organization": organization_id})
    async with database.connection() as connection:
        await connection.execute("ANALYZE")
    async with database.transaction() as tx:
        await tx.execute(
            "INSERT INTO consent_figures (organization_id, time_zone, due_at) VALUES (%s, 'UTC', now())",
            (organization_id,),
        )
    await count_figures(database, organization_id)


def rows_of_large_tables(plan):
    """The most that a part of the plan reads of one; a part that scans a table reads all."""
    return max(
        (
            CUSTOMERS
            if node["Node Type"] == "Seq Scan"
            else int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
            for node in nodes(plan)
            if node.get("Relation Name") in LARGE
        ),
        default=0,
    )


def addresses():
    customer, ticket = PROFILE.encode(identifier(7)), SALES_EVENT.encode(identifier(7))
    store, number = STORE.encode(identifier(7)), SUBSCRIPTION.encode(identifier(7))
    return [
        "/",
        "/?period=today",
        "/?period=12m&by=store",
        "/customers",
        "/customers?q=first12",
        "/customers?last=30&spend=5&sort=spend",
        "/customers?q=last4",
        f"/customers?q=C-{CUSTOMERS}",
        "/customers?q=%2B33600000007",
        f"/customers/{customer}",
        f"/customers/{customer}/erase",
        f"/customers/{customer}/export.json",
        "/consent",
        "/consent/numbers",
        "/consent/numbers?status=UNSUBSCRIBED",
        "/consent/numbers?source=EVENT",
        "/consent/numbers?proof=weak",
        f"/consent/numbers/{number}?at=2030-01-01T10:00",
        f"/consent/numbers/{number}/certificate",
        "/tickets",
        "/tickets?currency=USD",
        "/tickets?type=RETURN&customer=no",
        f"/tickets?store={store}",
        f"/tickets?store={store}&currency=USD",
        f"/tickets?store={store}&from=2000-01-01",
        f"/tickets?stores={store}.{store}&hour=2026-01-01T10",
        f"/tickets?profile={customer}",
        f"/tickets/{ticket}",
        "/collisions",
        "/collisions?state=reviewed",
        f"/collisions/{ticket}",
        "/stores",
        f"/stores/{store}",
        "/search?q=first12",
        "/search?q=nothing%20at%20all",
    ]


async def test_no_statement_of_a_page_reads_a_large_table_whole(database, monkeypatch, tmp_path):
    async with database.connection() as connection:
        organization = await create_organization(connection, "Large")
    await fill(database, organization.id)
    pages = [page for module in MODULES for page in module.PAGES]
    pages += customers.pages(Analysis(Settings(data_dir=tmp_path)), origins={})
    pages += tickets.pages(list_started=find_started_journeys, attribution_card=ticket_card)
    pages += rights.pages(ErasureLog(tmp_path / "erasures.log"))
    who = await sign_in(database, organization.id, Role.OWNER)
    app = WebApp(pages, database=database, sessions=SessionStore(database))
    transport = httpx.ASGITransport(app=app)
    read = watch(monkeypatch, rows_of_large_tables)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        http.cookies.set(cookies.SESSION_HTTP, who.token)
        for path in addresses():
            answer = await http.get(f"/o/{who.slug}{path}")
            assert answer.status_code == 200, (path, answer.text[:200])
    assert len(read) > 30
    assert {text: rows for text, rows in read.items() if rows > ROWS_MAX} == {}


def test_a_scan_of_a_large_table_would_be_seen():
    scan = {"Node Type": "Seq Scan", "Relation Name": "profiles", "Actual Rows": 1, "Actual Loops": 1}
    assert rows_of_large_tables({"Node Type": "Limit", "Plans": [scan]}) > ROWS_MAX
    assert rows_of_large_tables({**scan, "Relation Name": "stores"}) == 0
    assert rows_of_large_tables({**scan, "Node Type": "Index Scan", "Rows Removed by Filter": ROWS_MAX}) > ROWS_MAX
