"""Delete an organization and all its rows, while other organizations are in use.

The database's catalog says which tables have its rows: all tables with a column `organization_id`. A list written by
hand would miss the next new table. The order matters more than the speed:

1. revoke its keys; after two seconds no server process accepts them;
2. delete its rows in small transactions, so that no lock is held for long;
3. a minute later, when all statements that ran meanwhile have ended, delete the rows that they added;
4. delete its keys, its slugs and the organization itself last, so that an interrupted run can be started again.
"""

from asyncio import sleep
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from psycopg.sql import SQL, Identifier

from regulars.kit.db import Database, Tx

# After this time no server process accepts a revoked key: each caches a key for a second.
KEY_CACHE_WAIT_S: Final = 2.0
# The wait before the second deletion: twice the longest time that a statement may run.
SECOND_DELETION_WAIT_S: Final = 60.0
ROWS_PER_TRANSACTION_MAX: Final = 5_000
ROWS_PER_SCAN_MAX: Final = 200_000
DELETED_LAST: Final = ("api_keys", "organization_slugs", "organizations")

# Called with the table and the number of its deleted rows.
OnDeleted = Callable[[str, int], None]


async def dissolve(database: Database, organization_id: UUID, *, on_deleted: OnDeleted) -> None:
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE api_keys SET revoked_at = %s WHERE organization_id = %s AND revoked_at IS NULL",
            (tx.now, organization_id),
        )
    await sleep(KEY_CACHE_WAIT_S)
    await _delete_rows(database, organization_id, on_deleted)
    await sleep(SECOND_DELETION_WAIT_S)
    await _delete_rows(database, organization_id, on_deleted)
    async with database.transaction() as tx:
        await tx.execute("DELETE FROM api_keys WHERE organization_id = %s", (organization_id,))
        await tx.execute("DELETE FROM organization_slugs WHERE organization_id = %s", (organization_id,))
        await tx.execute("DELETE FROM organizations WHERE id = %s", (organization_id,))


async def _delete_rows(database: Database, organization_id: UUID, on_deleted: OnDeleted) -> None:
    async with database.transaction() as tx:
        tables = referring_first(await _find_tables_of_organizations(tx))
    for table in tables:
        if table not in DELETED_LAST:
            await _delete_rows_of(database, table, organization_id, on_deleted)


async def _find_tables_of_organizations(tx: Tx) -> dict[str, set[str]]:
    """Return all tables with a column `organization_id`, each with the tables that its foreign keys refer to."""
    rows = await tx.fetch(
        "SELECT c.relname::text, coalesce(array_agg(t.relname::text) FILTER (WHERE t.oid IS NOT NULL), '{}')"
        " FROM pg_class o JOIN pg_class c ON c.relnamespace = o.relnamespace"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization_id' AND NOT a.attisdropped"
        " LEFT JOIN pg_constraint f ON f.conrelid = c.oid AND f.contype = 'f'"
        " LEFT JOIN pg_class t ON t.oid = f.confrelid"
        " WHERE o.oid = to_regclass('organizations') AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " GROUP BY c.relname"
    )
    return {table: set(targets) for table, targets in rows}


async def _delete_rows_of(database: Database, table: str, organization_id: UUID, on_deleted: OnDeleted) -> None:
    """Delete the rows by their physical addresses (ctid); the next scan finds rows that have moved since."""
    find = SQL("SELECT ctid::text FROM {} WHERE organization_id = %s LIMIT %s").format(Identifier(table))
    delete = SQL("DELETE FROM {} WHERE organization_id = %s AND ctid = ANY(%s::text[]::tid[])")
    while True:
        async with database.transaction() as tx:
            ctids = await tx.fetch_column(find, (organization_id, ROWS_PER_SCAN_MAX))
        if not ctids:
            return
        for first in range(0, len(ctids), ROWS_PER_TRANSACTION_MAX):
            async with database.transaction() as tx:
                # Other kinds of scans are turned off, so that the planner uses the addresses.
                await tx.execute(
                    "SELECT set_config(name, 'off', true) FROM unnest("
                    " ARRAY['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan']) AS name"
                )
                batch = ctids[first : first + ROWS_PER_TRANSACTION_MAX]
                on_deleted(table, await tx.execute(delete.format(Identifier(table)), (organization_id, batch)))


def referring_first(references: Mapping[str, set[str]]) -> list[str]:
    """Return the tables, each before the tables that its foreign keys refer to."""
    ordered: list[str] = []
    waiting = {table: targets & set(references) - {table} for table, targets in references.items()}
    while waiting:
        targets = set().union(*waiting.values())
        # If all remaining tables refer to each other in a circle, any order will do.
        unreferenced = sorted(set(waiting) - targets) or sorted(waiting)
        ordered += unreferenced
        waiting = {table: targets for table, targets in waiting.items() if table not in unreferenced}
    return ordered
