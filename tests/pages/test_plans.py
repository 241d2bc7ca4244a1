"""No page reads a large table from end to end: PostgreSQL itself counts such scans."""

import sys
from pathlib import Path

import psycopg
import pytest
from tests.support import database
from tests.support.analysis import running_analysis
from tests.support.client import new_http
from tests.support.crawl import crawl
from tests.support.open_database import close_idle
from tests.support.run_async import run_async
from tests.support.server import running_server
from tests.support.visitor import Visitor, sign_in_now
from tests.support.waiting import wait_until

from regulars.kit.settings import Settings
from regulars.server import page_table
from regulars.web.access import Role

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from large import TABLES, Size, fill_large  # the folder of the benchmark has just been made importable

# Enough that a plan which scans a table is a plan and no accident of a small one, and no more: the files of a page
# contain every row. The audit log is not one of the counted tables.
SIZE = Size(customers=2_000, sales=10_000, times=4, messages=20_000, runs=8_000, audit_entries=2_000)
SCANS = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(%s)"


OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def scans(url: str) -> dict[str, int]:
    """What all connections have counted: one that is open keeps it for itself for ten seconds, one that ends tells it."""
    close_idle(url)
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(OTHERS).fetchone() == (0,))
        return dict(connection.execute(SCANS, (list(TABLES),)).fetchall())


@pytest.mark.timeout(600)
def test_no_page_scans_a_large_table(shared_database):
    server_url, template = shared_database
    with database.new_database(server_url, template=template) as url:
        organization_id = run_async(fill_large(url, SIZE, lambda _text: None))
        who = sign_in_now(url, organization_id, Role.OWNER)
        before = scans(url)
        # Without the analysis process each page that asks it would wait eight seconds for its start.
        with running_server(url) as server, running_analysis(server), new_http() as http:
            visitor = Visitor(http, server.url, who)
            seen = crawl(visitor, page_table(Settings()))
            for search in ("a", "Lyon", "+33612", "prof_01", "T-1"):
                visitor.get("/search", q=search)
        after = scans(url)
    assert [(one.path, one.status) for one in seen if one.status >= 500] == []
    assert {table: after[table] - before[table] for table in TABLES} == dict.fromkeys(TABLES, 0)


@pytest.mark.timeout(600)
def test_the_counters_see_a_scan(shared_database):
    server_url, template = shared_database
    with database.new_database(server_url, template=template) as url:
        before = scans(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT count(*) FROM sales_events WHERE source = 'x'")
        assert scans(url)["sales_events"] > before["sales_events"]
