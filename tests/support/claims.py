"""Expires the claims of a dead worker, so that a test need not wait."""

import psycopg
from psycopg import sql

CLAIMED = ("texts", "webhook_deliveries", "lifts")


def expire_claims(database_url: str) -> None:
    """Makes claimed rows due now; call it while no worker runs."""
    with psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
        for table in CLAIMED:
            connection.execute(
                sql.SQL("UPDATE {} SET due_at = now() WHERE owner IS NOT NULL AND due_at > now()").format(
                    sql.Identifier(table)
                )
            )
        connection.execute("UPDATE campaigns SET freeze_at = now() WHERE owner IS NOT NULL AND freeze_at > now()")
