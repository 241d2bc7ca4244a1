"""Every statement finds rows by their keys for an organization beside a neighbour with many rows: in tables that were
never analyzed, and after the statistics task has met tables that were analyzed with the neighbour alone."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.support.package_statements import SAMPLES, Statement, all_statements, plan
from tests.support.plans import nodes
from tests.support.rows import insert_rows

from regulars.kit.cluster import LOCAL_TABLES
from regulars.work.statistics import ROWS_MIN, Statistics

pytestmark = pytest.mark.anyio

# So many that a list of twenty keys is far cheaper by the index than a reading of the whole table: at half as many the
# two cost the same, and the random shape of an index decided.
NEIGHBOUR_ROWS = 3_000
BYTES_MIN = 64 << 10
# Statements whose parameters have no type outside the function that runs them.
UNTYPED = 9
TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'organization_id'
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY 1
"""
WHOLE = re.compile(
    # The oldest that are left of a list that exists only while a restore is being finished.
    r"^regulars\.(privacy\.queries\.list_erasures_to_replay"
    # One row of the organization, whichever, is enough.
    r"|demo\.load\.organization_has_data|demo\.load\.load_demo|demo\.fill\._run_queues|first_run\.state\.read_state"
    r"|journeys\.runs\.lists\.is_any_run_open|experiments\.holdout\.queries\.is_any_customer_stored"
    # The first or the last row of a key.
    r"|sales\.totals\.fill\._find_newest_sale|sales\.totals\.reports\.find_last_currency|work\.queries\.find_oldest_row"
    # All of a partial index that has only what is counted.
    r"|journeys\.stats\.count_at_fault|journeys\.stats\.count_parked|campaigns\.attention\.count_questions"
    r"|campaigns\.manage\.pause_restored|inbox\.find\.count_undecided|sales\.collision_review\.count_open_collisions"
    # All organizations, once: what a restored database has still to erase, and secrets to encrypt anew.
    r"|cli\.restore_replay\._load_erasures|webhooks\.queries\.endpoints\.list_secrets)$"
)
# The first or the last rows of the organization, in the order of an index, as many as the statement's limit says.
IN_ORDER = re.compile(
    r"^regulars\.(first_run\.state\._find_first_ticket|profiles\.search\.count_profiles|stores\.find\.find_by_name"
    r"|journeys\.sample_customers\._list_last_\w+|journeys\.manage\.list_journeys|campaigns\.queries\.list_campaigns"
    r"|conditions\.campaign_names\.find_campaign_names|attribution\.windows\.list_versions"
    r"|inbox\.queries\.lists\.list_last_\w+|request_log\.queries\.delete_entries_before"
    r"|webhooks\.queries\.deliveries\.find_old_messages)$"
)


@pytest.fixture
def crowded(database_url: str) -> Iterator[tuple[psycopg.Connection[Any], set[str]]]:
    with psycopg.connect(database_url, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET session_replication_role = replica")
        checks = "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace"
        for table, name in connection.execute(checks).fetchall():
            connection.execute(
                psycopg.sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
                    psycopg.sql.Identifier(table), psycopg.sql.Identifier(name)
                )
            )
        neighbour = uuid4()
        tables = [row[0] for row in connection.execute(TABLES).fetchall() if row[0] not in LOCAL_TABLES]
        for table in tables:
            # Who analyzes is the test.
            off = psycopg.sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = false)")
            connection.execute(off.format(psycopg.sql.Identifier(table)))
            try:
                insert_rows(connection, table, neighbour, NEIGHBOUR_ROWS, is_full=True)
            except psycopg.errors.UniqueViolation:
                # One row an organization.
                insert_rows(connection, table, neighbour, 1, is_full=True)
        sizes = connection.execute("SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relkind = 'r'").fetchall()
        yield connection, {name for name, size in sizes if name in tables and size >= BYTES_MIN}


def searched_by_the_organization_alone(found: dict[str, Any], large: set[str]) -> list[str]:
    """Not by a bitmap: that is for several rows, so the planner knows that they are several, and takes the key when they
    have become many."""
    wrong = []
    for node in nodes(found):
        condition = node.get("Index Cond", "")
        is_alone = " AND " not in condition and "ROW(" not in condition and "organization_id" in condition
        if node.get("Relation Name") in large and (node["Node Type"] == "Seq Scan" or is_alone):
            wrong.append(f"{node['Relation Name']} by {node.get('Index Name')}")
    return wrong


def badly_planned(
    connection: psycopg.Connection[Any], large: set[str], statements: list[Statement]
) -> dict[str, list[str]]:
    wrong: dict[str, list[str]] = {}
    untyped: list[Statement] = []
    for statement in statements:
        try:
            found = plan(connection, statement)
        except (psycopg.ProgrammingError, psycopg.DataError, KeyError):
            untyped.append(statement)
            continue
        if alone := searched_by_the_organization_alone(found, large):
            wrong[statement.place] = alone
    assert len(untyped) <= UNTYPED, [one.place for one in untyped]
    return wrong


async def test_no_statement_reads_an_organization_to_find_a_row(crowded, database):
    connection, large = crowded
    assert len(large) > 15
    statements = [one for one in all_statements() if not WHOLE.search(one.place)]
    assert len(statements) > 400
    connection.execute("SET plan_cache_mode = force_custom_plan")
    assert badly_planned(connection, large, statements) == {}

    connection.execute("ANALYZE")
    newcomer = UUID(SAMPLES["uuid"].strip("'"))
    insert_rows(connection, "organizations", newcomer, 1, is_full=True, id=newcomer)
    for table in large:
        insert_rows(connection, table, newcomer, ROWS_MIN, is_full=True)
    connection.execute("SELECT pg_stat_force_next_flush()")
    assert len(badly_planned(connection, large, statements[::5])) > 10
    assert set(await Statistics(database).gather()) >= large
    # Of a table this small a quarter is read fastest with the rest, which no index is named for.
    wrong = badly_planned(connection, large, [one for one in statements if not IN_ORDER.search(one.place)])
    assert {place: found for place, found in wrong.items() if not all(one.endswith("by None") for one in found)} == {}


async def test_the_rule_sees_a_search_by_the_organization_alone():
    alone = {"Node Type": "Index Scan", "Relation Name": "texts", "Index Cond": "(organization_id = 'x'::uuid)"}
    by_key = {**alone, "Index Cond": "((organization_id = 'x'::uuid) AND (id = 'y'::uuid))"}
    assert searched_by_the_organization_alone({"Node Type": "Limit", "Plans": [alone]}, {"texts"}) != []
    assert searched_by_the_organization_alone({"Node Type": "Limit", "Plans": [by_key]}, {"texts"}) == []
