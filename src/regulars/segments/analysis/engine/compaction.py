"""Keep the runs few: merge sales by level, fold patches into blocks, and write anew what erased people were in.

Runs never change. So all that is heavy happens outside the state's lock: new runs are written beside the old ones, not
live yet, and one short transaction puts them in their place. It finds out whether all of the old ones are still there;
if another process was quicker, what was made here goes again, and nothing was lost. A process that dies leaves runs
that are not live, which the next one deletes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np

from regulars.kit.db import Database, Tx
from regulars.segments import queries as columns
from regulars.segments.analysis.engine import queries
from regulars.segments.analysis.engine.customer_columns import fold, last_of_each
from regulars.segments.analysis.engine.encoding import Array, decode
from regulars.segments.analysis.engine.sales_encoding import PARTS, encode_parts, merge, read_flat, unpack
from regulars.segments.analysis.engine.sales_runs import Words
from regulars.segments.columns.model import (
    BLOCK_CUSTOMERS,
    FORMAT,
    TIDY_CLAIM,
    WHOLE,
    CustomerState,
    Run,
    pack_customers,
    unpack_customers,
    unpack_sales,
)

MERGE_RUNS: Final = 16
# So many rows a merged run has at most; of those of a build, 256 fit.
MERGED_ROWS_MAX: Final = 1 << 21
# So many changes are worth writing blocks anew, and so many for each block there is.
FOLD_CHANGES: Final = 8_192
FOLD_PER_BLOCK: Final = 2_048
# Of the 24 hours in which the bytes of an erased customer have to go.
PURGE_AFTER: Final = timedelta(hours=12)


class Made(NamedTuple):
    """A run that takes the place of others."""

    run: Run
    parts: Mapping[str, bytes]


class _TakenError(Exception):
    """Another process put other runs into the place of those that were read."""


async def tidy(database: Database, organization_id: UUID, *, purge_after: timedelta = PURGE_AFTER) -> bool:
    """Do what there is to do; answer whether anything was done. One process does it at a time."""
    async with database.transaction() as tx:
        state = await columns.find_state(tx, organization_id)
        if state is None or state.format != FORMAT:
            return False
        if not await columns.claim_tidying(tx, organization_id, until=tx.now + TIDY_CLAIM):
            return False
        is_to_purge = state.erased_since is not None and tx.now - state.erased_since >= purge_after
    did = False
    try:
        await _forget_unfinished(database, organization_id, state.epoch)
        while await _merge_some(database, organization_id, state.epoch):
            did = True
        if is_to_purge:
            await _purge(database, organization_id, state.epoch)
            did = True
    except _TakenError:
        did = True
    await _release(database, organization_id, purge_after=purge_after)
    return did


async def _release(database: Database, organization_id: UUID, *, purge_after: timedelta) -> None:
    """The next time is when new runs come, which their feeder says, or when somebody's bytes have to go."""
    async with database.transaction() as tx:
        await columns.wait_longer(tx)
        state = await columns.lock_state(tx, organization_id)
        if state is None or state.state == "ended":
            return
        waiting = None if state.erased_since is None else state.erased_since + purge_after
        runs = await columns.list_runs(tx, organization_id, state.epoch)
        state.tidy_at = tx.now if choose(runs) else waiting
        await columns.update_state(tx, organization_id, state)


def choose(runs: Sequence[Run]) -> list[Run]:
    """The runs that become one: the oldest sales of a level that are enough for one of the next, or all patches.

    Nobody asks for the order of runs of sales, so those that are big stay as they are, and the others do not wait for
    them. Of patches the last one counts, so none is left out.
    """
    sales = [run for run in runs if run.kind == "sales" and run.rows <= MERGED_ROWS_MAX // MERGE_RUNS]
    for level in sorted({run.level for run in sales}):
        oldest = [run for run in sales if run.level == level][:MERGE_RUNS]
        if len(oldest) == MERGE_RUNS and sum(run.rows for run in oldest) <= MERGED_ROWS_MAX:
            return oldest
    patches = [run for run in runs if run.kind == "patch"]
    return patches if len(patches) >= MERGE_RUNS or is_worth_folding(runs) else []


def is_worth_folding(runs: Sequence[Run]) -> bool:
    """Whether so many changes wait that every block could be written anew; fewer may touch only few of them."""
    changes = sum(run.rows for run in runs if run.kind == "patch")
    return changes >= max(FOLD_CHANGES, FOLD_PER_BLOCK * sum(run.kind == "block" for run in runs))


async def _merge_some(database: Database, organization_id: UUID, epoch: int) -> bool:
    async with database.transaction() as tx:
        runs = await columns.list_runs(tx, organization_id, epoch)
        chosen = choose(runs)
        are_folded = bool(chosen) and chosen[0].kind == "patch" and is_worth_folding(runs)
        read = [] if are_folded else [run.id for run in chosen]
        blobs = await queries.find_blobs(tx, organization_id, epoch, read, None)
    if not chosen:
        return False
    if are_folded:
        await fold_patches(database, organization_id, epoch)
        return True
    make = _merged_sales if chosen[0].kind == "sales" else _merged_patches
    made = await asyncio.to_thread(make, chosen, blobs, None)
    await _replace(database, organization_id, epoch, chosen, [made])
    return True


Blobs = Mapping[tuple[int, str], bytes]


def _merged_sales(runs: Sequence[Run], blobs: Blobs, dead: Array | None) -> Made:
    words = Words()
    parts = merge([_arrays(run, blobs, words) for run in runs], dead)
    encoded = encode_parts(parts, words)
    rows = parts["customer"].size
    level = max(run.level for run in runs) + (len(runs) > 1)
    merged = Run(
        0,
        "sales",
        max(1, level),
        max(run.ordinal for run in runs),
        rows,
        sum(map(len, encoded.values())),
        int(parts["at_s"].min()) if rows else None,
        int(parts["at_s"].max()) if rows else None,
    )
    return Made(merged, encoded)


def _arrays(run: Run, blobs: Blobs, words: Words) -> dict[str, Array]:
    if (run.id, WHOLE) in blobs:
        return unpack(unpack_sales(blobs[run.id, WHOLE]), words)
    if any((run.id, part) not in blobs for part in PARTS):
        raise _TakenError
    return read_flat({part: blobs[run.id, part] for part in PARTS}, words)


def _merged_patches(runs: Sequence[Run], blobs: Blobs, _dead: Array | None) -> Made:
    states = _states(runs, blobs)
    content = pack_customers(states)
    return Made(Run(0, "patch", 0, max(run.ordinal for run in runs), len(states), len(content)), {WHOLE: content})


def _states(runs: Sequence[Run], blobs: Blobs) -> list[CustomerState]:
    if any((run.id, WHOLE) not in blobs for run in runs):
        raise _TakenError
    return last_of_each(unpack_customers(blobs[run.id, WHOLE]) for run in runs)


async def fold_patches(database: Database, organization_id: UUID, epoch: int) -> None:
    """Write every block that the patches touch anew, and let the patches go."""
    async with database.transaction() as tx:
        runs = await columns.list_runs(tx, organization_id, epoch)
        patches = [run for run in runs if run.kind == "patch"]
        blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id for run in patches], None)
    if not patches:
        return
    by_block: dict[int, list[CustomerState]] = {}
    for state in _states(patches, blobs):
        by_block.setdefault(state.number // BLOCK_CUSTOMERS, []).append(state)
    blocks = {run.ordinal: run for run in runs if run.kind == "block" and run.ordinal in by_block}
    made = []
    for block, states in sorted(by_block.items()):
        parts: dict[str, bytes] = {}
        if block in blocks:
            async with database.transaction() as tx:
                found = await queries.find_blobs(tx, organization_id, epoch, [blocks[block].id], None)
            parts = {part: content for (_, part), content in found.items()}
            if not parts:
                raise _TakenError
        size, folded = await asyncio.to_thread(fold, block, parts, states)
        made.append(Made(Run(0, "block", 0, block, size, sum(map(len, folded.values()))), folded))
    folded_to = max(run.ordinal for run in patches)
    await _replace(database, organization_id, epoch, [*patches, *blocks.values()], made, folded_to=folded_to)


async def _purge(database: Database, organization_id: UUID, epoch: int) -> None:
    """Write anew whatever erased customers are in: their values, and the sales that had their numbers. One that breaks
    off is begun again. Who is erased from here on stands in a patch that comes later, and waits for the next."""
    await fold_patches(database, organization_id, epoch)
    async with database.transaction() as tx:
        begun = tx.now
        before = await columns.find_state(tx, organization_id)
        runs = await columns.list_runs(tx, organization_id, epoch)
        dead = await _dead(tx, organization_id, epoch, [run for run in runs if run.kind == "block"])
    for run in [run for run in runs if run.kind == "sales"]:
        await _purge_sales(database, organization_id, epoch, run, dead)
    async with database.transaction() as tx:
        await columns.wait_longer(tx)
        state = await columns.lock_state(tx, organization_id)
        if state is None or before is None or not state.epoch == before.epoch == epoch:
            return
        patches = [run for run in await columns.list_runs(tx, organization_id, epoch) if run.kind == "patch"]
        blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id for run in patches], None)
        is_all = state.folded_to == before.folded_to and all(it.is_alive for it in _states(patches, blobs))
        state.erased_since = None if is_all else begun
        await columns.update_state(tx, organization_id, state)


async def _dead(tx: Tx, organization_id: UUID, epoch: int, blocks: Sequence[Run]) -> Array:
    found = await queries.find_blobs(tx, organization_id, epoch, [run.id for run in blocks], ["alive"])
    numbers = [np.zeros(0, np.int64)]
    for run in blocks:
        if (run.id, "alive") not in found:
            raise _TakenError
        numbers.append(np.flatnonzero(decode(found[run.id, "alive"]) == 0) + run.ordinal * BLOCK_CUSTOMERS)
    return np.concatenate(numbers)


async def _purge_sales(database: Database, organization_id: UUID, epoch: int, run: Run, dead: Array) -> None:
    async with database.transaction() as tx:
        some = await queries.find_blobs(tx, organization_id, epoch, [run.id], [WHOLE, "customer"])
    if await asyncio.to_thread(_has_any, run, some, dead):
        async with database.transaction() as tx:
            blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id], None)
        made = await asyncio.to_thread(_merged_sales, [run], blobs, dead)
        await _replace(database, organization_id, epoch, [run], [made] if made.run.rows else [])


def _has_any(run: Run, blobs: Blobs, dead: Array) -> bool:
    if (run.id, WHOLE) in blobs:
        customers = np.array(unpack_sales(blobs[run.id, WHOLE]).customer, np.int64)
    elif (run.id, "customer") in blobs:
        customers = decode(blobs[run.id, "customer"])
    else:
        raise _TakenError
    return bool(np.isin(customers, dead).any())


async def _replace(
    database: Database,
    organization_id: UUID,
    epoch: int,
    old: Sequence[Run],
    made: Sequence[Made],
    *,
    folded_to: int | None = None,
) -> None:
    ids = [await _write(database, organization_id, epoch, one) for one in made]
    async with database.transaction() as tx:
        await columns.wait_longer(tx)
        state = await columns.lock_state(tx, organization_id)
        if state is None or state.epoch != epoch or state.state == "ended":
            raise _TakenError
        gone = await columns.delete_runs(tx, organization_id, epoch, [run.id for run in old])
        live = await columns.make_live(tx, organization_id, epoch, ids)
        if gone != len(old) or live != len(ids):
            raise _TakenError
        state.folded_to = max(state.folded_to, folded_to or 0)
        await columns.update_state(tx, organization_id, state)


async def _write(database: Database, organization_id: UUID, epoch: int, made: Made) -> int:
    """Write a run that nobody reads yet; give its id."""
    async with database.transaction() as tx:
        await columns.wait_longer(tx)
        state = await columns.lock_state(tx, organization_id)
        if state is None or state.epoch != epoch or state.state == "ended":
            raise _TakenError
        run = made.run._replace(id=state.next_run)
        state.next_run += 1
        await columns.update_state(tx, organization_id, state)
        await columns.insert_run(tx, organization_id, epoch, run, is_live=False)
    for part, content in made.parts.items():
        async with database.transaction() as tx:
            await columns.insert_blob(tx, organization_id, epoch, run.id, part=part, content=content)
    return run.id


async def _forget_unfinished(database: Database, organization_id: UUID, epoch: int) -> None:
    """Runs that a process was writing when it died; nobody else writes any while the tidying is ours."""
    async with database.transaction() as tx:
        unfinished = await queries.list_unfinished(tx, organization_id, epoch)
        if unfinished:
            await columns.delete_runs(tx, organization_id, epoch, unfinished)
