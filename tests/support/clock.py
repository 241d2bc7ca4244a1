"""Moves the stored times of tables, as if they had been stored before the clock of the database was set back."""

from typing import Any
from uuid import UUID

from psycopg import Connection, sql

_TIMES = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND data_type = 'timestamp with time zone'
"""


def store_two_hours_ahead(connection: Connection[Any], organization_id: UUID, *tables: str) -> None:
    """Set every time of the organization's rows that is not empty to the same time, two hours from now."""
    with connection.transaction():
        for table in tables:
            columns = [name for (name,) in connection.execute(_TIMES, (table,)).fetchall()]
            assigned = sql.SQL(", ").join(
                sql.SQL("{0} = CASE WHEN {0} IS NOT NULL THEN now() + interval '2 hours' END").format(
                    sql.Identifier(name)
                )
                for name in columns
            )
            statement = sql.SQL("UPDATE {} SET {} WHERE organization_id = %s").format(sql.Identifier(table), assigned)
            connection.execute(statement, (organization_id,))
