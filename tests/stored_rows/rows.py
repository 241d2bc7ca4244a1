"""Rows of all tables as a file, and the file as rows."""

import json
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

FILE = Path(__file__).with_name("rows.json")
# The migrations of a database are its own.
LEFT_OUT = ("migrations",)
TABLES = """
    SELECT table_name::text, array_agg(column_name::text ORDER BY ordinal_position)
    FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND is_generated = 'NEVER'
      AND table_name != ALL (%s)
    GROUP BY table_name ORDER BY table_name
"""


def dump_rows(database_url: str) -> dict[str, Any]:
    """Each table with its columns and its rows, in the text form of COPY."""
    tables = {}
    with psycopg.connect(database_url) as connection:
        for table, columns in connection.execute(TABLES, (list(LEFT_OUT),)).fetchall():
            with connection.cursor().copy(_copy(table, columns, sql.SQL("TO STDOUT"))) as copy:
                lines = b"".join(copy).decode().splitlines()
            if lines:
                tables[table] = {"columns": columns, "rows": sorted(lines)}
    return tables


def insert_rows(database_url: str, tables: dict[str, Any]) -> None:
    with psycopg.connect(database_url) as connection:
        # The order of the tables says nothing about their foreign keys.
        connection.execute("SET session_replication_role = replica")
        for table, content in tables.items():
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
            with connection.cursor().copy(_copy(table, content["columns"], sql.SQL("FROM STDIN"))) as copy:
                copy.write("".join(f"{line}\n" for line in content["rows"]))


def read_file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def write_file(content: dict[str, Any]) -> None:
    FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _copy(table: str, columns: list[str], direction: sql.SQL) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("COPY {} ({}) {}").format(sql.Identifier(table), names, direction)
