"""Inserts rows into any table, with values by column type, for tests in which only a few columns matter."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import Connection, sql

# SQL expressions by column type; `n` is the number of the row.
VALUES: Mapping[str, str] = {
    "uuid": "gen_random_uuid()",
    "text": "'x' || md5(n::text)",
    "integer": "n",
    "bigint": "n",
    "smallint": "1",
    "boolean": "false",
    "bytea": "decode(md5(n::text), 'hex')",
    "json": "'{}'",
    "jsonb": "'{}'",
    "timestamp with time zone": "now() - n * interval '1 minute'",
    "date": "current_date",
    "ARRAY": "'{}'",
    "double precision": "n",
    "numeric": "n",
}
COLUMNS = """
SELECT column_name, data_type, is_nullable = 'YES' OR column_default IS NOT NULL FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position
"""


def insert_rows(
    connection: Connection[Any],
    table: str,
    organization_id: UUID,
    rows: int,
    *,
    is_full: bool = False,
    **given: Any,
) -> None:
    """Inserts rows. `given` has values or `Raw` expressions of columns; other optional columns stay empty unless
    `is_full`."""
    columns: dict[str, sql.Composable] = {}
    for name, kind, is_optional in connection.execute(COLUMNS, (table,)).fetchall():
        if name == "organization_id":
            columns[name] = sql.Literal(str(organization_id)) + sql.SQL("::uuid")
        elif name in given and isinstance(given[name], Raw):
            columns[name] = sql.SQL(given[name].text)  # type: ignore[arg-type]  # a literal of the test
        elif name in given:
            columns[name] = sql.Literal(given[name])
        elif is_full or not is_optional:
            columns[name] = sql.SQL(VALUES[kind])  # type: ignore[arg-type]  # a literal above
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(1, {}) AS n").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(columns.values()),
            sql.Literal(rows),
        )
    )


class Raw:
    """An SQL expression; `n` is the number of the row."""

    def __init__(self, text: str) -> None:
        self.text = text
