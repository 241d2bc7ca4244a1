"""Every statement finds rows by their keys in tables that were never analyzed, beside a neighbour with many rows."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.architecture.test_statements import DIRECTORY_TABLES
from tests.support.plans import nodes
from tests.support.prepared import Statement, all_statements, plan
from tests.support.rows import insert_rows

NEIGHBOUR_ROWS = 1_500
BYTES_MIN = 64 << 10
# Statements whose parameters have no type outside the function that runs them.
UNTYPED = 10
TABLES = """
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'organization_id'
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY 1
"""
# They are meant to read what belongs to the organization: one row of it, all of it, or a small partial index.
WHOLE = re.compile(
    r"\.(has_\w+|count_\w+|is_any_activation|find_newest_sale|_replaced_erasures|find_erasure_to_replay|list_secrets)$"
    # Active runs and undecided replies of the organization, by a partial index of only those.
    r"|journeys\.runs\.queries\.(hold_runs|release_runs|is_any_active|wake_texted_runs)$"
    r"|messaging\.inbox\.queries\.(decide_all_of|delete_replies_of|release_number)$"
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
        tables = [row[0] for row in connection.execute(TABLES).fetchall() if not DIRECTORY_TABLES.fullmatch(row[0])]
        for table in tables:
            try:
                insert_rows(connection, table, neighbour, NEIGHBOUR_ROWS, is_full=True)
            except psycopg.errors.UniqueViolation:
                # One row an organization.
                insert_rows(connection, table, neighbour, 1, is_full=True)
        sizes = connection.execute("SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relkind = 'r'").fetchall()
        yield connection, {name for name, size in sizes if name in tables and size >= BYTES_MIN}


def searched_by_the_organization_alone(found: dict[str, Any], large: set[str]) -> list[str]:
    wrong = []
    for node in nodes(found):
        condition = node.get("Index Cond", "")
        is_alone = " AND " not in condition and "ROW(" not in condition and "organization_id" in condition
        if node.get("Relation Name") in large and (node["Node Type"] == "Seq Scan" or is_alone):
            wrong.append(f"{node['Relation Name']} by {node.get('Index Name')}")
    return wrong


def test_no_statement_reads_an_organization_to_find_a_row(crowded):
    connection, large = crowded
    assert len(large) > 15
    statements = [one for one in all_statements() if not WHOLE.search(one.place)]
    assert len(statements) > 400
    connection.execute("SET plan_cache_mode = force_custom_plan")
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
    assert wrong == {}
    assert len(untyped) <= UNTYPED, [one.place for one in untyped]


def test_the_rule_sees_a_search_by_the_organization_alone():
    alone = {"Node Type": "Index Scan", "Relation Name": "texts", "Index Cond": "(organization_id = 'x'::uuid)"}
    by_key = {**alone, "Index Cond": "((organization_id = 'x'::uuid) AND (id = 'y'::uuid))"}
    assert searched_by_the_organization_alone({"Node Type": "Limit", "Plans": [alone]}, {"texts"}) != []
    assert searched_by_the_organization_alone({"Node Type": "Limit", "Plans": [by_key]}, {"texts"}) == []
