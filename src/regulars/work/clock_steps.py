"""Find rows whose due time is further ahead than any wait of their state, and make them due in time.

Such rows were stored before the clock of the database was set back, by hand, by its time service or by a failover to
another computer. Without this, a step of two hours would stop every queue for two hours. Rows that are meant to lie far
ahead are in no state of `Due.waits` and stay as they are.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Final, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Composed, Identifier

from regulars.kit import log
from regulars.kit.db import Database, Tx
from regulars.work.queue import Due, Queue, WaitLimit

# A transaction may store a row after this one began, with a later time; only a larger difference is a step.
TOLERANCE: Final = timedelta(seconds=10)
# How many rows a transaction makes due, so that it ends far below the time limit of statements.
ROWS_PER_TRANSACTION_MAX: Final = 5_000

_FIND: Final = "SELECT DISTINCT organization_id FROM {table} WHERE {too_late}"
_PULL: Final = """
    UPDATE {table} SET {assigned}
    WHERE organization_id = %(organization_id)s AND {too_late} AND ctid = ANY (ARRAY(
        SELECT ctid FROM {table} WHERE organization_id = %(organization_id)s AND {too_late} LIMIT %(rows_max)s
    ))
"""

_log = log.get(__name__)


async def pull_forward(database: Database, queue: Queue) -> list[UUID]:
    """Make rows of the queue due that wait too long; return their organizations."""
    if not queue.due.waits:
        return []
    async with database.reading() as tx:
        found = [(wait, it) for wait in queue.due.waits for it in await _find_organizations(tx, queue.due, wait)]
    for wait, organization_id in found:
        rows = await _pull(database, organization_id, queue.due, wait)
        _log.warning("work.clock_stepped", queue=queue.name, organization_id=str(organization_id), rows=rows)
    return [organization_id for _, organization_id in found]


async def _find_organizations(tx: Tx, due: Due, wait: WaitLimit) -> Sequence[UUID]:
    """The organizations with rows that are due too late; reads the index of waiting rows beyond the shortest wait."""
    return await tx.fetch_column(_compose(_FIND, due, wait), _values(wait, tx.now))


async def _pull(database: Database, organization_id: UUID, due: Due, wait: WaitLimit) -> int:
    """Make the rows of an organization due in batches, each in a transaction of its own; return how many there were.
    The next search finds rows that moved meanwhile."""
    total, rows = 0, ROWS_PER_TRANSACTION_MAX
    while rows == ROWS_PER_TRANSACTION_MAX:
        async with database.transaction() as tx:
            values = {"organization_id": organization_id, "rows_max": ROWS_PER_TRANSACTION_MAX, **_values(wait, tx.now)}
            rows = await tx.execute(_compose(_PULL, due, wait), values)
        total += rows
    return total


def _values(wait: WaitLimit, now: datetime) -> dict[str, object]:
    limits = [now + longest + TOLERANCE for longest in wait.at_most]
    due_at = [now + longest if wait.waits_again else now for longest in wait.at_most]
    return {"now": now, "due_at": due_at, "limits": limits, "first_limit": min(limits)}


@cache
def _compose(statement: LiteralString, due: Due, wait: WaitLimit) -> str:
    """Fill in the table, the condition and the new times. The times are array elements, because an UPDATE on a cluster
    may not add an interval to a column."""
    column = Identifier(due.column)
    number = SQL("least({number}, {most})").format(number=SQL(wait.number), most=len(wait.at_most))
    values = {"column": column, "number": number, "condition": SQL(wait.condition)}
    too_late = SQL(
        "{column} > %(first_limit)s AND {column} > (%(limits)s::timestamptz[])[{number}] AND {condition}"
    ).format(**values)
    columns = [column] if wait.also is None else [column, Identifier(wait.also)]
    assigned: Composed = SQL(", ").join(
        SQL("{} = (%(due_at)s::timestamptz[])[{}]").format(name, number) for name in columns
    )
    return SQL(statement).format(table=Identifier(due.table), assigned=assigned, too_late=too_late).as_string(None)
