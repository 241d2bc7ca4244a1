"""Builds the blocks of new sales, of a whole organization and of each store."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, LiteralString
from uuid import UUID

from regulars.kit.arrays import Ids
from regulars.kit.columns import fill
from regulars.kit.db import Database, Tx
from regulars.kit.horizon import read_horizon
from regulars.kit.ids import first_id_at
from regulars.sales.blocks.order import ALL_STORES, BY_ID, BY_STORE
from regulars.work.queue import Due, Queue, WaitLimit

BLOCK_SALES: Final = 500
_BATCH_SALES: Final = 40 * BLOCK_SALES
# One of so many sales, chosen by the random bits of its id, has the blocks of its store and organization built.
_BUILD_EVERY: Final = 128
# A little longer than the horizon is behind the present.
_BUILD_AFTER: Final = timedelta(seconds=3)
# After the database's clock was set back, the blocks of this time are built again.
_REBUILT: Final = timedelta(days=1)


async def request_builds(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    """Have blocks built if one of these new sales asks for it. Nothing counts sales for this."""
    chosen = [identifier for identifier in ids if identifier.int % _BUILD_EVERY == 0]
    if not chosen:
        return
    await tx.execute(
        """
        INSERT INTO sale_block_builds (organization_id, store_id, due_at)
        SELECT DISTINCT %(organization_id)s::uuid, scope.store_id, %(due_at)s::timestamptz
        FROM unnest(%(ids)s::uuid[]) AS chosen (id)
        CROSS JOIN LATERAL (
            SELECT store_id FROM sales_events WHERE organization_id = %(organization_id)s AND id = chosen.id LIMIT 1
        ) AS s
        CROSS JOIN LATERAL (VALUES (s.store_id), (%(all_stores)s::uuid)) AS scope (store_id)
        ORDER BY 2
        ON CONFLICT (organization_id, store_id) DO NOTHING
        """,
        {
            "organization_id": organization_id,
            "ids": Ids(chosen),
            "due_at": tx.now + _BUILD_AFTER,
            "all_stores": ALL_STORES,
        },
    )


class BlockBuilds(Queue):
    """The work queue of the stores whose next blocks are due."""

    name = "sales.blocks"
    due = Due(table="sale_block_builds", waits=(WaitLimit(at_most=(_BUILD_AFTER,), waits_again=True),))
    poll_every_s = 5.0
    passes_at_once = 1

    async def run_pass(self, database: Database, organization_id: UUID) -> bool:
        async with database.transaction() as tx:
            store_id = await _lock_due(tx, organization_id)
            if store_id is None:
                return False
            if not await build_blocks(tx, organization_id, store_id):
                await tx.execute(
                    "DELETE FROM sale_block_builds WHERE organization_id = %s AND store_id = %s",
                    (organization_id, store_id),
                )
        return True


async def build_blocks(tx: Tx, organization_id: UUID, store_id: UUID) -> bool:
    """Build the next blocks of a store or, with ALL_STORES, of the organization; return whether more may follow.

    No sale appears later among those with ids before the horizon, unless the database's clock is set back.
    """
    horizon = await read_horizon(tx)
    if await find_end(tx, organization_id, store_id) >= first_id_at(horizon):
        # The database's clock was set back: sales since then have ids before the end of the blocks.
        await _delete_blocks(tx, organization_id, store_id, since=first_id_at(horizon - _REBUILT))
    statement = _BUILD if store_id == ALL_STORES else _BUILD_OF_STORE
    built = await tx.execute(
        statement,
        {
            "organization_id": organization_id,
            "store_id": store_id,
            "after": await find_end(tx, organization_id, store_id),
            "until_id": first_id_at(horizon),
            "block_sales": BLOCK_SALES,
            "batch_sales": _BATCH_SALES,
        },
    )
    return built * BLOCK_SALES == _BATCH_SALES


async def _delete_blocks(tx: Tx, organization_id: UUID, store_id: UUID, *, since: UUID) -> None:
    await tx.execute(
        "DELETE FROM sale_blocks WHERE organization_id = %s AND store_id = %s AND last_id >= %s",
        (organization_id, store_id, since),
    )


async def find_end(tx: Tx, organization_id: UUID, store_id: UUID) -> UUID:
    """The id of the last sale in a block of the store; the nil UUID if there is none."""
    found: UUID | None = await tx.fetch_value(
        """
        SELECT last_id FROM sale_blocks WHERE organization_id = %s AND store_id = %s ORDER BY last_id DESC LIMIT 1
        """,
        (organization_id, store_id),
    )
    return found or UUID(int=0)


async def _lock_due(tx: Tx, organization_id: UUID) -> UUID | None:
    found: UUID | None = await tx.fetch_value(
        """
        SELECT store_id FROM sale_block_builds WHERE organization_id = %s AND due_at <= %s
        ORDER BY due_at, store_id LIMIT 1 FOR UPDATE SKIP LOCKED
        """,
        (organization_id, tx.now),
    )
    return found


_INSERT: Final[LiteralString] = """
INSERT INTO sale_blocks
    (organization_id, store_id, first_id, last_id, contents, created_from, created_to, occurred_from, occurred_to)
SELECT %(organization_id)s, %(store_id)s, (array_agg(s.id ORDER BY s.id))[1],
       (array_agg(s.id ORDER BY s.id DESC))[1], array_agg(DISTINCT s.type || ' ' || s.currency),
       min(s.created_at), max(s.created_at), min(s.occurred_at), max(s.occurred_at)
FROM (
    SELECT *, (row_number() OVER (ORDER BY n.id) - 1) / %(block_sales)s AS block
    FROM (
        SELECT e.id, e.type, e.currency, e.created_at, e.occurred_at
        FROM sales_events AS e
        WHERE e.organization_id = %(organization_id)s AND {between}
        ORDER BY {ordered}
        LIMIT %(batch_sales)s
    ) AS n
) AS s
GROUP BY s.block
HAVING count(*) = %(block_sales)s
"""
_BUILD: Final = fill(_INSERT, between=BY_ID.between, ordered=BY_ID.ordered)
_BUILD_OF_STORE: Final = fill(_INSERT, between=BY_STORE.between, ordered=BY_STORE.ordered)
