"""The job tables come from a library: its schema is frozen here, and an upgrade that changes it must be migrated."""

import re
from importlib import resources

import psycopg
from tests.support import schema
from tests.support.database import new_database

from regulars.kit import migrate

MIGRATION = migrate.MIGRATIONS / "0002_jobs.sql"
TABLES = {"procrastinate_jobs", "procrastinate_events", "procrastinate_periodic_defers", "procrastinate_workers"}


def test_the_library_has_no_newer_migration_than_ours_was_written_for():
    files = resources.files("procrastinate").joinpath("sql/migrations").iterdir()
    newest = max(file.name for file in files if file.name.endswith(".sql"))
    assert newest.removesuffix(".sql") in MIGRATION.read_text()


def test_the_installed_library_wants_the_schema_that_is_frozen(server_url):
    installed = resources.files("procrastinate").joinpath("sql/schema.sql").read_bytes()
    frozen = (migrate.MIGRATIONS.parent / "vendor" / "procrastinate" / "schema.sql").read_bytes()
    assert facts_after(server_url, frozen) == facts_after(server_url, installed)


def facts_after(server_url: str, statements: bytes) -> set[str]:
    with new_database(server_url) as url:
        with psycopg.connect(url) as connection:
            connection.execute(statements)
        return schema.facts(url)


def test_a_migration_includes_nothing_but_files_of_ours():
    for file in migrate.MIGRATIONS.glob("[0-9]*.sql"):
        for path in re.findall(r"^-- include: (\S+)$", file.read_text(), re.MULTILINE):
            assert (migrate.MIGRATIONS.parent / path).is_file(), f"{file.name}: {path}"


def test_the_library_finds_its_tables(database_url):
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'procrastinate%'").fetchall()
    assert {name for (name,) in rows} == TABLES
