"""What every table and statement keeps to, so that the same SQL runs on a cluster distributed by organization."""

import re
from pathlib import Path

import pytest
from tests.architecture.test_statements import all_statements, migrated_tables, place
from tests.support.project import PACKAGE, ROOT
from tests.support.statements import Statement

from regulars.kit.cluster import LOCAL_TABLES
from regulars.sales import statements as recording

# The one statement that inserts inside WITH, for the sake of the hot path.
RECORDING = PACKAGE / "sales" / "statements.py"
# The places that read across organizations: who has something due, and who has rows that a step of the clock delays.
DUE = {PACKAGE / "work" / "due.py", PACKAGE / "work" / "clock_steps.py"}
# After a restore the texts of all are held, before anything else runs.
ALL_ORGANIZATIONS = "src/regulars/texts/stops.py: hold_all_organizations"

_INSERT_IN_WITH = re.compile(r"\bAS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(\s*INSERT\b")
_TIME_ARITHMETIC = re.compile(
    r"\bSET\b(?:(?!\bWHERE\b).)*?=\s*[\w.]+\s*[+-]\s*(?:interval\b|%\(?\w*\)?s::interval)", re.DOTALL
)
_COLUMN_AND_INTERVAL = re.compile(r"\b(\w*(?:at|since|until)) = (?:\w+\.)?\1 [+-] (?:interval\b|%)")
# A cluster refuses functions that are not immutable inside CASE and COALESCE, and reading an array from text is one.
_ARRAY_FROM_TEXT = re.compile(
    r"\bSET\b(?:(?!\bWHERE\b).)*?\b(?:CASE|COALESCE)\b(?:(?!\bWHERE\b).)*?(?<![\w.)])[a-z_][\w.]*::\w+\[\]", re.DOTALL
)
_NEIGHBOUR = re.compile(r"\borganization_id\s*=\s*\w+\.organization_id\b")
_PARAMETER = re.compile(r"\borganization_id\s*(?:=|IN|= ANY)\s*\(?\s*(?:%|\$|ANY\s*\(%)")
_COLUMNS_OF_KEY = re.compile(r"(?:PRIMARY KEY|UNIQUE|FOREIGN KEY)\s*\(\s*(\w+)")
_UNIQUE_INDEX = re.compile(
    r"CREATE UNIQUE INDEX (?:CONCURRENTLY )?(?:IF NOT EXISTS )?\w+\s+ON (\w+) (?:USING \w+ )?\(\s*(\w+)"
)
_FORBIDDEN = re.compile(
    r"\bCREATE (?:CONSTRAINT )?TRIGGER\b|\b(?:big)?serial\b|\bGENERATED\b.*\bIDENTITY\b|\bDEFERRABLE\b"
)


def tables_with_an_organization() -> set[str]:
    return migrated_tables() - LOCAL_TABLES


def laterals(text: str) -> list[str]:
    """What stands in the parentheses after each LATERAL."""
    found = []
    for match in re.finditer(r"\bLATERAL\s*\(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.end() : end])
    return found


def changes_without_a_parameter(statement: Statement, tables: set[str]) -> bool:
    changes = re.findall(r"(?<!FOR )(?<!DO )(?<!KEY )\bUPDATE\s+(?!SET\b)(\w+)|\bDELETE\s+FROM\s+(\w+)", statement.text)
    changed = {name for pair in changes for name in pair if name in tables}
    return bool(changed) and not _PARAMETER.search(statement.text)


def migrations() -> list[tuple[str, str]]:
    files = sorted((PACKAGE / "migrations").glob("[0-9]*.sql"))
    return [(file.name, re.sub(r"--.*", "", file.read_text())) for file in files]


def bodies(text: str) -> dict[str, str]:
    return dict(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+) \((.*?)\n\)", text, re.DOTALL))


def test_no_statement_but_the_recording_one_inserts_inside_with():
    found = [place(one) for one in all_statements() if _INSERT_IN_WITH.search(one.text) and one.file != RECORDING]
    assert found == []


def test_no_update_adds_an_interval_to_a_column():
    assert [place(one) for one in all_statements() if _TIME_ARITHMETIC.search(one.text)] == []


def test_no_statement_of_a_test_adds_an_interval_to_a_column():
    """So that the tests, too, can run on a cluster."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    assert [file.name for file in files if _COLUMN_AND_INTERVAL.search(file.read_text())] == []


def test_no_update_reads_an_array_from_text_inside_case_or_coalesce():
    found = [place(one) for one in all_statements() if "UPDATE" in one.text and _ARRAY_FROM_TEXT.search(one.text)]
    assert found == []


def test_inside_lateral_the_organization_is_a_parameter():
    found = [
        place(one)
        for one in all_statements()
        if any(_NEIGHBOUR.search(inner) for inner in laterals(one.text)) and one.file != RECORDING
    ]
    assert found == []


def test_of_the_forms_of_the_recording_statement_only_that_for_several_takes_organizations_from_rows():
    """The other runs on a cluster, where it must be known whose it is before it is run."""
    sources = (recording.ONE_SALE, recording.SALES, recording.SALES_OF_SEVERAL)
    parts = (recording.KNOWN_CUSTOMERS, recording.UNUSED_KEYS, *recording.NEW_PROFILES, recording.STORE_RESPONSES)
    texts = {source: recording.compose(source, parts).prepared.text for source in sources}
    from_rows = [source for source, text in texts.items() if re.search(r"\bit\.organization_id", text)]
    assert from_rows == [recording.SALES_OF_SEVERAL]


def test_every_update_and_delete_names_one_organization_with_a_parameter():
    tables = tables_with_an_organization()
    found = [place(one) for one in all_statements() if changes_without_a_parameter(one, tables)]
    assert set(found) <= {ALL_ORGANIZATIONS}


def test_only_finding_due_work_reads_across_organizations():
    found = {one.file for one in all_statements() if "DISTINCT organization_id" in one.text}
    assert found == DUE


def test_no_statement_asks_who_inserted_a_row():
    assert [place(one) for one in all_statements() if re.search(r"\bxmax\b", one.text)] == []


def test_the_organization_comes_first_in_every_key_of_its_tables():
    wrong = []
    for name, text in migrations():
        for table, body in bodies(text).items():
            if "organization_id" in body and table not in LOCAL_TABLES:
                wrong += [f"{name}: {table}" for first in _COLUMNS_OF_KEY.findall(body) if first != "organization_id"]
        wrong += [
            f"{name}: {table}"
            for table, first in _UNIQUE_INDEX.findall(text)
            if table in tables_with_an_organization() and first != "organization_id"
        ]
    assert wrong == []


def test_every_table_without_an_organization_stays_on_the_coordinator():
    tables = bodies((PACKAGE / "migrations" / "schema.sql").read_text())
    assert set(tables) >= LOCAL_TABLES
    assert {name for name, body in tables.items() if "organization_id" not in body} <= LOCAL_TABLES


def test_no_migration_of_ours_makes_triggers_counters_or_late_constraints():
    assert [name for name, text in migrations() if _FORBIDDEN.search(text)] == []


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("WITH x AS (INSERT INTO a (b) VALUES (1)) SELECT 1", True),
        ("WITH x AS (SELECT 1) INSERT INTO a SELECT * FROM x", False),
    ],
)
def test_the_rule_about_with_sees_what_it_should(text, seen):
    assert bool(_INSERT_IN_WITH.search(text)) is seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("UPDATE a SET until = until + interval '1 day' WHERE x", True),
        ("UPDATE a SET until = %s WHERE since < %s - interval '1 day'", False),
    ],
)
def test_the_rule_about_intervals_sees_what_it_should(text, seen):
    assert bool(_TIME_ARITHMETIC.search(text)) is seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("UPDATE a SET b = COALESCE(it.c::uuid[], a.b) FROM it WHERE a.id = 1", True),
        ("UPDATE a SET d = 1, b = CASE WHEN it.x = 1 THEN c::text[] END FROM it WHERE a.id = 1", True),
        ("UPDATE a SET b = COALESCE(string_to_array(it.c, ',')::uuid[], a.b) WHERE a.id = 1", False),
        ("UPDATE a SET b = COALESCE(%(c)s::uuid[], a.b) WHERE a.id = ANY (it.c::uuid[])", False),
        ("UPDATE a SET b = it.c::uuid[] FROM it WHERE a.id = 1", False),
    ],
)
def test_the_rule_about_arrays_sees_what_it_should(text, seen):
    assert bool(_ARRAY_FROM_TEXT.search(text)) is seen


def test_the_rule_about_lateral_sees_what_it_should():
    bad = "FROM a CROSS JOIN LATERAL (SELECT 1 FROM b WHERE b.organization_id = a.organization_id LIMIT 1) AS x"
    assert _NEIGHBOUR.search(laterals(bad)[0])
    assert not _NEIGHBOUR.search(laterals(bad.replace("a.organization_id", "%s"))[0])
