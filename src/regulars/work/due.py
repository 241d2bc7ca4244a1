"""The one place that reads across organizations: which of them have something due."""

from datetime import datetime
from functools import cache
from uuid import UUID

from psycopg.sql import SQL, Identifier

from regulars.kit.db import Tx
from regulars.work.queue import Due


async def find_due_organizations(tx: Tx, due: Due, *, after: datetime | None) -> list[UUID]:
    """Organizations with a row that became due after this moment; without one, with any row that is due.

    It reads the index of waiting rows. A look at what became due since the last look costs the same whether a million
    older rows wait or none.
    """
    rows = await tx.fetch(
        _statement(due.table, due.column),
        {"after": None if after is None else after - due.delay, "until": tx.now - due.delay},
    )
    return [row[0] for row in rows]


@cache
def _statement(table: str, column: str) -> str:
    """Put together once: an idle worker does little else than to ask."""
    statement = SQL(
        """
        SELECT DISTINCT organization_id FROM {table}
        WHERE {column} > COALESCE(%(after)s, '-infinity'::timestamptz) AND {column} <= %(until)s
        """
    )
    return statement.format(table=Identifier(table), column=Identifier(column)).as_string(None)
