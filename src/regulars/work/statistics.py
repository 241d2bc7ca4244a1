"""Tell PostgreSQL early what is in a table that begins to fill.

Until autovacuum has looked at a table, after a minute at the soonest, the planner takes an organization for a few rows:
whichever index begins with the organization then looks as good as the one with the whole key, and the plan that is kept
reads the organization from end to end for every row it looks for. A plan is made anew when a table gets its statistics.
"""

import asyncio
from typing import Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.errors import Diagnostic, LockNotAvailable

from regulars.kit import log
from regulars.kit.cluster import IS_CLUSTER
from regulars.kit.connection import Connection
from regulars.kit.db import CONNECTION_ERRORS, Database

LOOK_EVERY_S: Final = 2.0
BYTES_MIN: Final = 64 << 10

_UNKNOWN: Final[LiteralString] = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND reltuples <= 0
  AND pg_has_role(relowner, 'USAGE')
"""
# On a cluster the rows of a distributed table lie in its shards: the table itself stays empty and never has statistics.
# To analyze it is to analyze every shard, so it is done whenever the shards together have doubled.
_UNKNOWN_ON_A_CLUSTER: Final[LiteralString] = """
SELECT c.relname, CASE WHEN d.logicalrelid IS NULL THEN pg_relation_size(c.oid) ELSE citus_relation_size(c.oid) END
FROM pg_class AS c LEFT JOIN pg_dist_partition AS d ON d.logicalrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.reltuples <= 0
  AND pg_has_role(c.relowner, 'USAGE')
"""

_log = log.get(__name__)


class Statistics:
    """One per worker, or per server that has none."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # How large a table was when it was looked at: one that is mostly empty seems unknown again, as queues do.
        self._looked_at: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            try:
                await self.gather()
            except (psycopg.Error, *CONNECTION_ERRORS) as error:
                _log.warning("statistics.not_gathered", error=type(error).__name__)
            await asyncio.sleep(LOOK_EVERY_S)

    async def gather(self) -> list[str]:
        """Analyze the tables that have rows and no statistics; give their names."""
        gathered: list[str] = []
        async with self._database.connection() as connection:
            [(is_cluster,)] = await connection.fetch(IS_CLUSTER)
            unknown = await connection.fetch(_UNKNOWN_ON_A_CLUSTER if is_cluster else _UNKNOWN)
            for name, size in unknown:
                is_due = size >= BYTES_MIN and size >= 2 * self._looked_at.get(name, 0)
                if is_due and await _analyze(connection, name):
                    self._looked_at[name] = size
                    gathered.append(name)
        return gathered


async def _analyze(connection: Connection, name: str) -> bool:
    """Whether it was done: a table that somebody holds is passed over, which the server only warns of."""
    warned_of: list[str | None] = []

    def hear(warning: Diagnostic) -> None:
        warned_of.append(warning.sqlstate)

    connection.add_notice_handler(hear)
    try:
        await connection.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(sql.Identifier(name)))
    finally:
        connection.remove_notice_handler(hear)
    return LockNotAvailable.sqlstate not in warned_of
