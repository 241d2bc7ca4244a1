"""The job tables come from a library: when it is upgraded, its schema must be migrated too."""

from importlib import resources

import psycopg

from regulars.kit import migrate

MIGRATION = migrate.MIGRATIONS / "0002_jobs.sql"
TABLES = {"procrastinate_jobs", "procrastinate_events", "procrastinate_periodic_defers", "procrastinate_workers"}


def test_the_library_has_no_newer_migration_than_ours_was_written_for():
    files = resources.files("procrastinate").joinpath("sql/migrations").iterdir()
    newest = max(file.name for file in files if file.name.endswith(".sql"))
    assert newest.removesuffix(".sql") in MIGRATION.read_text()


def test_the_library_finds_its_tables(database_url):
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'procrastinate%'").fetchall()
    assert {name for (name,) in rows} == TABLES
