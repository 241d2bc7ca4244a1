"""Run ANALYZE on tables that begin to fill, before autovacuum does, so that PostgreSQL's planner has statistics.

Until autovacuum has analyzed a table, which takes at least a minute, the planner expects few rows for an organization.
Any index that begins with the organization then seems as good as the index with all key columns, and the cached plan
reads all rows of the organization for each row it needs. PostgreSQL plans again when a table gets its statistics.

The same happens to a newcomer, an organization that is newer than the statistics: autovacuum does nothing before a
tenth of the table has changed. So a table is analyzed again as soon as a newcomer has enough rows to appear in the
sample.
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

POLL_EVERY_S: Final = 2.0
# Smaller tables are not analyzed.
BYTES_MIN: Final = 64 << 10
# A newcomer must have this many rows, and this share of the table. Fewer rows are read quickly anyway, and ANALYZE,
# which samples 30,000 rows, might not find any of them.
ROWS_MIN: Final = 500
SHARE_MIN: Final = 1 / 3_000

_WITHOUT_STATISTICS: Final[LiteralString] = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND reltuples <= 0
  AND pg_has_role(relowner, 'USAGE')
"""
# On a cluster the rows of a distributed table are in its shards: the table itself stays empty and never has statistics.
# ANALYZE of the table analyzes every shard, so it is run whenever the total size of the shards has doubled.
_WITHOUT_STATISTICS_ON_A_CLUSTER: Final[LiteralString] = """
SELECT c.relname, CASE WHEN d.logicalrelid IS NULL THEN pg_relation_size(c.oid) ELSE citus_relation_size(c.oid) END
FROM pg_class AS c LEFT JOIN pg_dist_partition AS d ON d.logicalrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.reltuples <= 0
  AND pg_has_role(c.relowner, 'USAGE')
"""
# Tables where the planner estimates at most one row for an organization outside their most common values.
_LOW_ESTIMATES: Final[LiteralString] = """
SELECT c.relname, c.reltuples, pg_stat_get_mod_since_analyze(c.oid),
       ARRAY(SELECT unnest(s.most_common_vals::text::uuid[]))
FROM pg_stats AS s
JOIN pg_class AS c ON c.relnamespace = current_schema()::regnamespace AND c.relname = s.tablename AND c.relkind = 'r'
CROSS JOIN LATERAL (SELECT coalesce(sum(f), 0) AS share FROM unnest(s.most_common_freqs) AS f) AS common
WHERE s.schemaname = current_schema() AND s.attname = 'organization_id' AND pg_has_role(c.relowner, 'USAGE')
  AND (1 - common.share) * c.reltuples < 2 * greatest(
      CASE WHEN s.n_distinct < 0 THEN -s.n_distinct * c.reltuples ELSE s.n_distinct END
      - coalesce(cardinality(s.most_common_freqs), 0), 1)
"""
_HAS_NEWCOMER: Final[LiteralString] = """
SELECT EXISTS (
    SELECT FROM organizations AS o
    WHERE o.id <> ALL (%s::uuid[]) AND EXISTS (SELECT FROM {} AS t WHERE t.organization_id = o.id LIMIT 1 OFFSET %s)
)
"""

_log = log.get(__name__)


class Statistics:
    """Analyzes tables; there is one object per worker process, or per server that runs without a worker."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # The size of each table when it was analyzed. A table that is mostly empty, such as a queue, has no statistics
        # even after ANALYZE, and must not be analyzed again and again.
        self._analyzed_bytes: dict[str, int] = {}
        # How many rows of each table had changed since ANALYZE when newcomers were last searched.
        self._changes_checked: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            try:
                await self.gather()
            except (psycopg.Error, *CONNECTION_ERRORS) as error:
                _log.warning("statistics.not_gathered", error=type(error).__name__)
            await asyncio.sleep(POLL_EVERY_S)

    async def gather(self) -> list[str]:
        """Analyze the tables that have rows but no statistics, or no statistics of a newcomer; return their names."""
        gathered: list[str] = []
        async with self._database.connection() as connection:
            [(is_cluster,)] = await connection.fetch(IS_CLUSTER)
            without_statistics = await connection.fetch(
                _WITHOUT_STATISTICS_ON_A_CLUSTER if is_cluster else _WITHOUT_STATISTICS
            )
            for name, size in without_statistics:
                is_due = size >= BYTES_MIN and size >= 2 * self._analyzed_bytes.get(name, 0)
                if is_due and await _analyze(connection, name):
                    self._analyzed_bytes[name] = size
                    gathered.append(name)
        for name in [] if is_cluster else await self._find_tables_with_newcomers():
            async with self._database.connection() as connection:
                if await _analyze(connection, name):
                    gathered.append(name)
                else:
                    del self._changes_checked[name]
        return gathered

    async def _find_tables_with_newcomers(self) -> list[str]:
        """Return the tables in which an organization has many rows and the planner expects none."""
        tables: list[str] = []
        async with self._database.transaction() as tx:
            # A newcomer's rows are at the end of the table. A sequential scan would read all other rows first.
            await tx.execute("SET LOCAL enable_seqscan = off")
            for name, rows, changes, common_organizations in await tx.fetch(_LOW_ESTIMATES):
                rows_min = max(ROWS_MIN, int(rows * SHARE_MIN))
                checked = self._changes_checked.get(name, 0)
                if changes < checked:
                    checked = self._changes_checked[name] = 0
                if changes - checked < rows_min:
                    continue
                self._changes_checked[name] = changes
                statement = sql.SQL(_HAS_NEWCOMER).format(sql.Identifier(name))
                [(has_newcomer,)] = await tx.fetch(statement, (common_organizations, rows_min - 1))
                if has_newcomer:
                    tables.append(name)
        return tables


async def _analyze(connection: Connection, name: str) -> bool:
    """Run ANALYZE; return False if the table was locked, which PostgreSQL reports only as a warning."""
    warnings: list[str | None] = []

    def on_notice(warning: Diagnostic) -> None:
        warnings.append(warning.sqlstate)

    connection.add_notice_handler(on_notice)
    try:
        await connection.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(sql.Identifier(name)))
    finally:
        connection.remove_notice_handler(on_notice)
    return LockNotAvailable.sqlstate not in warnings
