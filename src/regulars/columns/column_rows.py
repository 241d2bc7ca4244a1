"""The SQL of the columns, the columnar copy of customers and sales from which segments are counted: their state, their
runs (stored chunks of data) and the number of each customer in them. Each build of the columns has a number, the epoch.
`saved/queries.py` has the SQL of segments."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from struct import iter_unpack
from typing import Final
from uuid import UUID

from regulars.columns.model import Run, State
from regulars.kit.arrays import Ids, Uuids
from regulars.kit.columns import fill, names_of
from regulars.kit.db import Tx

# The SQL condition that an organization has columns.
HAS_COLUMNS: Final = (
    "EXISTS (SELECT FROM segment_columns WHERE organization_id = %(organization_id)s AND state <> 'ended')"
)
# How long a transaction waits for the lock on the state; the worker waits less, because it has other work.
LOCK_TIMEOUT: Final = "10s"
WORKER_LOCK_TIMEOUT: Final = "2s"


_FIND_STATE: Final = "SELECT {columns} FROM segment_columns WHERE organization_id = %s"
_UPDATE_STATE: Final = fill(
    "UPDATE segment_columns SET {assignments}, updated_at = %(now)s WHERE organization_id = %(organization_id)s",
    assignments=", ".join([name + " = %(" + name + ")s" for name in names_of(State).split(", ")]),
)


async def find_state(tx: Tx, organization_id: UUID) -> State | None:
    return await tx.fetch_first(State, _FIND_STATE, (organization_id,))


async def lock_state(tx: Tx, organization_id: UUID, *, longest_wait: str = LOCK_TIMEOUT) -> State | None:
    """Lock the state, and set the timeout of this and all later locks of the transaction. A build locks the state
    during each of its batches."""
    await tx.set_lock_timeout(longest_wait)
    return await tx.fetch_first(State, _FIND_STATE + " FOR UPDATE", (organization_id,))


async def update_state(tx: Tx, organization_id: UUID, state: State) -> None:
    await tx.execute(_UPDATE_STATE, {"organization_id": organization_id, "now": tx.now, **asdict(state)})


async def update_used_at(tx: Tx, organization_id: UUID) -> None:
    await tx.execute(
        "UPDATE segment_columns SET used_at = %(now)s WHERE organization_id = %(organization_id)s",
        {"organization_id": organization_id, "now": tx.now},
    )


async def estimate_sales(tx: Tx, organization_id: UUID) -> int:
    """The number of sales from the daily totals, which are thousands of rows instead of millions."""
    return await tx.fetch_count(
        "SELECT sum(purchases + returns)::bigint FROM sales_totals WHERE organization_id = %s AND NOT is_hour",
        (organization_id,),
    )


async def try_lock_state(tx: Tx, organization_id: UUID) -> bool:
    """Lock the state without waiting; False if another transaction has locked it, or if there is none."""
    rows = await tx.fetch(
        "SELECT FROM segment_columns WHERE organization_id = %s FOR UPDATE SKIP LOCKED", (organization_id,)
    )
    return bool(rows)


async def insert_state_if_new(tx: Tx, organization_id: UUID, *, format_: int) -> bool:
    changed = await tx.execute(
        """
        INSERT INTO segment_columns
            (organization_id, epoch, state, phase, format, walked_to, build_at, updated_at)
        VALUES (%(organization_id)s, 1, 'building', 'waiting', %(format)s, %(first)s, %(now)s, %(now)s)
        ON CONFLICT (organization_id) DO NOTHING
        """,
        {"organization_id": organization_id, "format": format_, "first": UUID(int=0), "now": tx.now},
    )
    return bool(changed)


async def delete_state(tx: Tx, organization_id: UUID) -> None:
    await tx.execute("DELETE FROM segment_columns WHERE organization_id = %s AND state = 'ended'", (organization_id,))


async def insert_run(tx: Tx, organization_id: UUID, epoch: int, run: Run, *, is_live: bool = True) -> None:
    """Insert a run; queries ignore a run that is not live."""
    await tx.execute(
        """
        INSERT INTO segment_runs
            (organization_id, epoch, id, kind, level, ordinal, is_live, rows, bytes, first_s, last_s)
        VALUES (%(organization_id)s, %(epoch)s, %(id)s, %(kind)s, %(level)s, %(ordinal)s, %(is_live)s, %(rows)s,
                %(bytes)s, %(first_s)s, %(last_s)s)
        """,
        {"organization_id": organization_id, "epoch": epoch, "is_live": is_live, **run._asdict()},
    )


async def insert_blob(tx: Tx, organization_id: UUID, epoch: int, run_id: int, *, part: str, content: bytes) -> None:
    await tx.execute(
        """
        INSERT INTO segment_blobs (organization_id, epoch, run_id, part, content)
        VALUES (%s, %s, %s, %s, %s)
        """,
        (organization_id, epoch, run_id, part, content),
    )


async def list_runs(tx: Tx, organization_id: UUID, epoch: int) -> list[Run]:
    return await tx.fetch_all(
        Run,
        """
        SELECT {columns} FROM segment_runs
        WHERE organization_id = %s AND epoch = %s AND is_live ORDER BY ordinal, id
        """,
        (organization_id, epoch),
    )


async def make_live(tx: Tx, organization_id: UUID, epoch: int, run_ids: Sequence[int]) -> int:
    return await tx.execute(
        """
        UPDATE segment_runs SET is_live = true
        WHERE organization_id = %s AND epoch = %s AND id = ANY (%s::bigint[]) AND NOT is_live
        """,
        (organization_id, epoch, list(run_ids)),
    )


async def delete_runs(tx: Tx, organization_id: UUID, epoch: int, run_ids: Sequence[int]) -> int:
    """Delete runs with their blobs; return how many runs there were."""
    await tx.execute(
        "DELETE FROM segment_blobs WHERE organization_id = %s AND epoch = %s AND run_id = ANY (%s::bigint[])",
        (organization_id, epoch, list(run_ids)),
    )
    return await tx.execute(
        "DELETE FROM segment_runs WHERE organization_id = %s AND epoch = %s AND id = ANY (%s::bigint[])",
        (organization_id, epoch, list(run_ids)),
    )


async def find_numbers(tx: Tx, organization_id: UUID, epoch: int, profile_ids: Sequence[bytes]) -> dict[bytes, int]:
    """The customer numbers by profile id. Ids are bytes, because creating millions of UUID objects is slow."""
    if not profile_ids:
        return {}
    [(ids, numbers)] = await tx.fetch(
        """
        SELECT string_agg(uuid_send(profile_id), ''::bytea), string_agg(int4send(number), ''::bytea)
        FROM segment_customers
        WHERE organization_id = %(organization_id)s AND epoch = %(epoch)s AND profile_id = ANY (%(ids)s::uuid[])
        """,
        {"organization_id": organization_id, "epoch": epoch, "ids": Uuids(profile_ids)},
    )
    pairs = zip(iter_unpack("16s", ids or b""), iter_unpack(">i", numbers or b""), strict=True)
    return {identifier: number for (identifier,), (number,) in pairs}


async def insert_numbers(tx: Tx, organization_id: UUID, epoch: int, profile_ids: Sequence[UUID], *, first: int) -> None:
    """Give these profiles consecutive customer numbers, beginning with `first`."""
    await tx.execute(
        """
        INSERT INTO segment_customers (organization_id, epoch, profile_id, number)
        SELECT %(organization_id)s, %(epoch)s, it.id, %(first)s + it.place - 1
        FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS it (id, place)
        """,
        {"organization_id": organization_id, "epoch": epoch, "ids": Ids(profile_ids), "first": first},
    )


async def delete_numbers(tx: Tx, organization_id: UUID, epoch: int, profile_ids: Sequence[UUID]) -> None:
    await tx.execute(
        """
        DELETE FROM segment_customers
        WHERE organization_id = %s AND epoch = %s AND profile_id = ANY (%s::uuid[])
        """,
        (organization_id, epoch, list(profile_ids)),
    )


async def insert_written_sales(tx: Tx, organization_id: UUID, epoch: int, sale_ids: Sequence[UUID]) -> None:
    """Record the sales that a listener wrote during a build, so that the build skips them."""
    await tx.execute(
        """
        INSERT INTO segment_fed (organization_id, epoch, sale_id)
        SELECT %s, %s, id FROM unnest(%s::uuid[]) AS it (id)
        ON CONFLICT (organization_id, epoch, sale_id) DO NOTHING
        """,
        (organization_id, epoch, list(sale_ids)),
    )


async def claim_compaction(tx: Tx, organization_id: UUID, *, until: datetime) -> bool:
    """Claim the compaction until a time, so that other processes skip the organization; False if it is not due."""
    changed = await tx.execute(
        """
        UPDATE segment_columns SET tidy_at = %(until)s
        WHERE organization_id = %(organization_id)s AND tidy_at <= %(now)s AND state <> 'ended'
        """,
        {"organization_id": organization_id, "until": until, "now": tx.now},
    )
    return bool(changed)
