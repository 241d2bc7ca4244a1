"""Inserts millions of rows quickly: drops the indexes first and builds each again at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import LiteralString, cast

import psycopg
from psycopg import sql

Connection = psycopg.Connection[tuple[object, ...]]

# A UUIDv7: milliseconds, version, random bits. PostgreSQL inlines an SQL function of one expression, which is several
# times faster than a call.
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
    """Turns durable commits off for this connection only."""
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
