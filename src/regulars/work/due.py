"""Find the organizations that have due rows in a queue's table: the worker's only query across organizations."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from uuid import UUID

from psycopg.sql import SQL, Identifier

from regulars.kit.cluster import IS_CLUSTER
from regulars.kit.db import Tx
from regulars.work.queue import Due


async def find_due_organizations(
    tx: Tx, due: Due, *, after: datetime | None, among: Sequence[UUID] | None = None
) -> list[UUID]:
    """Return the organizations with a row that became due after `after`; without `after`, those with any due row.

    `among` limits the query to these organizations; on a Citus cluster only the nodes with their rows are read.

    The query reads the index of waiting rows. With `after` its cost does not depend on how many older rows wait.
    """
    return await tx.fetch_column(
        _compose_statement(due, is_limited=among is not None),
        {"after": None if after is None else after - due.delay, "until": tx.now - due.delay, "among": among},
    )


@cache
def _compose_statement(due: Due, *, is_limited: bool) -> str:
    """Compose the statement; cached, because an idle worker does little else than poll."""
    statement = SQL(
        """
        SELECT DISTINCT organization_id FROM {table}
        WHERE {column} > COALESCE(%(after)s, '-infinity'::timestamptz) AND {column} <= %(until)s AND {condition} {among}
        """
    )
    among = SQL("AND organization_id = ANY (%(among)s::uuid[])" if is_limited else "")
    return statement.format(
        table=Identifier(due.table), column=Identifier(due.column), condition=SQL(due.condition), among=among
    ).as_string(None)


async def list_organizations_by_node(tx: Tx) -> list[list[UUID]]:
    """Return the organizations of each node of a Citus cluster; an empty list for any other database."""
    if await tx.fetch(IS_CLUSTER) != [(True,)]:
        return []
    return await tx.fetch_column(
        """
        SELECT array_agg(o.id)
        FROM organizations AS o
        JOIN pg_dist_placement AS p ON p.shardid = get_shard_id_for_distribution_column('outbox', o.id)
        GROUP BY p.groupid
        """
    )
