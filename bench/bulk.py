"""Rows by the million: without indexes while they come, which are built again in one pass each at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import LiteralString, cast

import psycopg
from psycopg import sql

Connection = psycopg.Connection[tuple[object, ...]]

# The expression of an id in the order of time, as our own are: milliseconds, the version, and chance. A function of
# one expression is written into the statement that calls it, which is several times quicker than calling it.
ID_AT = """
CREATE OR REPLACE FUNCTION pg_temp.id_at(ms bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(ms), 12, '0') || '-7' || substr(gen_random_uuid()::text, 16))::uuid
$$
"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = ANY(%s::regclass[]) AND contype IN ('p', 'u')
"""
INDEXES = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = ANY(%s::regclass[]) AND NOT indisunique
"""


def prepare(connection: Connection) -> None:
    """For this connection only: nothing of what it writes has to survive a crash of the machine."""
    for statement in (
        "SET statement_timeout = 0",
        "SET synchronous_commit = off",
        "SET work_mem = '256MB'",
        "SET maintenance_work_mem = '1GB'",
    ):
        connection.execute(cast(LiteralString, statement))
    connection.execute(ID_AT)


@contextmanager
def without_indexes(connection: Connection, tables: Sequence[str]) -> Iterator[None]:
    constraints = [_texts(row) for row in connection.execute(CONSTRAINTS, (list(tables),)).fetchall()]
    indexes = [_texts(row) for row in connection.execute(INDEXES, (list(tables),)).fetchall()]
    for table, name, _ in constraints:
        connection.execute(_sql("ALTER TABLE {} DROP CONSTRAINT {}", table, name))
    for name, _ in indexes:
        connection.execute(_sql("DROP INDEX {}", name))
    yield
    for table, name, definition in constraints:
        added = sql.SQL(cast(LiteralString, definition))
        connection.execute(_sql("ALTER TABLE {} ADD CONSTRAINT {} ", table, name) + added)
    for _, definition in indexes:
        connection.execute(definition.encode())


def _texts(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(value) for value in row)


def _sql(text: LiteralString, *names: str) -> sql.Composed:
    return sql.SQL(text).format(*map(sql.Identifier, names))
