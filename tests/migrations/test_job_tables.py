"""The job tables come from a library: when it is upgraded, its schema must be migrated too."""

from pathlib import Path

import procrastinate
import psycopg

MIGRATION = Path(__file__).parents[2] / "src" / "regulars" / "migrations" / "0002_jobs.sql"

OBJECTS = """
    SELECT 'column', table_name || '.' || column_name, data_type || coalesce(column_default, '') || is_nullable
    FROM information_schema.columns WHERE table_name LIKE 'procrastinate%'
    UNION ALL
    SELECT 'index', indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'procrastinate%'
    UNION ALL
    SELECT 'function', proname || '(' || pg_get_function_identity_arguments(oid) || ')', md5(pg_get_functiondef(oid))
    FROM pg_proc WHERE proname LIKE 'procrastinate%'
    UNION ALL
    SELECT 'trigger', tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'label', t.typname, string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder)
    FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid WHERE t.typname LIKE 'procrastinate%' GROUP BY t.typname
    UNION ALL
    SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname LIKE '%procrastinate%'
    ORDER BY 1, 2, 3
"""


def objects_made_by(url: str, statements: bytes) -> list[tuple[str, str, str]]:
    with psycopg.connect(url) as connection:
        connection.execute(statements)
        rows = connection.execute(OBJECTS).fetchall()
        connection.rollback()
    return rows


def test_the_migration_makes_what_the_installed_library_expects(empty_database_url):
    expected = procrastinate.schema.SchemaManager.get_schema().encode()
    wanted = objects_made_by(empty_database_url, expected)
    assert len(wanted) > 50
    assert objects_made_by(empty_database_url, MIGRATION.read_bytes()) == wanted
