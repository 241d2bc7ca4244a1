import psycopg
from tests.support import schema
from tests.support.database import new_database

from regulars.kit import migrate


def test_the_schema_file_equals_the_migrations(server_url, empty_database_url):
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(schema.SCHEMA_FILE.read_bytes())
    written = schema.facts(empty_database_url)
    with new_database(server_url) as url:
        migrate.migrate(url)
        migrated = schema.facts(url)
    assert migrated - written == set(), "missing in schema.sql: run bin/schema"
    assert written - migrated == set(), "too much in schema.sql: run bin/schema"
    assert len(migrated) > 50


def test_the_comparison_sees_a_difference_of_each_kind(database_url, server_url):
    before = schema.facts(database_url)
    changes = (
        "ALTER TABLE stores ADD COLUMN planted int",
        "ALTER TABLE stores ALTER COLUMN name SET DEFAULT 'x'",
        "ALTER TABLE stores ADD CONSTRAINT planted CHECK (name <> 'x')",
        "CREATE INDEX planted ON stores (name)",
        "CREATE FUNCTION planted() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TYPE planted_kind AS ENUM ('a', 'b')",
        "CREATE SEQUENCE planted_numbers",
        "ALTER TABLE profiles SET (fillfactor = 90)",
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        for change in changes:
            connection.execute(change.encode())
            after = schema.facts(database_url)
            assert after != before, change
            before = after


def test_an_empty_database_has_no_facts(server_url):
    with new_database(server_url) as url:
        assert schema.facts(url) == set()
