"""Claims of a dead worker are due at once in a test, without the wait until they expire."""

import psycopg
from psycopg import sql

CLAIMED = ("texts", "webhook_deliveries", "lifts")


def lapse(database_url: str) -> None:
    """Pass over the time that its claims would still have; to be called while no worker runs."""
    with psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
        for table in CLAIMED:
            connection.execute(
                sql.SQL("UPDATE {} SET due_at = now() WHERE owner IS NOT NULL AND due_at > now()").format(
                    sql.Identifier(table)
                )
            )
        connection.execute("UPDATE campaigns SET freeze_at = now() WHERE owner IS NOT NULL AND freeze_at > now()")
